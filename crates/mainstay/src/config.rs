//! The user's settings, `config.toml` in Mainstay's home. Every one has a default.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_kernel::Opens;
use mainstay_kernel::fsharp::FEED;
use mainstay_model::{Access, Error, Limits, NamePattern, Principal, Rights};
use serde::{Deserialize, Serialize};

use crate::environment::Whence;
use crate::home::Home;

/// The port the daemon listens on unless told otherwise.
pub(crate) const DEFAULT_PORT: u16 = 37749;

/// All settings of the user.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// The settings of the daemon.
    pub(crate) daemon: DaemonConfig,
    /// The settings of F# kernels.
    pub(crate) fsharp: FsharpConfig,
    /// Of pi, the coding agent.
    pub(crate) pi: PiConfig,
    /// The settings of MCP.
    pub(crate) mcp: mainstay_gateway::mcp::Settings,
    /// Of traces and metrics that are exported.
    pub(crate) telemetry: TelemetryConfig,
    /// What is accepted and kept at most.
    pub(crate) limits: Limits,
    /// Who may come in besides the user the daemon runs as.
    pub(crate) principals: BTreeMap<Principal, PrincipalConfig>,
}

/// A principal with a token of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PrincipalConfig {
    /// The SHA-256 of its token.
    pub(crate) token_sha256: TokenHash,
    /// The names of sessions it may see, besides those it may drive.
    #[serde(default)]
    pub(crate) see: Vec<NamePattern>,
    /// The names of sessions it may drive, besides its own.
    #[serde(default)]
    pub(crate) drive: Vec<NamePattern>,
}

/// Settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DaemonConfig {
    /// The loopback port; 0 takes any free one.
    pub(crate) port: Option<u16>,
    /// The loopback port of the pi protocol alone; 0 takes any free one, and none has none.
    pub(crate) pi_port: Option<u16>,
    /// How large its log may become before a new one is begun, in bytes.
    pub(crate) log_bytes: u64,
    /// Where one that is started in the background has its environment from.
    pub(crate) environment: Whence,
    /// How long the login shell is asked for its environment, in milliseconds.
    pub(crate) environment_ms: u64,
    /// How much of its creator's environment is kept of a session, in bytes; a larger one is not taken.
    pub(crate) session_environment_bytes: usize,
    /// How long clients wait for an answer to what it answers at once before they take it to hang, in milliseconds.
    pub(crate) answer_ms: u64,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            port: None,
            pi_port: None,
            log_bytes: 10 * 1024 * 1024,
            environment: Whence::default(),
            environment_ms: 10_000,
            session_environment_bytes: 256 * 1024,
            answer_ms: 20_000,
        }
    }
}

/// The ports that a command line asks for, before the configured ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ports {
    /// The port of the daemon itself.
    pub(crate) own: Option<u16>,
    /// That of the pi protocol alone.
    pub(crate) pi: Option<u16>,
}

impl Ports {
    /// How another process of this program is asked for them.
    pub(crate) fn arguments(self) -> impl Iterator<Item = String> {
        let asked = [("--port", self.own), ("--pi-port", self.pi)];
        asked.into_iter().filter_map(|(name, port)| port.map(|port| format!("{name}={port}")))
    }

    /// They, and the configured ones where none were asked for.
    pub(crate) fn or(self, config: &DaemonConfig) -> Self {
        Self { own: self.own.or(config.port), pi: self.pi.or(config.pi_port) }
    }
}

/// Settings of F# kernels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FsharpConfig {
    /// The folder with the `dotnet` to use.
    pub(crate) dotnet: Option<PathBuf>,
    /// The address of the release metadata by which an SDK is installed.
    pub(crate) feed: String,
    /// What happens when a file changes that a session rests on.
    pub(crate) watch: Watch,
    /// Which names of a session's project are opened.
    pub(crate) opens: Opens,
    /// What the compiler of each new session is told, parted by spaces.
    pub(crate) fsi_args: String,
}

impl Default for FsharpConfig {
    fn default() -> Self {
        Self {
            dotnet: None,
            feed: FEED.to_owned(),
            watch: Watch::default(),
            opens: Opens::default(),
            fsi_args: String::new(),
        }
    }
}

/// What happens when a file changes that a session rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Watch {
    /// Nothing, until somebody looks.
    Off,
    /// Everybody hears what is out of date.
    #[default]
    Mark,
    /// The definitions run again with what is there now; what a project is made of is built first.
    Reload,
}

/// The settings of pi agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PiConfig {
    /// The path of pi's program.
    pub(crate) path: Option<PathBuf>,
    /// Whose model a session begins with.
    pub(crate) provider: Option<String>,
    /// The model that pi starts with.
    pub(crate) model: Option<String>,
    /// Further arguments for pi's command line.
    pub(crate) arguments: Vec<String>,
    /// What it finds in its environment beside the daemon's own.
    pub(crate) environment: BTreeMap<String, String>,
    /// Whether it may use the daemon's other sessions.
    pub(crate) live_sessions: bool,
    /// How long a dialog of an extension waits for its answer where the extension does not say, in milliseconds.
    pub(crate) dialog_ms: u64,
    /// Whose limits hold where `[limits]` does not say.
    pub(crate) limits: WhoseLimits,
}

/// Whose limits hold where `[limits]` does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WhoseLimits {
    /// The limits that Mainstay sets itself.
    #[default]
    Own,
    /// pi-server's, as far as it has any.
    Upstream,
}

impl Default for PiConfig {
    fn default() -> Self {
        Self {
            path: None,
            provider: None,
            model: None,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            live_sessions: true,
            dialog_ms: 60_000,
            limits: WhoseLimits::default(),
        }
    }
}

/// Settings of traces and metrics that are exported. What none of them says, OpenTelemetry's environment variables may say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TelemetryConfig {
    /// The collector, which speaks OTLP over HTTP; nothing is exported without.
    pub(crate) endpoint: Option<String>,
    /// A file with a header a line, as in `authorization=Bearer TOKEN`.
    pub(crate) headers_file: Option<PathBuf>,
    /// What the daemon is called there.
    pub(crate) service_name: Option<String>,
    /// The part of the traces that is exported, of those that begin here.
    pub(crate) sampling_ratio: Option<f64>,
}

impl Config {
    /// The tokens that are accepted: the daemon's own, and those of the principals.
    pub(crate) fn tokens(&self, own: &str) -> Tokens {
        let access = |(principal, config): (&Principal, &PrincipalConfig)| {
            let PrincipalConfig { token_sha256, see, drive } = config.clone();
            (token_sha256, Access { principal: principal.clone(), rights: Rights::Some { see, drive } })
        };
        Tokens::new(own, self.principals.iter().map(access))
    }

    /// Reads settings: the limits that are not among them are the ones that are chosen.
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let config: Self = toml::from_str(text)?;
        match config.pi.limits {
            WhoseLimits::Own => Ok(config),
            WhoseLimits::Upstream => Ok(Self { limits: upstream_limits(text)?, ..config }),
        }
    }

    /// Reads the settings; the defaults where there is no file.
    pub(crate) fn load(home: &Home) -> Result<Self, Error> {
        let file = home.config_file();
        let invalid =
            |reason: String| Error::InvalidArgument { argument: file.display().to_string(), reason };
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let config = Self::read(&text).map_err(|error| invalid(error.to_string()))?;
                check(&config).map_err(invalid)?;
                Ok(config)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(invalid(error.to_string())),
        }
    }
}

/// pi-server's limits, but for those that settings name.
fn upstream_limits(text: &str) -> Result<Limits, toml::de::Error> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        limits: toml::Table,
    }
    let Named { limits: named } = toml::from_str(text)?;
    let upstreams = mainstay_gateway::pi::upstream_limits();
    let mut limits = toml::Table::try_from(&upstreams).map_err(serde::de::Error::custom)?;
    limits.extend(named);
    limits.try_into()
}

/// What a number of things may be.
const COUNT: RangeInclusive<u64> = 1..=100_000;
/// How often something may happen in a minute; 0 as often as it likes.
const RATE: RangeInclusive<u64> = 0..=100_000_000;
/// What a number that grows for ever may be; 0 without a limit.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;
/// What a size may be, in bytes.
const SIZE: RangeInclusive<u64> = 1..=1024 * 1024 * 1024;
/// What a time may be, in milliseconds: a day at most.
const TIME: RangeInclusive<u64> = 0..=DAY_MS;
/// What a time may be that outlives a day's work, in milliseconds: a year at most.
const LONG_TIME: RangeInclusive<u64> = 0..=366 * DAY_MS;
/// A day, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Refuses settings that nothing could work with, and says which.
fn check(config: &Config) -> Result<(), String> {
    if config.principals.contains_key(&Principal::local()) {
        return Err(
            "`local` is the user the daemon runs as, and may do everything: it has no entry".to_owned()
        );
    }
    for (name, principal) in &config.principals {
        let mut before = config.principals.iter().take_while(|(other, _)| *other != name);
        if let Some((other, _)) = before.find(|(_, other)| other.token_sha256 == principal.token_sha256) {
            return Err(format!("the principals `{other}` and `{name}` have the same token"));
        }
    }
    let DaemonConfig {
        port: _,
        pi_port: _,
        log_bytes,
        environment: _,
        environment_ms,
        session_environment_bytes,
        answer_ms,
    } = config.daemon;
    let dialog_ms = config.pi.dialog_ms;
    let Limits {
        code_bytes,
        output_bytes_per_job,
        output_end_bytes_per_job,
        display_bytes,
        display_bytes_per_job,
        value_bytes,
        lane_commands,
        commands,
        session_commands_per_minute,
        commands_per_minute,
        asks,
        ask_bytes,
        input_bytes,
        ask_ms,
        label_bytes,
        labels,
        outcomes,
        history_lines,
        breaker_failures,
        breaker_open_ms,
        dependencies,
        dependency_wait_ms,
        live_sessions,
        connections,
        connection_requests,
        connection_subscriptions,
        streams,
        compressed_streams,
        http_connections,
        message_bytes,
        request_ms,
        browser_ms,
        health_ms,
        health_notes,
        cancel_grace_ms,
        jupyter_cancel_grace_ms,
        agent_cancel_grace_ms,
        agent_idle_ms,
        agent_silence_ms,
        pi_turn_ms,
        task_after_ms,
        mcp_kept_bytes,
        mcp_streams,
        mcp_results,
        mcp_decline_ms,
        drain_ms,
        prepare_ms,
        worker_start_ms,
        project_ms,
        profile_ms,
        replay_ms,
        replay_batch,
        query_ms,
        watch_quiet_ms,
        watch_longest_ms,
        watch_folders,
        restart_first_ms,
        restart_longest_ms,
        restart_budget,
        restart_window_ms,
        restart_stable_ms,
    } = config.limits;
    let wide = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    let settings = [
        ("log-bytes", log_bytes, SIZE),
        ("environment-ms", environment_ms, TIME),
        ("answer-ms", answer_ms, TIME),
        ("session-environment-bytes", wide(session_environment_bytes), SIZE),
        ("dialog-ms", dialog_ms, TIME),
        ("code-bytes", wide(code_bytes), SIZE),
        ("output-bytes-per-job", wide(output_bytes_per_job), SIZE),
        ("output-end-bytes-per-job", wide(output_end_bytes_per_job), SIZE),
        ("display-bytes", wide(display_bytes), SIZE),
        ("display-bytes-per-job", wide(display_bytes_per_job), SIZE),
        ("value-bytes", wide(value_bytes), SIZE),
        ("lane-commands", wide(lane_commands), COUNT),
        ("commands", wide(commands), COUNT),
        ("session-commands-per-minute", u64::from(session_commands_per_minute), RATE),
        ("commands-per-minute", u64::from(commands_per_minute), RATE),
        ("asks", wide(asks), COUNT),
        ("ask-bytes", wide(ask_bytes), SIZE),
        ("input-bytes", wide(input_bytes), SIZE),
        ("ask-ms", ask_ms, TIME),
        ("label-bytes", wide(label_bytes), SIZE),
        ("labels", wide(labels), COUNT),
        ("outcomes", outcomes, ANY),
        ("history-lines", history_lines, ANY),
        ("breaker-failures", u64::from(breaker_failures), RATE),
        ("breaker-open-ms", breaker_open_ms, TIME),
        ("dependencies", wide(dependencies), COUNT),
        ("dependency-wait-ms", dependency_wait_ms, TIME),
        ("live-sessions", wide(live_sessions), COUNT),
        ("connections", wide(connections), COUNT),
        ("connection-requests", wide(connection_requests), COUNT),
        ("connection-subscriptions", wide(connection_subscriptions), COUNT),
        ("streams", wide(streams), COUNT),
        ("compressed-streams", wide(compressed_streams), COUNT),
        ("http-connections", wide(http_connections), COUNT),
        ("message-bytes", wide(message_bytes), SIZE),
        ("request-ms", request_ms, TIME),
        ("browser-ms", browser_ms, LONG_TIME),
        ("health-ms", health_ms, TIME),
        ("health-notes", wide(health_notes), COUNT),
        ("cancel-grace-ms", cancel_grace_ms, TIME),
        ("jupyter-cancel-grace-ms", jupyter_cancel_grace_ms, TIME),
        ("agent-cancel-grace-ms", agent_cancel_grace_ms, TIME),
        ("agent-idle-ms", agent_idle_ms, TIME),
        ("agent-silence-ms", agent_silence_ms, TIME),
        ("pi-turn-ms", pi_turn_ms, TIME),
        ("task-after-ms", task_after_ms, TIME),
        ("mcp-kept-bytes", wide(mcp_kept_bytes), SIZE),
        ("mcp-streams", wide(mcp_streams), COUNT),
        ("mcp-results", wide(mcp_results), COUNT),
        ("mcp-decline-ms", mcp_decline_ms, TIME),
        ("drain-ms", drain_ms, TIME),
        ("prepare-ms", prepare_ms, TIME),
        ("worker-start-ms", worker_start_ms, TIME),
        ("project-ms", project_ms, TIME),
        ("profile-ms", profile_ms, TIME),
        ("replay-ms", replay_ms, TIME),
        ("replay-batch", wide(replay_batch), COUNT),
        ("query-ms", query_ms, TIME),
        ("watch-quiet-ms", watch_quiet_ms, TIME),
        ("watch-longest-ms", watch_longest_ms, TIME),
        ("watch-folders", wide(watch_folders), COUNT),
        ("restart-first-ms", restart_first_ms, TIME),
        ("restart-longest-ms", restart_longest_ms, TIME),
        ("restart-budget", u64::from(restart_budget), COUNT),
        ("restart-window-ms", restart_window_ms, TIME),
        ("restart-stable-ms", restart_stable_ms, TIME),
    ];
    match settings.iter().find(|(_, value, range)| !range.contains(value)) {
        Some((name, value, range)) => {
            Err(format!("`{name}` is {value}; it must be from {} to {}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_nothing_could_work_with_are_named() {
        let check = |limits| check(&Config { limits, ..Config::default() });
        assert_eq!(check(Limits::default()), Ok(()));
        for (limits, name) in [
            (Limits { connections: usize::MAX, ..Limits::default() }, "`connections`"),
            (Limits { lane_commands: 0, ..Limits::default() }, "`lane-commands`"),
            (Limits { cancel_grace_ms: u64::MAX, ..Limits::default() }, "`cancel-grace-ms`"),
        ] {
            let refused = check(limits).unwrap_err();
            assert!(refused.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn a_setting_that_is_named_is_taken_and_the_others_keep_their_defaults() {
        let config: Config = toml::from_str("[limits]\ncode-bytes = 10\n[daemon]\nport = 0\n").unwrap();
        assert_eq!(config.limits, Limits { code_bytes: 10, ..Limits::default() });
        assert_eq!(config.daemon.port, Some(0));
    }

    #[test]
    fn the_settings_that_the_readme_shows_are_the_defaults() {
        let readme = include_str!("../../../README.md");
        let shown = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(toml::from_str::<Config>(shown).unwrap(), Config::default());
        let limits = serde_json::to_value(Limits::default()).unwrap();
        for name in limits.as_object().unwrap().keys().map(String::as_str).chain([
            "port",
            "pi-port",
            "log-bytes",
            "environment",
            "environment-ms",
            "answer-ms",
            "session-environment-bytes",
            "dotnet",
            "feed",
            "path",
            "provider",
            "model",
            "arguments",
            "live-sessions",
            "dialog-ms",
            "endpoint",
            "headers-file",
            "service-name",
            "sampling-ratio",
        ]) {
            assert!(shown.contains(&format!("{name} = ")), "{name}");
        }
    }

    #[test]
    fn a_principal_has_a_token_and_is_not_the_local_one() {
        let of = |name: &str, token: &str| {
            let lines = format!("[principals.{name}]\ntoken-sha256 = \"{token}\"\n");
            toml::from_str::<Config>(&lines)
                .map_err(|error| error.to_string())
                .and_then(|config| check(&config))
        };
        assert_eq!(of("ci", &"ab".repeat(32)), Ok(()));
        assert!(of("local", &"ab".repeat(32)).unwrap_err().contains("`local`"));
        assert!(of("ci", "secret").unwrap_err().contains("64 hexadecimal digits"));
    }

    #[test]
    fn two_principals_with_one_token_are_refused() {
        let hash = "ab".repeat(32);
        let lines =
            format!("[principals.a]\ntoken-sha256 = '{hash}'\n[principals.b]\ntoken-sha256 = '{hash}'\n");
        let refused = check(&toml::from_str(&lines).unwrap()).unwrap_err();
        assert_eq!(refused, "the principals `a` and `b` have the same token");
    }

    #[test]
    fn upstreams_limits_hold_where_no_other_is_named() {
        let config = Config::read("[pi]\nlimits = \"upstream\"\n[limits]\nconnections = 7\n").unwrap();
        let Limits { message_bytes, connections, connection_requests, .. } = config.limits;
        assert_eq!((message_bytes, connections, connection_requests), (10_485_760, 7, 100));
        let Limits { session_commands_per_minute, commands_per_minute, live_sessions, .. } = config.limits;
        assert_eq!((session_commands_per_minute, commands_per_minute, live_sessions), (100, 1000, 100));
        assert_eq!(check(&config), Ok(()));
        assert_eq!(Config::read("").unwrap(), Config::default());
        assert!(Config::read("[pi]\nlimits = \"upstream\"\n[limits]\nconnection = 7\n").is_err());
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        assert!(toml::from_str::<Config>("[limits]\ncode-byte = 10\n").is_err());
    }
}

//! The user's settings, `config.toml` in Mainstay's home. Every one has a default. [`bounds`] has the range of each number.
//!
//! `docs/reference/settings.md` is generated from these types: their doc comments are its text.

mod authentication;
pub mod bounds;
mod files;
mod remote;
mod remote_files;
mod tool_workers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use mainstay_kernel::OpenedNames;
use mainstay_kernel::fsharp::FEED;
use mainstay_model::{Error, Limits, Principal, SessionKind, TestPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::authentication::{AnonymousConfig, GroupConfig, IssuerConfig, PrincipalConfig};
pub use self::remote::{Remote, RemoteConfig, RemoteOptions};
pub use self::remote_files::{RemoteFiles, Renewal};
pub use self::tool_workers::ToolWorkerConfig;
use crate::Home;
use crate::environment::EnvironmentSource;

/// The port the daemon listens on unless told otherwise.
pub const DEFAULT_PORT: u16 = 37749;

/// All settings of the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The daemon: its ports, its log file and its environment.
    pub daemon: DaemonConfig,
    /// The port that other machines reach, over TLS alone. See [Remote access](../how-to/remote-access.md).
    pub remote: RemoteConfig,
    /// F# sessions: the SDK, projects and watched files.
    pub fsharp: FsharpConfig,
    /// Tests that run by themselves, in `mainstay test --watch`. See [Tests](../tests.md#run-tests-again-after-a-change).
    pub tests: TestsConfig,
    /// Sessions of pi, the coding agent.
    pub pi: PiConfig,
    /// Programs that offer tools, one table each: `[tool-workers.NAME]`. NAME is the kind of their sessions.
    pub tool_workers: BTreeMap<SessionKind, ToolWorkerConfig>,
    /// What MCP clients are offered and shown.
    pub mcp: mainstay_mcp::Settings,
    /// Sessions of ARCP, and how long they can be resumed.
    pub arcp: mainstay_arcp::Settings,
    /// Traces and metrics for OpenTelemetry. A setting that is missing is taken from OpenTelemetry's environment variables.
    pub telemetry: TelemetryConfig,
    /// What the daemon accepts, stores and waits for at most.
    pub limits: Limits,
    /// Principals with a token of their own, one table each: `[principals.NAME]`. `mainstay principal new` prints it.
    pub principals: BTreeMap<Principal, PrincipalConfig>,
    /// Issuers of signed tokens (JWTs) that are accepted as bearer tokens, one table each: `[issuers.NAME]`. See [Remote access](../how-to/remote-access.md).
    pub issuers: BTreeMap<String, IssuerConfig>,
    /// Groups of an issuer, one table each: `[groups.NAME]`. A subject that no principal names is a principal of its own with the rights of its groups, and is refused where it is in none.
    pub groups: BTreeMap<String, GroupConfig>,
    /// Clients of this machine that show no credentials.
    pub anonymous: AnonymousConfig,
}

/// Settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DaemonConfig {
    /// The loopback port; 0 takes any free port. Without it the daemon takes 37749, or any free port if that is taken, and keeps that.
    pub port: Option<u16>,
    /// A second loopback port that speaks only the pi protocol, at `/`; 0 takes any free port. Without it there is no such port.
    pub pi_port: Option<u16>,
    /// The size at which a new log file is begun, in bytes. The previous file is kept.
    pub log_bytes: u64,
    /// Where a daemon in the background takes its environment from. The variable `MAINSTAY_ENVIRONMENT` overrides it.
    pub environment: EnvironmentSource,
    /// How long the login shell may take to say its environment, in milliseconds. After that the environment is inherited, and the log and `mainstay kernel doctor` say so.
    pub environment_ms: u64,
    /// The largest environment of a session's creator that the session keeps, in bytes. Of a larger one the session gets nothing, and its creator is told.
    pub session_environment_bytes: usize,
    /// How long clients wait for an answer that should come at once before they conclude that the daemon hangs, in milliseconds.
    pub answer_ms: u64,
    /// How long the worker of a session runs on without a daemon, in milliseconds, before it ends by itself. A daemon that starts within this time takes it over. With 0 workers end with their daemon.
    pub orphan_ms: u64,
    /// How much memory each worker's process may use for notices that no daemon has stored yet, in bytes. Further notices go to a file.
    pub shim_buffer_bytes: u64,
    /// The largest file of notices that no daemon has stored yet, for each worker, in bytes. When it is full, the worker waits.
    pub shim_file_bytes: u64,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            port: None,
            pi_port: None,
            log_bytes: 10 * 1024 * 1024,
            environment: EnvironmentSource::default(),
            environment_ms: 10_000,
            session_environment_bytes: 256 * 1024,
            answer_ms: 20_000,
            orphan_ms: 60 * 60 * 1000,
            shim_buffer_bytes: 4 * 1024 * 1024,
            shim_file_bytes: 64 * 1024 * 1024,
        }
    }
}

/// The ports that a command line asks for, before the configured ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ports {
    /// The port of the daemon itself.
    pub own: Option<u16>,
    /// That of the pi protocol alone.
    pub pi: Option<u16>,
}

impl Ports {
    /// How another process of this program is asked for them.
    pub fn arguments(self) -> impl Iterator<Item = String> {
        let asked = [("--port", self.own), ("--pi-port", self.pi)];
        asked.into_iter().filter_map(|(name, port)| port.map(|port| format!("{name}={port}")))
    }

    /// They, and the configured ones where none were asked for.
    pub fn or(self, config: &DaemonConfig) -> Self {
        Self { own: self.own.or(config.port), pi: self.pi.or(config.pi_port) }
    }
}

/// Settings of F# kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FsharpConfig {
    /// The folder of the `dotnet` to use. Without it Mainstay looks for an SDK.
    pub dotnet: Option<PathBuf>,
    /// The address of the release metadata that `mainstay kernel install fsharp` reads, or of a mirror with the same files.
    pub feed: String,
    /// What happens when a file changes that a session depends on.
    pub watch: Watch,
    /// What happens where a saved source cannot be put into the worker that runs, with `watch = "swap"`.
    pub on_obstacle: OnObstacle,
    /// How often saved code is put into one worker, with `watch = "swap"`. What is saved then waits for a build, which gives back the memory
    /// that each time leaves behind: some 0.25 MB. With 0 there is no limit.
    pub swaps_per_worker: u64,
    /// Which names of a session's project are opened.
    pub opens: OpenedNames,
    /// Whether debuggers can attach to F# workers. It counts for workers that start after the daemon has.
    pub debugging: bool,
    /// The program `netcoredbg`, which `mainstay debug` starts. Without it Mainstay looks in `PATH`.
    pub debugger: Option<PathBuf>,
    /// Compiler options for each new F# session, separated by spaces, as for `--fsi-args`: `"--define:X --nowarn:25"`.
    pub fsi_args: String,
    /// Whether pages of an application that `mainstay run-app` started reload by themselves when its code has changed: a script is added to
    /// its HTML.
    pub browser_reload: bool,
    /// How long an application may take to begin to listen before `mainstay run-app` no longer waits for it, in milliseconds.
    pub application_start_ms: u64,
    /// How long an application may take to stop in order, in milliseconds.
    pub application_stop_ms: u64,
    /// Whether a worker is started ahead for the next F# session, so that its first result comes at once. It is made after the daemon has
    /// started the first F# session, and takes some 250 MB.
    pub standby: bool,
    /// How long no session may have been starting or running code before a standby is made, in milliseconds. What has run for a minute does
    /// not count.
    pub standby_rest_ms: u64,
    /// How much memory the machine must have available (`MemAvailable`) before a standby is made, in bytes. One that is there ends where
    /// less than half of it is available.
    pub standby_memory_bytes: u64,
    /// How many compilers are kept warm, one for each SDK in use; with 0 none is. One is started once a project was built and nothing was
    /// waited for during `standby-rest-ms`, and builds the project again where nothing but its sources has changed since. It takes some
    /// 350 to 500 MB.
    pub warm_compilers: u64,
    /// How long nothing may have been compiled before a warm compiler ends, in milliseconds.
    pub warm_compiler_idle_ms: u64,
    /// How much memory a warm compiler may take, in bytes: one that has more ends, and another is started. 0 means no limit.
    pub warm_compiler_bytes: u64,
    /// How much memory the machine must have available (`MemAvailable`) before a compiler is warmed, in bytes. One that is there ends where
    /// less than half of it is available.
    pub warm_compiler_memory_bytes: u64,
}

impl Default for FsharpConfig {
    fn default() -> Self {
        Self {
            dotnet: None,
            feed: FEED.to_owned(),
            watch: Watch::default(),
            on_obstacle: OnObstacle::default(),
            swaps_per_worker: 1_000,
            opens: OpenedNames::default(),
            debugging: true,
            debugger: None,
            fsi_args: String::new(),
            browser_reload: true,
            application_start_ms: 30_000,
            application_stop_ms: 10_000,
            standby: true,
            standby_rest_ms: 2_000,
            standby_memory_bytes: 2 * 1024 * 1024 * 1024,
            warm_compilers: 1,
            warm_compiler_idle_ms: 30 * 60 * 1000,
            warm_compiler_bytes: 1536 * 1024 * 1024,
            warm_compiler_memory_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// What happens when a file changes that a session depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// Nothing is watched; a session is checked when somebody asks for it.
    Off,
    /// Results that depend on the file are marked as stale.
    Mark,
    /// Functions that changed in a source of the project run as they are now, in the worker that is there. What cannot be exchanged is said
    /// with its reason, and results are marked, as with `"mark"`. It takes an SDK of version 6 or later.
    #[default]
    Swap,
    /// What depends on the file runs again; a project is built first.
    Reload,
}

/// What happens where a saved source cannot be put into the worker that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnObstacle {
    /// It is said with its reason, and waits for a build: what the session's code has made stays as it is until somebody asks for one.
    #[default]
    Tell,
    /// The session's people are asked whether to build, as by `mainstay ask raise`. A source that cannot be parsed is told only.
    Ask,
    /// The project is built at once, and the session starts again with it. A source that cannot be parsed is told only.
    Build,
}

/// When tests run by themselves, by their categories. Tests without a category of these run whenever something is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TestsConfig {
    /// Categories whose tests run only where somebody asks for them, as with `mainstay test --category NAME`.
    pub on_demand: Vec<String>,
    /// Categories whose tests run after all others, as long as there is time for them.
    pub limited: Vec<String>,
    /// How long all tests of `limited` categories may take in one run, in milliseconds. Those that are left run at a later save, or on demand.
    pub limited_ms: u64,
    /// How many processes may run tests of unsaved texts; each is one session's and takes some 400 MB. The one that was used least
    /// recently ends for another. With 0 there is none.
    pub mirrors: usize,
    /// How long such a process stays when no unsaved text comes, in milliseconds.
    pub mirror_idle_ms: u64,
    /// How much memory the machine must have available (`MemAvailable`) for such a process, in bytes. One that is there ends where less than
    /// half of it is available.
    pub mirror_memory_bytes: u64,
    /// How long all tests of one unsaved text may take, in milliseconds.
    pub buffer_ms: u64,
    /// How long one test of an unsaved text may take, in milliseconds; a newer text waits so long for the test under way. One that then goes
    /// on ends the process.
    pub buffer_test_ms: u64,
    /// Where the lines are known from that tests reach.
    pub coverage: CoverageSource,
    /// How long a measurement of the lines that tests run may take, in milliseconds: then no other test begins.
    pub measure_ms: u64,
    /// How long one test of a measurement may take, in milliseconds. The tests behind one that then goes on are not measured.
    pub measure_test_ms: u64,
}

/// Where the lines are known from that tests reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoverageSource {
    /// From the calls in the project's code, and from measurements where somebody asks for one: nothing runs by itself.
    #[default]
    Calls,
    /// From measurements: where somebody asks for the coverage of code that was not measured, its tests run in the background, in a process of
    /// their own that notes which lines run.
    Measured,
}

impl Default for TestsConfig {
    fn default() -> Self {
        Self {
            on_demand: vec!["integration".to_owned()],
            limited: vec!["slow".to_owned()],
            limited_ms: 10_000,
            mirrors: 2,
            mirror_idle_ms: 600_000,
            mirror_memory_bytes: 1024 * 1024 * 1024,
            buffer_ms: 10_000,
            buffer_test_ms: 2_000,
            coverage: CoverageSource::Calls,
            measure_ms: 600_000,
            measure_test_ms: 10_000,
        }
    }
}

impl TestsConfig {
    /// The policy of each category that has one. What is on demand stays so.
    pub fn policies(&self) -> BTreeMap<String, TestPolicy> {
        let Self { on_demand, limited, limited_ms, .. } = self;
        let milliseconds = u32::try_from(*limited_ms).unwrap_or(u32::MAX);
        let within = if milliseconds == 0 { TestPolicy::OnDemand } else { TestPolicy::Within(milliseconds) };
        let limited = limited.iter().map(|name| (name.clone(), within));
        limited.chain(on_demand.iter().map(|name| (name.clone(), TestPolicy::OnDemand))).collect()
    }
}

/// The settings of pi agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PiConfig {
    /// The program. Without it the pi that Mainstay installed is used, else the one on the `PATH`.
    pub path: Option<PathBuf>,
    /// The provider of the model that a session starts with. Without it pi decides.
    pub provider: Option<String>,
    /// The model that a session starts with.
    pub model: Option<String>,
    /// More arguments for `pi --mode rpc`.
    pub arguments: Vec<String>,
    /// Variables that are added to pi's environment.
    pub environment: BTreeMap<String, String>,
    /// Whether pi has tools that work in the user's other sessions.
    pub live_sessions: bool,
    /// How long a dialog of an extension waits for an answer when the extension does not say, in milliseconds.
    pub dialog_ms: u64,
    /// Whose limits apply where `[limits]` does not say.
    pub limits: WhoseLimits,
}

/// Whose limits apply where `[limits]` does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhoseLimits {
    /// The defaults of Mainstay.
    #[default]
    Own,
    /// The limits of pi-server, where it has one.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetryConfig {
    /// The address of a collector that speaks OTLP over HTTP. Without it nothing is exported.
    pub endpoint: Option<String>,
    /// A file with one header per line, as in `authorization=Bearer TOKEN`.
    pub headers_file: Option<PathBuf>,
    /// The daemon's name in traces and metrics, `mainstay` unless set.
    pub service_name: Option<String>,
    /// The fraction of the traces that start in the daemon which is exported, 1.0 unless set.
    pub sampling_ratio: Option<f64>,
}

impl Config {
    /// Reads settings: the limits that are not among them are the ones that are chosen.
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let config: Self = toml::from_str(text)?;
        match config.pi.limits {
            WhoseLimits::Own => Ok(config),
            WhoseLimits::Upstream => Ok(Self { limits: upstream_limits(text)?, ..config }),
        }
    }

    /// Reads the settings; the defaults where there is no file.
    pub fn load(home: &Home) -> Result<Self, Error> {
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
    let upstreams = mainstay_pi_protocol::upstream_limits();
    let mut limits = toml::Table::try_from(&upstreams).map_err(serde::de::Error::custom)?;
    limits.extend(named);
    limits.try_into()
}

/// Rejects settings that the daemon could not work with, and says which.
fn check(config: &Config) -> Result<(), String> {
    authentication::check(config)?;
    config.remote.check()?;
    tool_workers::check(&config.tool_workers)?;
    bounds::check(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_named_is_taken_and_the_others_keep_their_defaults() {
        let config: Config = toml::from_str("[limits]\ncode-bytes = 10\n[daemon]\nport = 0\n").unwrap();
        assert_eq!(config.limits, Limits { code_bytes: 10, ..Limits::default() });
        assert_eq!(config.daemon.port, Some(0));
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
        assert_eq!(refused, "the principals `a` and `b` have the same token, subject or certificate");
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
    fn categories_have_the_policy_that_is_set() {
        let policies = |text: &str| toml::from_str::<TestsConfig>(text).unwrap().policies();
        let of = |all: &[(&str, TestPolicy)]| {
            all.iter().map(|(name, policy)| ((*name).to_owned(), *policy)).collect()
        };
        let usual = of(&[("integration", TestPolicy::OnDemand), ("slow", TestPolicy::Within(10_000))]);
        assert_eq!(policies(""), usual);
        let own = of(&[("web", TestPolicy::Within(500)), ("db", TestPolicy::OnDemand)]);
        assert_eq!(policies("on-demand = ['db']\nlimited = ['web', 'db']\nlimited-ms = 500"), own);
        assert_eq!(policies("on-demand = []\nlimited-ms = 0"), of(&[("slow", TestPolicy::OnDemand)]));
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        assert!(toml::from_str::<Config>("[limits]\ncode-byte = 10\n").is_err());
    }
}

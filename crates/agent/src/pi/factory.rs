//! What the engine is given to start pi with.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::agent::Model;
use mainstay_model::{AgentState, Capabilities, Error, Limits, SessionId, SessionKind, ThinkingLevel};
use mainstay_os::process::Launch;
use mainstay_runner::{Conversation, Environment, RunnerFactory, RunnerSpec, StartObserver, StartedRunner};
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::live_sessions::{self, LiveSessions};
use super::locate::{FoundPi, Search, choose};
use super::operation_checks;
use super::orphans::ProcessMark;
use super::runner::{self, Start};
use super::session_file::{EntryCounts, session_file};
use super::translation::Timeouts;

/// The file that pi resumes from, among a session's files.
const FILE: &str = "session.jsonl";
/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// How pi is run.
#[derive(Clone, Debug)]
pub struct PiSettings {
    /// Where it is looked for.
    pub search: Search,
    /// Whose model it uses where a session says nothing else; pi's own default without.
    pub provider: Option<String>,
    /// The model that pi starts with.
    pub model: Option<String>,
    /// Further arguments for pi's command line.
    pub arguments: Vec<String>,
    /// What it finds in its environment beside the daemon's own.
    pub environment: BTreeMap<String, String>,
    /// How long a model may say nothing while it works; none for as long as it likes.
    pub silence: Option<Duration>,
    /// How long a dialog of an extension waits for its answer where the extension does not say, in milliseconds.
    pub dialog_ms: u64,
    /// How long pi may take to yield then before it is killed.
    pub grace: Duration,
    /// Where it finds the daemon's sessions; none where it is not to use them.
    pub live_sessions: Option<LiveSessions>,
}

/// Starts pi for sessions of the kinds `pi` and `agent`.
#[derive(Debug)]
pub struct PiAgents {
    settings: PiSettings,
    node: OnceCell<String>,
}

impl PiAgents {
    /// Creates the factory with these settings.
    pub fn new(settings: PiSettings) -> Self {
        Self { settings, node: OnceCell::new() }
    }

    /// Ends what the agents of a lost daemon have left running, before sessions are used again. The agents of these sessions are not lost:
    /// they live on.
    pub async fn end_earlier(&self, living: HashSet<SessionId>) {
        let sessions = self.settings.search.sessions();
        if !sessions.is_dir() {
            return;
        }
        if let Err(error) = spawn_blocking(move || ProcessMark::end_all_in(&sessions, &living)).await {
            tracing::warn!(%error, "what earlier agents left was not looked for");
        }
    }

    /// What is started for a session whose creator has this in its environment.
    fn found(&self, environment: &Environment) -> Result<FoundPi, Error> {
        choose(&self.settings.search.of_session(environment))
            .map_err(|error| Error::KernelUnavailable { reason: error.to_string() })
    }

    /// Where pi keeps its settings, for a session whose creator has this in its environment.
    fn own_folder(&self, session: &Environment) -> Option<PathBuf> {
        const VARIABLE: &str = "PI_CODING_AGENT_DIR";
        let named = self.settings.environment.get(VARIABLE).map(PathBuf::from);
        let variable =
            |name: &str| session.variable(name).map(OsString::from).or_else(|| std::env::var_os(name));
        let inherited = || variable(VARIABLE).map(PathBuf::from);
        let usual = || Some(PathBuf::from(variable("HOME")?).join(".pi/agent"));
        named.or_else(inherited).or_else(usual)
    }

    async fn runtime(&self) -> String {
        let node = self.node.get_or_init(|| async {
            let version = said_version(Path::new("node")).await.unwrap_or_default();
            format!("Node {}", version.trim_start_matches('v')).trim().to_owned()
        });
        node.await.clone()
    }

    fn launch(
        &self,
        found: &FoundPi,
        files: &Files,
        mark: &ProcessMark,
        spec: &RunnerSpec,
        has_model: bool,
    ) -> Launch {
        let PiSettings { provider, model, arguments, environment, live_sessions, .. } = &self.settings;
        let mut given: Vec<OsString> = ["--mode", "rpc", "--session-dir"].map(OsString::from).into();
        given.push(files.folder.clone().into());
        if let Some(file) = &files.file {
            given.extend([OsString::from("--session"), file.clone().into()]);
        }
        // A session that has a model of its own has it in its file.
        let is_chosen = has_model && files.file.is_some();
        let chosen = [("--provider", provider), ("--model", model)];
        for (name, value) in chosen.into_iter().filter(|_| !is_chosen) {
            given.extend(value.iter().flat_map(|value| [OsString::from(name), OsString::from(value)]));
        }
        let live = live_sessions.as_ref().filter(|_| LiveSessions::are_for(spec));
        given.extend(live.iter().flat_map(|_| LiveSessions::arguments(&files.folder)));
        given.extend(operation_checks::arguments(&files.folder));
        given.extend(arguments.iter().map(OsString::from));
        let own = [("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0")];
        let own = own.into_iter().map(|(name, value)| (name.into(), value.into()));
        let configured = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let told = live.iter().flat_map(|live| live.variables(spec));
        let creators = spec.environment.variables().map(|(name, value)| (name.into(), value.into()));
        let environment =
            creators.chain(own).chain(configured).chain(told).chain([mark.variable()]).collect();
        Launch { program: found.program.clone(), arguments: given, environment }
    }
}

/// What pi's own settings say of how it begins.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnSettings {
    default_provider: Option<String>,
    default_model: Option<String>,
    default_thinking_level: Option<ThinkingLevel>,
}

impl OwnSettings {
    /// Those in this folder; nothing where there are none, or none that can be read.
    fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("settings.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

#[async_trait]
impl RunnerFactory for PiAgents {
    fn serves(&self, kind: &SessionKind) -> bool {
        kind.is_agent()
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::AGENT
    }

    fn cancel_grace_ms(&self, _kind: &SessionKind, limits: &Limits) -> u64 {
        limits.agent_cancel_grace_ms
    }

    fn beginning(&self, folder: &Path, environment: &Environment) -> AgentState {
        let own = self.own_folder(environment).map(|folder| OwnSettings::read(&folder)).unwrap_or_default();
        let projects = OwnSettings::read(&folder.join(".pi"));
        let PiSettings { provider, model, .. } = &self.settings;
        let provider = provider.clone().or(projects.default_provider).or(own.default_provider);
        let id = model.clone().or(projects.default_model).or(own.default_model);
        let model = provider.zip(id).map(|(provider, id)| Model {
            provider,
            id,
            name: None,
            context_window: None,
            about: Value::Null,
        });
        let thinking = projects.default_thinking_level.or(own.default_thinking_level);
        AgentState { model, thinking: thinking.unwrap_or_default(), ..AgentState::default() }
    }

    async fn prepare(&self, spec: &RunnerSpec) -> Result<(), Error> {
        self.found(&spec.environment).map(drop)
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let found = self.found(&spec.environment)?;
        let kernel = match found.version.clone() {
            Some(version) => version,
            None => said_version(&found.program).await.unwrap_or_default(),
        };
        let conversation = spec.conversation.clone().unwrap_or_default();
        let state = conversation.state.clone();
        let folder = self.settings.search.sessions().join(spec.session.to_string());
        let mark = ProcessMark::of(&folder);
        let earlier = mark.clone();
        let files = spawn_blocking(move || {
            earlier.end_earlier();
            Files::write(folder, &spec, &conversation).map(|files| (files, spec))
        });
        let (files, spec) = files.await.map_err(|error| failed(&error)).flatten()?;
        let has_model = state.as_ref().is_some_and(|state| state.model.is_some());
        runner::start(Start {
            launch: &self.launch(&found, &files, &mark, &spec, has_model),
            working_directory: &spec.working_directory,
            start_lines: observer.last_lines,
            state,
            timeouts: Timeouts {
                silence: self.settings.silence,
                dialog_ms: self.settings.dialog_ms,
                grace: self.settings.grace,
            },
            entry_counts: files.entry_counts,
            kernel: format!("pi {kernel}").trim().to_owned(),
            runtime: self.runtime().await,
            mark,
        })
        .await
    }

    async fn kept(&self) -> Vec<SessionId> {
        let folders = fs::read_dir(self.settings.search.sessions()).into_iter().flatten().flatten();
        folders.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    async fn forget(&self, session: SessionId) {
        let folder = self.settings.search.sessions().join(session.to_string());
        let removed = spawn_blocking(move || fs::remove_dir_all(folder)).await;
        if let Err(error) = removed.map_err(io::Error::other).flatten() {
            // The next collection finds them again.
            tracing::warn!(%session, %error, "an agent's files are not removed");
        }
    }
}

/// What pi finds of its session.
struct Files {
    /// The folder for its own.
    folder: PathBuf,
    /// The file it resumes from; none where nothing was said.
    file: Option<PathBuf>,
    entry_counts: EntryCounts,
}

impl Files {
    /// Writes it anew: what an earlier pi left is of no use, since the transcript has it.
    fn write(folder: PathBuf, spec: &RunnerSpec, conversation: &Conversation) -> Result<Self, Error> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| failed(&error))?;
        for entry in fs::read_dir(&folder).map_err(|error| failed(&error))?.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "jsonl") {
                fs::remove_file(entry.path()).map_err(|error| failed(&error))?;
            }
        }
        for (file, source) in [
            (live_sessions::FILE, live_sessions::EXTENSION),
            (operation_checks::FILE, operation_checks::EXTENSION),
        ] {
            fs::write(folder.join(file), source).map_err(|error| failed(&error))?;
        }
        let Some(written) = session_file(spec.session, &spec.working_directory, conversation) else {
            return Ok(Self { folder, file: None, entry_counts: EntryCounts::default() });
        };
        let path = folder.join(FILE);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(written.text.as_bytes())).map_err(|error| failed(&error))?;
        Ok(Self { folder, file: Some(path), entry_counts: written.entry_counts })
    }
}

/// What a program answers when it is asked for its version.
async fn said_version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    let said = command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true).output();
    let said = tokio::time::timeout(VERSION_LIMIT, said).await.ok()?.ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

fn failed(error: &impl std::fmt::Display) -> Error {
    Error::WorkerFailed { reason: format!("its session's files cannot be written: {error}") }
}

//! What the engine is given to start tool workers with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;
use mainstay_model::{Capabilities, Capability, Error, SessionKind};
use mainstay_os::process::Launch;
use mainstay_runner::{RunnerFactory, RunnerSpec, StartObserver, StartedRunner};

use crate::inventory::remember;
use crate::runner::{Start, start};

/// In which variable a worker finds the token that its client shows.
const TOKEN: &str = "ARCP_TOKEN";

/// How workers are run. Their environments may hold secrets.
#[derive(Clone)]
pub struct ToolWorkerSettings {
    /// The command of each worker, the program first, and what it finds in its environment beside that of its session's creator, by the kind of
    /// session that it serves.
    pub workers: BTreeMap<SessionKind, (Vec<String>, BTreeMap<String, String>)>,
    /// The folder where it is remembered which tools a worker offers.
    pub inventories: PathBuf,
    /// How many bytes the result of a call may have.
    pub value_bytes: usize,
}

/// Starts the tool workers that the settings name.
pub struct ToolWorkers {
    settings: ToolWorkerSettings,
}

impl ToolWorkers {
    /// Creates the factory with these settings.
    pub const fn new(settings: ToolWorkerSettings) -> Self {
        Self { settings }
    }

    fn launch(&self, spec: &RunnerSpec, token: &str) -> Result<Launch, Error> {
        let kind = &spec.kind;
        let missing = || Error::ToolWorkerUnavailable {
            reason: format!("`config.toml` has no `command` in `[tool-workers.{kind}]`"),
        };
        let (command, environment) = self.settings.workers.get(kind).ok_or_else(missing)?;
        let (program, arguments) = command.split_first().ok_or_else(missing)?;
        let creators = spec.environment.variables().map(|(name, value)| (name.into(), value.into()));
        let configured = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let environment = creators.chain(configured).chain([(TOKEN.into(), token.into())]).collect();
        let arguments = arguments.iter().map(OsString::from).collect();
        Ok(Launch { program: program.into(), arguments, environment })
    }
}

#[async_trait]
impl RunnerFactory for ToolWorkers {
    fn serves(&self, kind: &SessionKind) -> bool {
        self.settings.workers.contains_key(kind)
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::KERNEL.with(Capability::Calls)
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let token = format!("{:032x}", rand::random::<u128>());
        let launch = self.launch(&spec, &token)?;
        let kind = spec.kind.clone();
        let (started, tools) = start(Start {
            launch: &launch,
            working_directory: &spec.working_directory,
            start_lines: observer.last_lines,
            kind: spec.kind,
            token,
            value_bytes: self.settings.value_bytes,
        })
        .await?;
        if let Err(error) = remember(&self.settings.inventories, &kind, &tools) {
            // They are known again at the next start.
            tracing::warn!(%kind, %error, "the tools of a worker are not remembered");
        }
        Ok(started)
    }
}

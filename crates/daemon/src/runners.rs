//! What makes the workers of this machine: a factory for each kind of session, from settings that another process can be told.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mainstay_home::Home;
use mainstay_home::config::{Config, FsharpConfig, PiConfig, ToolWorkerConfig};
use mainstay_model::{Limits, SessionId, SessionKind};
use mainstay_runner::RunnerFactory;
use mainstay_tool_worker::{ToolWorkerSettings, ToolWorkers};
use serde::{Deserialize, Serialize};

use crate::fsharp::FsharpKernel;
use crate::jupyter::JupyterKernels;
use crate::pi;

/// Everything that the factories of the runners need to know. It may hold secrets, in what pi finds in its environment or is told by its
/// arguments: [`Debug`] shows only the home.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerSettings {
    /// The home folder of the daemon.
    home: Home,
    fsharp: FsharpConfig,
    pi: PiConfig,
    tool_workers: BTreeMap<SessionKind, ToolWorkerConfig>,
    limits: Limits,
}

impl RunnerSettings {
    /// Those of a daemon with this home and these settings.
    pub fn new(home: &Home, config: &Config) -> Self {
        let Config { fsharp, pi, tool_workers, limits, .. } = config.clone();
        Self { home: home.clone(), fsharp, pi, tool_workers, limits }
    }

    /// The factories of all kinds; their workers have their sockets in this folder. The first that serves a kind makes its workers.
    pub fn factories(&self, sockets: &Path) -> Vec<Arc<dyn RunnerFactory>> {
        let Self { home, fsharp, pi, tool_workers: _, limits } = self;
        vec![
            // Their kinds could be names of kernels too: what the user has named himself comes first.
            Arc::new(self.tool_workers()),
            Arc::new(FsharpKernel::new(home, fsharp.clone(), sockets.to_owned(), limits)),
            Arc::new(JupyterKernels::new(home, sockets.to_owned(), limits)),
            #[cfg(feature = "failpoints")]
            Arc::new(crate::scripted::ScriptedAgents),
            Arc::new(pi::agents(home, pi.clone(), limits)),
        ]
    }

    fn tool_workers(&self) -> ToolWorkers {
        let worker = |(kind, config): (&SessionKind, &ToolWorkerConfig)| {
            (kind.clone(), (config.command.clone(), config.environment.clone()))
        };
        ToolWorkers::new(ToolWorkerSettings {
            workers: self.tool_workers.iter().map(worker).collect(),
            inventories: self.home.tool_inventories(),
            value_bytes: self.limits.value_bytes,
        })
    }

    /// The factory of one kind; none where nothing on this machine serves the kind.
    pub fn factory(&self, kind: &SessionKind, sockets: &Path) -> Option<Arc<dyn RunnerFactory>> {
        self.factories(sockets).into_iter().find(|factory| factory.serves(kind))
    }

    /// Ends the agents that an earlier daemon of this home left, but for those of sessions that live on. The store must be the caller's.
    pub async fn end_earlier(&self, living: HashSet<SessionId>) {
        pi::agents(&self.home, self.pi.clone(), &self.limits).end_earlier(living).await;
    }
}

impl fmt::Debug for RunnerSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunnerSettings").field("home", &self.home.folder()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings of a home that has these in its file.
    fn settings(text: &str) -> RunnerSettings {
        let home: Home = serde_json::from_str(r#""/home/user/.mainstay""#).unwrap();
        RunnerSettings::new(&home, &toml::from_str(text).unwrap())
    }

    #[test]
    fn settings_are_the_same_in_another_process_and_show_no_secret() {
        let chosen = settings(
            r#"
            [fsharp]
            dotnet = "/opt/dotnet"
            fsi-args = "--define:X"
            opens = "none"
            [pi]
            arguments = ["--api-key=secret"]
            environment = { KEY = "secret" }
            [tool-workers.pricing]
            command = ["python3", "tools.py"]
            environment = { KEY = "secret" }
            [limits]
            profile-ms = 7
            "#,
        );
        let told = serde_json::to_string(&chosen).unwrap();
        assert!(told.contains("secret"), "{told}");
        assert_eq!(serde_json::from_str::<RunnerSettings>(&told).unwrap(), chosen);
        assert_eq!(format!("{chosen:?}"), r#"RunnerSettings { home: "/home/user/.mainstay", .. }"#);
    }

    #[test]
    fn each_kind_has_its_factory() {
        let settings = settings("[tool-workers.pricing]\ncommand = ['tools']");
        for kind in ["fsharp", "agent", "python3", "pricing"].map(|kind| SessionKind::new(kind).unwrap()) {
            let factory = settings.factory(&kind, Path::new("/run")).unwrap();
            assert!(factory.serves(&kind), "{kind}");
        }
    }
}

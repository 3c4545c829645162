//! How far a start is. That is no fact: it is stored nowhere.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How far a session is that warms up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WarmUpProgress {
    /// The phase that the warm-up has reached.
    #[serde(default, skip_serializing_if = "WarmUpPhase::is_replay")]
    pub phase: WarmUpPhase,
    /// So many of it are.
    pub done: u32,
    /// Of so many; 0 where that is not known.
    pub total: u32,
}

/// What a worker does before its session is Ready, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WarmUpPhase {
    /// It is found out what the project consists of.
    Project,
    /// The project is built, where it was not.
    Build,
    /// Its assemblies are loaded.
    Assemblies,
    /// Its namespaces and modules are opened.
    Namespaces,
    /// The user's scripts run.
    Profile,
    /// The submissions that define the session run again.
    #[default]
    Replay,
}

impl WarmUpPhase {
    fn is_replay(&self) -> bool {
        *self == Self::Replay
    }
}

impl WarmUpProgress {
    /// A phase of which nobody knows how far it is.
    pub const fn begun(phase: WarmUpPhase) -> Self {
        Self { phase, done: 0, total: 0 }
    }
}

impl std::fmt::Display for WarmUpProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { phase, done, total } = self;
        let what = match phase {
            WarmUpPhase::Project => "looking for what the project consists of",
            WarmUpPhase::Build => "building the project",
            WarmUpPhase::Assemblies => "assemblies loaded",
            WarmUpPhase::Namespaces => "namespaces and modules opened",
            WarmUpPhase::Profile => "scripts of the profile ran",
            WarmUpPhase::Replay => "submissions ran again",
        };
        match total {
            0 => f.write_str(what),
            total => write!(f, "{done} of {total} {what}"),
        }
    }
}

/// Says how far a start is. What nobody hears is lost.
#[derive(Clone, Default)]
pub struct Report(Option<Arc<dyn Fn(WarmUpProgress) + Send + Sync>>);

impl Report {
    /// Creates a report that calls `hear` for every step.
    pub fn to(hear: impl Fn(WarmUpProgress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Reports that the warm-up has come this far.
    pub fn say(&self, progress: WarmUpProgress) {
        if let Some(hear) = &self.0 {
            hear(progress);
        }
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Report")
    }
}

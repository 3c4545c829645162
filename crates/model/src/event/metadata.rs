//! What goes with every event: where it comes from, and what it belongs to.

use serde::{Deserialize, Serialize};

use crate::fingerprint::EnvironmentFingerprint;
use crate::id::{CommandId, Principal, Seq};

/// Who caused an event, and how it hangs together with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The source that caused the event.
    pub source: Source,
    /// The command it belongs to: a command's events share this from acceptance to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<CommandId>,
    /// The earlier event of this session that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation: Option<Seq>,
    /// What the code ran against, where it is known: the references of the last `environmentChanged`, and the runtime of the last
    /// `warmUpCompleted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentFingerprint>,
}

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A client, by a command.
    Client {
        /// The principal for whom the client acts.
        principal: Principal,
        /// Through what: `terminal`, `cli`, `mcp:NAME`.
        name: String,
    },
    /// The worker of the session.
    Worker,
    /// The daemon itself, without a client.
    System,
}

impl Source {
    /// On whose behalf. What the daemon and its workers do by themselves is the local principal's.
    pub fn principal(&self) -> Principal {
        match self {
            Self::Client { principal, .. } => principal.clone(),
            Self::Worker | Self::System => Principal::local(),
        }
    }
}

//! Which events someone wants to hear of. Pure; the engine's subscriptions pass over the others.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::event::{Event, EventKind, Source};
use crate::id::{CommandId, SessionId};

/// Which events. What is left out holds nothing back, so the default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct EventFilter {
    /// Of one of these sessions; of any where empty.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub sessions: BTreeSet<SessionId>,
    /// Of one of these kinds; of any where empty.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<EventKind>,
    /// Return only events that this source caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// Return only events of this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<CommandId>,
}

impl EventFilter {
    /// Whether the event is wanted.
    pub fn matches(&self, event: &Event) -> bool {
        (self.sessions.is_empty() || self.sessions.contains(&event.session))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.as_str() == event.body.kind()))
            && self.source.as_ref().is_none_or(|source| source.names(&event.metadata.source))
            && (self.correlation.is_none() || self.correlation == event.metadata.correlation)
    }
}

/// Who causes events, in a word: `worker`, `system` (the daemon itself), or the name of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum SourceName {
    /// Clients of this name, whoever they act for.
    Client(String),
    /// The worker of the session.
    Worker,
    /// The daemon itself, without a client.
    System,
}

impl SourceName {
    fn names(&self, source: &Source) -> bool {
        match (self, source) {
            (Self::Client(wanted), Source::Client { name, .. }) => wanted == name,
            (Self::Worker, Source::Worker) | (Self::System, Source::System) => true,
            (
                Self::Client(_) | Self::Worker | Self::System,
                Source::Client { .. } | Source::Worker | Source::System,
            ) => false,
        }
    }
}

impl std::str::FromStr for SourceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "" => Err(Error::InvalidArgument {
                argument: "source".to_owned(),
                reason: "it is `worker`, `system`, or the name of a client".to_owned(),
            }),
            "worker" => Ok(Self::Worker),
            "system" => Ok(Self::System),
            name => Ok(Self::Client(name.to_owned())),
        }
    }
}

impl TryFrom<String> for SourceName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<SourceName> for String {
    fn from(source: SourceName) -> Self {
        match source {
            SourceName::Client(name) => name,
            SourceName::Worker => "worker".to_owned(),
            SourceName::System => "system".to_owned(),
        }
    }
}

//! Places in the fold of a session's jobs, what the fold knows there, and how far its client has come.

use mainstay_model::grant::Grants;
use mainstay_model::{AskId, CommandId, Position, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::job_origin::JobOrigin;
use crate::observer::Observer;

/// A place in the fold of a session's jobs, with what the fold knows there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Base {
    /// The last event before it.
    pub(crate) position: Position,
    /// The number of the last message before it.
    pub(crate) seq: u64,
    /// The jobs that are told of further.
    pub(crate) jobs: Vec<JobAtBase>,
    /// Those who observe jobs from here on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) observers: Vec<Observer>,
}

/// How many messages a session had been told up to a place. Where the fold counts others there when the log is read again, events have vanished,
/// or are seen no more, and its numbers are not those that the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    pub(crate) position: Position,
    /// The joins that the fold had come to.
    pub(crate) joined: usize,
    pub(crate) seq: u64,
}

/// A place in the fold from which it may begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mark {
    pub(crate) base: Base,
    /// The joins that the fold has come to.
    pub(crate) joined: usize,
}

/// A job that has not ended at a place in the fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobAtBase {
    pub(crate) job: CommandId,
    /// The session of the engine in which it runs.
    pub(crate) home: SessionId,
    /// Whether this session submitted it.
    pub(crate) is_own: bool,
    /// What it asks, and is not answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asks: Vec<AskId>,
    /// What was told of it; none where it was only joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<ToldAtBase>,
}

/// What was told of a job before a place in the fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToldAtBase {
    /// Whether it has begun to run.
    pub(crate) has_begun: bool,
    /// Whether it is work that an agent may think about, and no code.
    #[serde(default)]
    pub(crate) is_conversation: bool,
    pub(crate) submitted_at: Timestamp,
    pub(crate) origin: JobOrigin,
    /// The number of the last message about it.
    pub(crate) last_seq: u64,
    /// What an agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_text: Option<String>,
    /// What it may do, with what it has spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grants: Option<Box<Grants>>,
}

/// The place of a message: an event, and the number of the message among those of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) index: u16,
}

/// What a client has of what its session was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// All messages up to this number.
    Seq(u64),
    /// All messages there are.
    All,
    /// All up to this message, whose place may be known.
    Message { id: String, place: Option<Place> },
}

impl Reached {
    /// Whether the client surely has all that was told up to this place in the fold.
    pub(crate) fn is_behind(&self, base: &Base) -> bool {
        match self {
            Self::Seq(seq) => base.seq <= *seq,
            Self::All => true,
            Self::Message { place, .. } => place.is_some_and(|place| base.position < place.position),
        }
    }
}

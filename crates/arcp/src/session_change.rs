//! Changes of what a session is told of, beside the jobs that it submits: jobs that it joins and leaves, and its observers. Each is stored with its place in
//! the fold.

use mainstay_model::{CommandId, Position, Seq, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fold_place::{Place, ToldAtBase};
use crate::observer::Observer;

/// A change of what a session is told of, beside the jobs that it submits: another's job, or one of its own that had ended when it was submitted
/// again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Join {
    /// The event behind which the change was made.
    pub(crate) at: Position,
    /// The message that asked for it, which may come twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    pub(crate) change: Change,
}

/// What became of a job for a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Change {
    /// The session is told of the job from there on.
    Joined {
        job: CommandId,
        /// The session of the engine in which the job runs.
        home: SessionId,
        /// What is told of what happened before.
        history: History,
        /// Whether the session submitted the job too.
        is_own: bool,
        /// Whether the job ran already.
        #[serde(default)]
        has_begun: bool,
        /// As what the session is told of it, where that is its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<ToldAtBase>,
    },
    /// The session is told no more of it.
    Left { job: CommandId },
    /// The session is told of all jobs that an observer wants, from there on.
    Observed {
        observer: Observer,
        /// The place of the message behind which it begins, where that was before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Place>,
        /// The jobs that were under way then.
        jobs: Vec<JobUnderWay>,
    },
    /// A subscription of an observer has ended.
    ObserverEnded { subscription: String },
    /// A subscription of an observer was ended, since the observer lay too far behind.
    ObserverOverflowed {
        subscription: String,
        /// The message behind which the observer can go on.
        after: String,
        /// When it was ended.
        ended_at: Timestamp,
    },
}

/// A job that was under way when a session began to be told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobUnderWay {
    pub(crate) job: CommandId,
    /// The session of the engine that has it.
    pub(crate) home: SessionId,
    /// The event that accepted it, or that began it.
    pub(crate) from: Seq,
}

/// What is told of what happened to a job before it was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum History {
    /// Nothing of it is told.
    Nothing,
    /// Only the questions are told that wait for an answer, with their votes.
    Questions,
    /// All of it is told.
    All,
    /// What was told after this message of the event at this place is told.
    After(Place),
    /// Only how it ended, where it has.
    End,
}

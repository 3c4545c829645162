//! What events say of jobs and workers: output streams, the reasons of warm-ups, cancellation, blame and completed parts.

use serde::{Deserialize, Serialize};

use crate::eval::Binding;
use crate::id::JobId;

/// A stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutputStream {
    /// The standard output of the worker.
    Stdout,
    /// The standard error of the worker.
    Stderr,
}

/// Why a worker is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WarmUpReason {
    /// The session is new, or was idle.
    Started,
    /// A reset: definitions are dropped.
    Reset,
    /// A hard reset: definitions and the worker are dropped.
    HardReset,
    /// The definitions run again against the files that are there now.
    Refreshed,
    /// The worker was killed to end a cancelled job.
    Cancelled,
    /// The worker was lost.
    WorkerLost,
    /// The daemon was lost, and its workers with it.
    DaemonLost,
    /// Entries were put into the transcript: the session is built anew with what they define. Of an agent: a summary, too.
    Merged,
}

/// How a cancelled job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CancelEnding {
    /// The code yielded to the interrupt.
    Yielded,
    /// It did not within the grace: the worker was killed.
    Killed,
}

/// Whose code ended a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// The job: the one that ran, or one that had left something running.
    pub job: JobId,
    /// Whether the worker said so. Otherwise it was lost without a word while the job's code was run again, and only a second
    /// time makes sure of it. Code that surely ended a worker is not run again to rebuild the session.
    pub is_sure: bool,
}

/// The part of a cancelled submission that had run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletedPart {
    /// How many bytes of the code, from its beginning.
    pub bytes: usize,
    /// The names that the code defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
}

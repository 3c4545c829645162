//! Replay: which submissions run again so that a new worker has a session's definitions, and which of them then give
//! something else than before.

mod comparison;
mod divergence;
mod list;
mod snapshot;

use serde_json::Value;

use crate::command_line::CommandLine;
use crate::error::Error;
use crate::id::{AskId, JobId, Seq, SessionId};

pub(crate) use self::comparison::beginning;
pub use self::comparison::{EvalValues, ReplayComparison};
pub(crate) use self::divergence::LAST_VALUE;
pub use self::divergence::{Divergence, DivergenceKind, NAMES_KEPT};
pub use self::list::ReplayList;
pub use self::snapshot::{RanAgain, RerunReason, RestorePlan, Restored, Snapshot, SnapshotCell};

/// What must run again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The submissions, in order.
    pub items: Vec<ReplayItem>,
    /// The requests of those left out because they had ended a worker.
    pub left_out: Vec<(SessionId, Seq)>,
    /// The requests of those that changed the session and cannot run again, and why: their code was withheld, or what it was answered.
    pub withheld: Vec<(SessionId, Seq, DivergenceKind)>,
}

/// What a submission asked when it first ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAsk {
    ask: AskId,
    /// What it was answered, or why there was no answer.
    pub answer: Result<Value, Error>,
}

/// One submission to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayItem {
    /// The job that ran it the first time.
    pub job: JobId,
    /// The session in which it ran then.
    pub session: SessionId,
    /// The event that accepted it.
    pub requested: Seq,
    /// The code to be run again.
    pub code: String,
    /// The file whose text it is.
    pub file: Option<String>,
    /// The command line that it was given.
    pub command_line: Option<CommandLine>,
    /// What it asked the first time, and was answered: it is not asked anew.
    pub asked: Vec<RecordedAsk>,
    /// Whether it ran to its end the first time.
    pub succeeded: bool,
    /// What it gave the first time, where that is known.
    gave: Option<EvalValues>,
    /// Whether the compiler had nothing to say of it the first time, where that is known.
    was_silent: bool,
}

/// The longest code that a kernel is told of ahead of its turn, in bytes.
const AHEAD_BYTES: usize = 8192;

impl ReplayItem {
    /// Whether a kernel may run it together with what comes before and after it, if it finds that all of them only define: it asked
    /// nothing, and there was nothing to tell of it but what it defined.
    pub fn may_run_together(&self) -> bool {
        let is_told = self.succeeded && self.was_silent && self.asked.is_empty();
        is_told && self.code.len() <= AHEAD_BYTES
    }

    /// The names of what it gave.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.gave.iter().flat_map(|gave| gave.names())
    }
}

#[cfg(test)]
mod tests;

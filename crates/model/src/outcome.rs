//! Outcomes: the one stored answer to a command.

use serde::{Deserialize, Serialize};

use crate::agent::WorkOutcome;
use crate::diagnostic::Diagnostic;
use crate::display::Display;
use crate::error::Error;
use crate::eval::{Binding, EvalResult, RaisedError, WorkerExit};
use crate::event::{OutputStream, Source};
use crate::id::{AskId, CommandId, JobId, Seq, SessionId, Version};
use crate::runner_notice::JobEnding;

/// The answer to a command. It is stored in the transaction of the command's last events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// The command was carried out.
    Done {
        /// What came of it.
        response: Response,
    },
    /// It was accepted and could not be done.
    Failed {
        /// The reason why the command failed.
        error: Error,
    },
}

impl Outcome {
    /// What is not stored of it, for who asked.
    pub fn live_mut(&mut self) -> Option<&mut WithheldResult> {
        match self {
            Self::Done { response: Response::Evaluated(outcome) } => outcome.live.as_deref_mut(),
            Self::Done { .. } | Self::Failed { .. } => None,
        }
    }
}

/// The answer to a command as its client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The one stored answer.
    pub outcome: Outcome,
    /// The session's version once the command had ended.
    pub version: Version,
    /// Whether an earlier submission of the same command had brought the answer about.
    pub is_replay: bool,
}

/// What came of a command that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "response", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Response {
    /// A session came to be.
    Created {
        /// The session that was created.
        session: SessionId,
    },
    /// A session came to be that begins with entries of another.
    Forked {
        /// The session that the fork created.
        session: SessionId,
        /// How many entries the fork inherits.
        entries: u64,
        /// How many were asked for, where that would have parted an answer from what it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u64>,
    },
    /// A summary stands for the beginning of the transcript.
    Compacted {
        /// The event that says so.
        seq: Seq,
        /// For how many entries.
        entries: u64,
        /// How many were asked for, where that would have parted what belongs together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u64>,
    },
    /// Entries of another session are in the transcript.
    Merged {
        /// Its last event for this command.
        seq: Seq,
        /// How many entries were merged.
        entries: u64,
        /// Behind how many they stand.
        at: u64,
        /// Behind how many they were to stand, where that would have parted what belongs together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u64>,
    },
    /// An eval ended, well or not.
    Evaluated(EvalOutcome),
    /// A job of an agent ended, well or not.
    Worked(WorkOutcome),
    /// The running job was asked to stop; its own outcome tells how it ended.
    Cancelling {
        /// The job that is being cancelled.
        job: JobId,
    },
    /// The command waited for its turn, and will not run: its own outcome says so.
    Withdrawn {
        /// The command that was withdrawn.
        command: CommandId,
    },
    /// An ask was answered, or its default was taken.
    Answered {
        /// The ask that was answered.
        ask: AskId,
        /// The answer that was accepted.
        value: serde_json::Value,
        /// By whom; the daemon took the default.
        by: Source,
    },
    /// An answer was counted; more principals must give the same.
    Voted {
        /// The ask that was answered.
        ask: AskId,
        /// The event that says so.
        seq: Seq,
        /// How many principals have given this answer.
        votes: u32,
        /// How many more must give it.
        missing: u32,
    },
    /// The session's event at `seq` says it all.
    Recorded {
        /// Its last event for this command.
        seq: Seq,
    },
}

/// How an eval ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "ending", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EvalEnding {
    /// It ran to its end.
    Completed,
    /// The code has errors and did not run.
    Rejected,
    /// The code raised an exception that it did not catch.
    Raised {
        /// The exception that was raised.
        error: RaisedError,
    },
    /// Someone cancelled the eval.
    Cancelled,
    /// It was cut off: its worker was lost, or the daemon, or the daemon went down.
    Interrupted,
    /// It ended its worker.
    WorkerExited {
        /// How the worker's process ended.
        exit: WorkerExit,
    },
}

impl EvalEnding {
    /// Its name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Rejected => "rejected",
            Self::Raised { .. } => "raised",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::WorkerExited { .. } => "workerExited",
        }
    }
}

/// What came of an eval. Its output stands in the events between `requested` and `completed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalOutcome {
    /// The job that ran it.
    pub job: JobId,
    /// The event that accepted it.
    pub requested: Seq,
    /// The event that ended it.
    pub completed: Seq,
    /// How the eval ended.
    #[serde(flatten)]
    pub ending: EvalEnding,
    /// The last expression's value as the language's prompt prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The type of the value, as the language writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// What the code defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// What the language's own prompt would have printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display: String,
    /// The compiler's warnings and errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether its code, and what it gave and printed, is stored nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// What it gave and printed, for who asked alone: it is never written.
    #[serde(skip)]
    pub live: Option<Box<WithheldResult>>,
}

/// What came of code that is withheld.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WithheldResult {
    /// The exception that was not caught.
    pub error: Option<RaisedError>,
    /// The result that the code returned.
    pub result: EvalResult,
    /// What it printed and showed, in order.
    pub put_out: Vec<OutputItem>,
}

/// What code put out while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputItem {
    /// Text that the code printed.
    Printed(OutputStream, String),
    /// Something that the code displayed.
    Displayed(Box<Display>),
}

impl WithheldResult {
    pub(crate) fn of(ending: &JobEnding, result: EvalResult) -> Self {
        let error = match ending {
            JobEnding::Raised(error) => Some(error.clone()),
            JobEnding::Completed | JobEnding::Rejected | JobEnding::Interrupted { .. } => None,
        };
        Self { error, result, put_out: Vec::new() }
    }
}

// By hand: what is shown for debugging ends up in logs.
impl std::fmt::Debug for WithheldResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live(withheld)")
    }
}

impl EvalOutcome {
    /// Whether the code ran to its end.
    pub const fn success(&self) -> bool {
        matches!(self.ending, EvalEnding::Completed)
    }

    /// The outcome of a job that ended so, with what it gave.
    pub(crate) fn new(
        job: JobId,
        requested: Seq,
        completed: Seq,
        ending: EvalEnding,
        result: EvalResult,
        duration_ms: u64,
    ) -> Self {
        let EvalResult { value, value_type, bindings, display, diagnostics, uses_last: _, touched: _ } =
            result;
        Self {
            job,
            requested,
            completed,
            ending,
            value,
            value_type,
            bindings,
            display,
            diagnostics,
            duration_ms,
            withheld: false,
            live: None,
        }
    }
}

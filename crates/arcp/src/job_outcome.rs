//! How far a job is, and how it ended, whatever the dialect.

use mainstay_model::event::CancelEnding;
use mainstay_model::{Error, EvalEnding, EvalResult, Failure, Outcome, Response, WorkEnding};
use serde_json::{Value, json};

use crate::job_news::JobEnd;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It was accepted, and waits for its turn.
    Waits,
    /// It has begun, and runs.
    Runs,
    /// It did what it was to do.
    Done,
    /// It did not succeed.
    Failed,
    /// It was told to stop.
    Cancelled,
    /// It took longer than it may.
    TimedOut,
}

impl JobState {
    /// Whether the job has ended.
    pub(crate) const fn is_terminal(self) -> bool {
        !matches!(self, Self::Waits | Self::Runs)
    }

    /// How far a job is whose command has this outcome.
    pub(crate) fn of_stored(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Failed { error } => FailureCause::Refused(error.clone()).state(),
            Outcome::Done { response: Response::Evaluated(eval) } => match &eval.ending {
                EvalEnding::Completed => Self::Done,
                EvalEnding::Cancelled => Self::Cancelled,
                _ => Self::Failed,
            },
            Outcome::Done { response: Response::Worked(work) } => match &work.ending {
                WorkEnding::Done { .. } => Self::Done,
                WorkEnding::Cancelled { .. } => Self::Cancelled,
                WorkEnding::Failed { .. } | WorkEnding::Interrupted => Self::Failed,
            },
            Outcome::Done { .. } => Self::Done,
        }
    }
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobOutcome {
    /// It did what it was to do, with this result.
    Done(Value),
    /// It did not succeed.
    Failed(JobFailure),
}

/// Why a job did not succeed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobFailure {
    pub(crate) cause: FailureCause,
    /// The same for people.
    pub(crate) message: String,
    /// More about it, in the words of the engine.
    pub(crate) details: Option<Value>,
}

/// What made a job fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailureCause {
    /// Its code raised an exception, had errors or ended its worker; or the agent says so.
    Job,
    /// It was told to stop, and did.
    Cancelled,
    /// It was told to stop, and its worker had to be killed.
    Killed,
    /// It was told to stop within a time, did not, and its worker was killed.
    Overdue,
    /// It took longer than it may.
    TimedOut,
    /// Its worker, or the machine, was lost.
    Interrupted,
    /// It was refused, and never began, or was denied while it ran.
    Refused(Error),
}

impl FailureCause {
    fn state(&self) -> JobState {
        match self {
            Self::Cancelled
            | Self::Killed
            | Self::Overdue
            | Self::Refused(Error::Cancelled | Error::ParentEnded { .. }) => JobState::Cancelled,
            Self::TimedOut | Self::Refused(Error::TimedOut { .. }) => JobState::TimedOut,
            Self::Job | Self::Interrupted | Self::Refused(_) => JobState::Failed,
        }
    }
}

impl JobOutcome {
    /// What the end of a job comes to; `last_text` is what an agent said last.
    pub(crate) fn of(end: &JobEnd<'_>, last_text: Option<&str>) -> Self {
        let failed = |cause, message: String, details| Self::Failed(JobFailure { cause, message, details });
        match end {
            JobEnd::Evaluated(result) => Self::Done(result.tool_value().unwrap_or_else(|| evaluated(result))),
            JobEnd::Done(value) => {
                Self::Done(json!({ "text": last_text.unwrap_or_default(), "value": value }))
            }
            JobEnd::Failed { failure, result } => {
                let details = json!({ "failure": failure, "result": evaluated(result) });
                failed(FailureCause::Job, failure_text(failure, result), Some(details))
            }
            JobEnd::NotDone(message) => failed(FailureCause::Job, (*message).to_owned(), None),
            JobEnd::Cancelled(CancelEnding::Yielded) => {
                failed(FailureCause::Cancelled, "the job was cancelled".to_owned(), None)
            }
            JobEnd::Overdue(grace_ms) => {
                let message = format!("the job did not stop within {grace_ms} ms, and its worker was killed");
                failed(FailureCause::Overdue, message, None)
            }
            JobEnd::Cancelled(CancelEnding::Killed) => {
                let message = "the job was cancelled; its worker had to be killed";
                failed(FailureCause::Killed, message.to_owned(), None)
            }
            JobEnd::TimedOut(limit_ms) => {
                failed(FailureCause::TimedOut, format!("the job took longer than {limit_ms} ms"), None)
            }
            JobEnd::Denied(error) => failed(FailureCause::Refused((*error).clone()), error.to_string(), None),
            JobEnd::Interrupted => {
                let message = "what ran the job was lost; the job is not run again by itself";
                failed(FailureCause::Interrupted, message.to_owned(), None)
            }
            JobEnd::Left(Some(error)) => {
                failed(FailureCause::Refused((*error).clone()), error.to_string(), None)
            }
            JobEnd::Left(None) => Self::Done(Value::Null),
        }
    }

    /// How far the job is with it.
    pub(crate) fn state(&self) -> JobState {
        match self {
            Self::Done(_) => JobState::Done,
            Self::Failed(failure) => failure.cause.state(),
        }
    }
}

/// What code gave that ran to its end.
fn evaluated(result: &EvalResult) -> Value {
    json!({
        "value": result.value,
        "type": result.value_type,
        "display": result.display,
        "diagnostics": result.diagnostics,
    })
}

fn failure_text(failure: &Failure, result: &EvalResult) -> String {
    match failure {
        Failure::Rejected => {
            let first = result.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).next();
            format!("the code has errors: {}", first.unwrap_or("see the diagnostics"))
        }
        Failure::Raised { error } => format!("{}: {}", error.kind, error.message),
        Failure::WorkerExited { exit } => exit.of_code(),
    }
}

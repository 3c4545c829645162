//! How a job ended, as the terminal message of dialect B says it. Source: draft-arcp-1.1, 7.3, 8.4 and 12.

use mainstay_arcp_protocol::b::{ErrorCode, FinalStatus, JobStatus};
use mainstay_model::event::CancelEnding;
use mainstay_model::{EvalResult, Failure};
use serde_json::{Value, json};

use super::errors::payload;
use crate::job_news::JobEnd;

/// The code of a job whose code raised an exception, had errors, or ended its worker. Source: draft-arcp-02, 12: what an agent reports as a
/// failure of its own has a code that is not the protocol's.
const JOB_FAILED: &str = "JOB_FAILED";
/// The code of a job that was cut off because what ran it was lost.
const INTERRUPTED: &str = "INTERRUPTED";

/// The end of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Success { result: Value },
    Error { status: FinalStatus, code: String, message: String, retryable: bool, details: Option<Value> },
}

/// What the end of a job is told as; `said` is what an agent said last.
pub(super) fn outcome_of(end: &JobEnd<'_>, said: Option<&str>) -> Outcome {
    match end {
        JobEnd::Evaluated(result) => Outcome::Success { result: evaluated(result) },
        JobEnd::Done(value) => {
            let text = said.unwrap_or_default();
            Outcome::Success { result: json!({ "text": text, "value": value }) }
        }
        JobEnd::Failed { failure, result } => {
            let details = json!({ "failure": failure, "result": evaluated(result) });
            failed(JOB_FAILED, failure_text(failure, result), Some(details))
        }
        JobEnd::NotDone(message) => failed(JOB_FAILED, (*message).to_owned(), None),
        JobEnd::Cancelled(ending) => Outcome::Error {
            status: FinalStatus::Cancelled,
            code: ErrorCode::Cancelled.as_str().to_owned(),
            message: match ending {
                CancelEnding::Yielded => "the job was cancelled".to_owned(),
                CancelEnding::Killed => "the job was cancelled; its worker had to be killed".to_owned(),
            },
            retryable: false,
            details: None,
        },
        JobEnd::TimedOut(limit_ms) => Outcome::Error {
            status: FinalStatus::TimedOut,
            code: ErrorCode::Timeout.as_str().to_owned(),
            message: format!("the job took longer than {limit_ms} ms"),
            retryable: false,
            details: None,
        },
        JobEnd::Interrupted => Outcome::Error {
            status: FinalStatus::Error,
            code: INTERRUPTED.to_owned(),
            message: "what ran the job was lost; the job is not run again by itself".to_owned(),
            retryable: true,
            details: None,
        },
        JobEnd::Left(Some(error)) => {
            let wire = payload(error);
            let status = match error {
                mainstay_model::Error::Cancelled => FinalStatus::Cancelled,
                mainstay_model::Error::TimedOut { .. } => FinalStatus::TimedOut,
                _ => FinalStatus::Error,
            };
            Outcome::Error {
                status,
                code: wire.code,
                message: wire.message,
                retryable: wire.retryable,
                details: wire.details,
            }
        }
        JobEnd::Left(None) => Outcome::Success { result: Value::Null },
    }
}

fn failed(code: &str, message: String, details: Option<Value>) -> Outcome {
    let code = code.to_owned();
    Outcome::Error { status: FinalStatus::Error, code, message, retryable: false, details }
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

/// How far a job is whose command has this outcome.
pub(super) fn status_of_stored(outcome: &mainstay_model::Outcome) -> JobStatus {
    use mainstay_model::{Error, EvalEnding, Outcome, Response, WorkEnding};
    match outcome {
        Outcome::Failed { error: Error::Cancelled } => JobStatus::Cancelled,
        Outcome::Failed { error: Error::TimedOut { .. } } => JobStatus::TimedOut,
        Outcome::Failed { .. } => JobStatus::Error,
        Outcome::Done { response: Response::Evaluated(eval) } => match &eval.ending {
            EvalEnding::Completed => JobStatus::Success,
            EvalEnding::Cancelled => JobStatus::Cancelled,
            _ => JobStatus::Error,
        },
        Outcome::Done { response: Response::Worked(work) } => match &work.ending {
            WorkEnding::Done { .. } => JobStatus::Success,
            WorkEnding::Cancelled { .. } => JobStatus::Cancelled,
            WorkEnding::Failed { .. } | WorkEnding::Interrupted => JobStatus::Error,
        },
        Outcome::Done { .. } => JobStatus::Success,
    }
}

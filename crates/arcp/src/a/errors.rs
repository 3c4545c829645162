//! The codes of dialect A for errors. Source: draft-arcp-01, 18.

use mainstay_arcp_protocol::a::control::{CancelRefused, Nack};
use mainstay_arcp_protocol::a::execution::ErrorPayload;
use mainstay_arcp_protocol::a::{DecodeError, ErrorCode};
use mainstay_model::{Error, ErrorClass};
use serde_json::json;

use crate::job_outcome::{FailureCause, JobFailure};
use crate::pending_submissions::Refusal;

/// The code of a job whose code raised an exception, had errors, or ended its worker.
const JOB_FAILED: &str = "arcpx.mainstay.JOB_FAILED";

/// The protocol's code of an error: that of its class, but for few.
pub(super) fn code_of(error: &Error) -> ErrorCode {
    match error {
        Error::Unauthorized => ErrorCode::Unauthenticated,
        Error::CommandConflict { .. } | Error::KeyConflict { .. } => ErrorCode::AlreadyExists,
        Error::Cancelled | Error::ParentEnded { .. } => ErrorCode::Cancelled,
        Error::TimedOut { .. } => ErrorCode::DeadlineExceeded,
        Error::AnswerInvalid { .. } => ErrorCode::InvalidArgument,
        Error::GrantExpired { .. } => ErrorCode::LeaseExpired,
        Error::GrantRevoked { .. } => ErrorCode::LeaseRevoked,
        Error::BudgetExhausted { .. } => ErrorCode::ResourceExhausted,
        _ => match error.class() {
            ErrorClass::Invalid => ErrorCode::InvalidArgument,
            ErrorClass::NotFound => ErrorCode::NotFound,
            ErrorClass::NotOffered | ErrorClass::Conflict => ErrorCode::FailedPrecondition,
            ErrorClass::NotPermitted => ErrorCode::PermissionDenied,
            ErrorClass::Full => ErrorCode::ResourceExhausted,
            ErrorClass::Unavailable => ErrorCode::Unavailable,
            ErrorClass::Internal => ErrorCode::Internal,
        },
    }
}

/// A refusal with this code, and what the client can do about it. There is none without a next step.
pub(super) fn nack(code: ErrorCode, message: impl Into<String>, next_step: &str) -> Nack {
    let retryable = Some(code.default_retryable());
    Nack { code, message: message.into(), retryable, details: Some(json!({ "next_step": next_step })) }
}

/// The refusal that an error is, with the error's own next step.
pub(super) fn of_error(error: &Error) -> Nack {
    of_error_as(code_of(error), error)
}

/// The same with another code than that of the error's class.
pub(super) fn of_error_as(code: ErrorCode, error: &Error) -> Nack {
    let next_step = error.next_step();
    let details = json!({ "code": error.code().0, "next_step": next_step });
    Nack { details: Some(details), ..nack(code, error.to_string(), &next_step) }
}

/// The refusal of something that a job is to do which its principal does not have.
pub(super) fn no_such_job() -> Nack {
    let step = "Name a job of this principal as `job.accepted` or a subscription has it.";
    nack(ErrorCode::NotFound, "there is no such job", step)
}

/// The refusal of something that only a job can do which has not ended.
pub(super) fn job_has_ended() -> Nack {
    let step = "Begin another job with `tool.invoke` or `agent.delegate` if there is more to do.";
    nack(ErrorCode::FailedPrecondition, "the job has ended", step)
}

/// The refusal of a message of a kind, or with a field, that the session has no capability for.
pub(super) fn not_agreed(reason: impl Into<String>, capability: &str) -> Nack {
    let step = format!("Open a session with the capability `{capability}`, or do without.");
    nack(ErrorCode::Unimplemented, reason, &step)
}

/// The refusal to stop something: why in one word, and what the client can do about it. Source: draft-arcp-01, 10.4.
pub(super) fn cancel_refused(reason: &str, Nack { code, message, details, .. }: Nack) -> CancelRefused {
    CancelRefused { reason: reason.to_owned(), code: Some(code), message: Some(message), details }
}

/// The refusal of a submission.
pub(super) fn of_refusal(refusal: &Refusal) -> Nack {
    match refusal {
        Refusal::Engine(error) => of_error(error),
        Refusal::Agent { agent, why } => nack(ErrorCode::NotFound, why.about(agent), why.next_step()),
        Refusal::BehindParent { agent } => {
            nack(ErrorCode::FailedPrecondition, Refusal::behind_parent(agent), Refusal::ELSEWHERE)
        }
    }
}

/// The refusal of a frame that cannot be read, and the id of its message, where that was read.
pub(super) fn undecoded(error: &DecodeError) -> (Nack, Option<&str>) {
    let invalid = ErrorCode::InvalidArgument;
    let (id, code, step) = match error {
        DecodeError::UnknownType { id, .. } => {
            (Some(id), ErrorCode::Unimplemented, "Send a type of draft-arcp-01, or mark it as optional.")
        }
        DecodeError::WrongVersion { id, .. } => {
            (Some(id), invalid, "Send \"arcp\": \"1.0\" in each message of this session.")
        }
        DecodeError::Payload { id, .. } => {
            (Some(id), invalid, "Send the payload again as draft-arcp-01 has it for this type.")
        }
        DecodeError::MissingField { id, .. } | DecodeError::InvalidField { id, .. } => {
            (id.as_ref(), invalid, "Send the envelope again with this field as draft-arcp-01, 6.1 has it.")
        }
        DecodeError::NotJson(_) | DecodeError::NotAnObject => {
            (None, invalid, "Send each message as one JSON object in a text frame.")
        }
    };
    (nack(code, error.to_string(), step), id.map(String::as_str))
}

/// Why a job did not succeed.
pub(super) fn of_failure(JobFailure { cause, message, details }: JobFailure) -> ErrorPayload {
    let (code, retryable) = match &cause {
        FailureCause::Job => (ErrorCode::from(JOB_FAILED), false),
        FailureCause::Cancelled => (ErrorCode::Cancelled, false),
        FailureCause::Killed | FailureCause::Overdue => (ErrorCode::Aborted, false),
        FailureCause::TimedOut => (ErrorCode::DeadlineExceeded, false),
        FailureCause::Interrupted => (ErrorCode::Aborted, true),
        FailureCause::Refused(error) => {
            let Nack { code, message, retryable, details } = of_error(error);
            return ErrorPayload { code, message, retryable, details, cause: None, trace_id: None };
        }
    };
    ErrorPayload { code, message, retryable: Some(retryable), details, cause: None, trace_id: None }
}

//! The codes of dialect A for errors. Source: draft-arcp-01, 18.

use mainstay_arcp_protocol::a::control::Nack;
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

/// A refusal with this code.
pub(super) fn nack(code: ErrorCode, message: impl Into<String>) -> Nack {
    let retryable = Some(code.default_retryable());
    Nack { code, message: message.into(), retryable, details: None }
}

/// A refusal with this code, and what the client can do about it.
pub(super) fn nack_with_step(code: ErrorCode, message: impl Into<String>, next_step: &str) -> Nack {
    Nack { details: Some(json!({ "next_step": next_step })), ..nack(code, message) }
}

/// The refusal that an error is.
pub(super) fn of_error(error: &Error) -> Nack {
    let details = json!({ "code": error.code().0, "next_step": error.next_step() });
    Nack { details: Some(details), ..nack(code_of(error), error.to_string()) }
}

/// The refusal of a submission.
pub(super) fn of_refusal(refusal: &Refusal) -> Nack {
    match refusal {
        Refusal::Engine(error) => of_error(error),
        Refusal::Agent { agent, why } => nack(ErrorCode::NotFound, why.about(agent)),
        Refusal::BehindParent { agent } => {
            nack_with_step(ErrorCode::FailedPrecondition, Refusal::behind_parent(agent), Refusal::ELSEWHERE)
        }
    }
}

/// The refusal of a frame that cannot be read, and the id of its message, where that was read.
pub(super) fn undecoded(error: &DecodeError) -> (Nack, Option<&str>) {
    let (id, code) = match error {
        DecodeError::UnknownType { id, .. } => (Some(id), ErrorCode::Unimplemented),
        DecodeError::WrongVersion { id, .. } | DecodeError::Payload { id, .. } => {
            (Some(id), ErrorCode::InvalidArgument)
        }
        DecodeError::MissingField { id, .. } | DecodeError::InvalidField { id, .. } => {
            (id.as_ref(), ErrorCode::InvalidArgument)
        }
        DecodeError::NotJson(_) | DecodeError::NotAnObject => (None, ErrorCode::InvalidArgument),
    };
    (nack(code, error.to_string()), id.map(String::as_str))
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

//! The codes of dialect B for errors. Source: draft-arcp-1.1, 12.

use mainstay_arcp_protocol::DialectError;
use mainstay_arcp_protocol::b::{DecodeError, ErrorCode, ErrorPayload};
use mainstay_model::{Error, ErrorClass};
use serde_json::json;

use crate::agents::AgentRefused;
use crate::pending_submissions::Refusal;

/// What an error is for a client.
pub(crate) fn payload(error: &Error) -> ErrorPayload {
    let code = code_of(error);
    ErrorPayload {
        code: code.as_str().to_owned(),
        message: error.to_string(),
        retryable: is_retryable(error),
        details: Some(json!({ "code": error.code().0, "next_step": error.next_step() })),
    }
}

/// What a client is told whose submission is refused.
pub(super) fn of_refusal(refusal: &Refusal) -> ErrorPayload {
    match refusal {
        Refusal::Engine(error) => payload(error),
        Refusal::Agent { agent, why } => {
            let code = match why {
                AgentRefused::Unknown(_) => ErrorCode::AgentNotAvailable,
                AgentRefused::OtherVersion { .. } => ErrorCode::AgentVersionNotAvailable,
            };
            ErrorPayload::new(code, why.about(agent))
        }
        // Clients of this dialect give no tasks.
        Refusal::BehindParent { agent } => {
            ErrorPayload::new(ErrorCode::InvalidRequest, Refusal::behind_parent(agent))
        }
    }
}

/// The protocol's code of an error: that of its class, but for few.
pub(crate) fn code_of(error: &Error) -> ErrorCode {
    match error {
        Error::Unauthorized => ErrorCode::Unauthenticated,
        Error::CommandConflict { .. } | Error::KeyConflict { .. } => ErrorCode::DuplicateKey,
        Error::Cancelled | Error::ParentEnded { .. } => ErrorCode::Cancelled,
        Error::TimedOut { .. } => ErrorCode::Timeout,
        Error::KernelUnknown { .. }
        | Error::KernelUnavailable { .. }
        | Error::ToolWorkerUnavailable { .. } => ErrorCode::AgentNotAvailable,
        Error::CommandNotFound { .. } => ErrorCode::JobNotFound,
        Error::GrantExpired { .. } => ErrorCode::LeaseExpired,
        Error::BudgetExhausted { .. } => ErrorCode::BudgetExhausted,
        Error::GrantExceeded { .. } => ErrorCode::LeaseSubsetViolation,
        _ => match error.class() {
            ErrorClass::Invalid | ErrorClass::NotFound | ErrorClass::NotOffered => ErrorCode::InvalidRequest,
            ErrorClass::NotPermitted => ErrorCode::PermissionDenied,
            ErrorClass::Conflict | ErrorClass::Full | ErrorClass::Unavailable | ErrorClass::Internal => {
                ErrorCode::InternalError
            }
        },
    }
}

/// Whether the same request may succeed later.
fn is_retryable(error: &Error) -> bool {
    matches!(error.class(), ErrorClass::Full | ErrorClass::Unavailable | ErrorClass::Internal)
        && !matches!(error, Error::TimedOut { .. })
}

/// What a client is told whose frame cannot be read. The session goes on.
pub(super) fn undecoded(error: &DecodeError) -> ErrorPayload {
    let payload = ErrorPayload::new(ErrorCode::InvalidRequest, error.to_string());
    match error.id() {
        Some(id) => answering(&payload, id),
        None => payload,
    }
}

/// What a client is told whose first frame is of neither dialect.
pub(super) fn of_first_frame(error: &DialectError) -> ErrorPayload {
    ErrorPayload::new(ErrorCode::InvalidRequest, error.to_string())
}

/// The same error, as the answer to a message. The draft names no field for that.
pub(super) fn answering(payload: &ErrorPayload, message: &str) -> ErrorPayload {
    let mut details = payload.details.clone().unwrap_or_else(|| json!({}));
    if let Some(details) = details.as_object_mut() {
        details.insert("request_id".to_owned(), json!(message));
    }
    ErrorPayload { details: Some(details), ..payload.clone() }
}

/// What a client is told whose session can no longer be resumed where it was.
pub(super) fn expired() -> ErrorPayload {
    let reason = "the session was never told so much, or events of it have been deleted since";
    ErrorPayload::new(ErrorCode::ResumeWindowExpired, reason)
}

/// What a client is told that sends bytes.
pub(super) fn no_bytes() -> ErrorPayload {
    ErrorPayload::new(ErrorCode::InvalidRequest, "an envelope is a frame of text")
}

/// What a client is told that looks up a session which is not there.
pub(super) fn no_session(session: &str) -> ErrorPayload {
    let reason = format!(
        "there is no session {session} that can be resumed; `mainstay arcp sessions` lists those there are"
    );
    ErrorPayload::new(ErrorCode::ResumeWindowExpired, reason)
}

//! Errors as `application/problem+json` (RFC 9457), with the code, the next step and the actions possible now.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mainstay_model::{Action, Error, ErrorClass};
use mainstay_protocol::view::ErrorView;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What is answered to what cannot be done.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    error: Error,
}

/// How a problem is written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemDocument {
    /// What kind of problem it is: `mainstay explain` has a page of that name.
    #[serde(rename = "type")]
    kind: String,
    /// What went wrong, in one line.
    title: String,
    /// The HTTP status of the response.
    status: u16,
    /// The stable code of the error.
    code: String,
    /// What to do next.
    next_step: String,
    /// The actions that the session's state offers instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    offered: Vec<String>,
    /// The error itself, with all that it knows.
    error: Value,
}

impl Problem {
    /// With another status than is usual for it.
    pub const fn with(status: StatusCode, error: Error) -> Self {
        Self { status, error }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { status: status_of(&error), error }
    }
}

impl Problem {
    /// Its status and its document.
    pub fn written(self) -> (StatusCode, Vec<u8>) {
        let Self { status, error } = self;
        let view = ErrorView::from(error);
        let document = ProblemDocument {
            kind: format!("urn:mainstay:error:{}", view.code),
            title: view.message,
            status: status.as_u16(),
            code: view.code,
            next_step: view.next_step,
            offered: view.offered.into_iter().map(Action::name).map(str::to_owned).collect(),
            error: serde_json::to_value(view.error).unwrap_or_default(),
        };
        (status, serde_json::to_vec(&document).unwrap_or_default())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let retry_after = retry_after(&self.error);
        let error = self.error.clone();
        let (status, body) = self.written();
        let mut response = (status, Body::from(body)).into_response();
        // For who shows it to people.
        response.extensions_mut().insert(error);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// After how many seconds it may be tried again, where that is known.
const fn retry_after(error: &Error) -> Option<u64> {
    if let Error::RateLimited { retry_after_ms, .. } | Error::RunnerUnavailable { retry_after_ms, .. } = error
    {
        return Some(retry_after_ms.div_ceil(1000));
    }
    None
}

/// HTTP's number for each error.
pub const fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::Unauthorized => StatusCode::UNAUTHORIZED,
        Error::VersionMismatch { .. } => StatusCode::PRECONDITION_FAILED,
        Error::CodeTooLarge { .. } | Error::MessageTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::TimedOut { .. } | Error::Timeout { .. } | Error::DaemonSilent { .. } => {
            StatusCode::GATEWAY_TIMEOUT
        }
        error => match error.class() {
            ErrorClass::Invalid => StatusCode::BAD_REQUEST,
            ErrorClass::NotPermitted => StatusCode::FORBIDDEN,
            ErrorClass::NotFound => StatusCode::NOT_FOUND,
            ErrorClass::Conflict | ErrorClass::NotOffered => StatusCode::CONFLICT,
            ErrorClass::Full => StatusCode::TOO_MANY_REQUESTS,
            ErrorClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

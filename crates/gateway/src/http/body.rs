//! What a request says in its body: an object of JSON, at most so large, and sent within its time.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use mainstay_model::Error;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::rpc::server::Daemon;

/// The media type in which commands are said.
const JSON: &str = "application/json";

/// What was said. An empty body says as much as `{}`.
pub(super) struct Said<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Daemon> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, daemon: &Daemon) -> Result<Self, Problem> {
        let limits = daemon.engine.limits();
        let (limit, limit_ms) = (limits.message_bytes, limits.request_ms);
        let media = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media =
            media.map(|media| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let read = to_bytes(request.into_body(), limit);
        let read = tokio::time::timeout(Duration::from_millis(limit_ms), read).await;
        let late = |_| Problem::with(StatusCode::REQUEST_TIMEOUT, Error::Timeout { limit_ms });
        let bytes = read.map_err(late)?.map_err(|error| unread(&error, limit))?;
        let text = if bytes.is_empty() { b"{}".as_slice() } else { &bytes };
        // A page of another origin can send what is called text without being asked whether it may.
        if !bytes.is_empty() && media.as_deref() != Some(JSON) {
            let reason = format!("the body must be {JSON}");
            return Err(Problem::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::BadRequest { reason }));
        }
        // What has fields could else be said as a list of their values.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Error::BadRequest { reason: "the body must be an object".to_owned() }.into());
        }
        let said = serde_json::from_slice(text);
        said.map(Self).map_err(|error| Error::BadRequest { reason: error.to_string() }.into())
    }
}

/// Why a body was not read to its end.
fn unread(error: &axum::Error, limit: usize) -> Problem {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(at) = cause {
        if at.is::<http_body_util::LengthLimitError>() {
            return Error::MessageTooLarge { limit }.into();
        }
        cause = at.source();
    }
    Error::BadRequest { reason: format!("the body cannot be read: {error}") }.into()
}

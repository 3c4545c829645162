//! What a request says in its body: an object of JSON, or BARE, at most so large, and sent within its time.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use mainstay_model::Error;
use serde::de::DeserializeOwned;

use super::bare;
use super::daemon::HttpDaemon;
use super::media::Media;
use mainstay_gateway::problem::Problem;

/// What was said. An empty body says as much as `{}`.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned + bare::Decode> FromRequest<HttpDaemon> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, daemon: &HttpDaemon) -> Result<Self, Problem> {
        let (media, bytes) = read(request, daemon).await?;
        if let (Some(Media::Bare), false) = (media, bytes.is_empty()) {
            return said(bare::read(&bytes).map_err(|error| error.to_string())).map(Self);
        }
        of_media(media, &bytes, &format!("{} or {}, version 1", Media::JSON, Media::BARE)).map(Self)
    }
}

/// What was said, of what has no form in BARE.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<HttpDaemon> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, daemon: &HttpDaemon) -> Result<Self, Problem> {
        let (media, bytes) = read(request, daemon).await?;
        of_media(media, &bytes, Media::JSON).map(Self)
    }
}

/// What JSON says, of a body that must be of the media that are wanted: a page of another origin can send what is called text without being
/// asked whether it may.
fn of_media<T: DeserializeOwned>(media: Option<Media>, bytes: &[u8], wanted: &str) -> Result<T, Problem> {
    match media {
        _ if bytes.is_empty() => said(of_json(b"{}")),
        Some(Media::Json) => said(of_json(bytes)),
        Some(Media::Bare) | None => Err(of_no_media(wanted)),
    }
}

fn said<T>(read: Result<T, String>) -> Result<T, Problem> {
    read.map_err(|reason| Error::BadRequest { reason }.into())
}

/// What the body is said to be, and all of it.
async fn read(request: Request, daemon: &HttpDaemon) -> Result<(Option<Media>, Bytes), Problem> {
    let limits = daemon.engine.limits();
    let (limit, limit_ms) = (limits.message_bytes, limits.request_ms);
    let media = Media::of_body(request.headers());
    let read = to_bytes(request.into_body(), limit);
    let read = tokio::time::timeout(Duration::from_millis(limit_ms), read).await;
    let late = |_| Problem::with(StatusCode::REQUEST_TIMEOUT, Error::Timeout { limit_ms });
    let bytes = read.map_err(late)?.map_err(|error| unread(&error, limit))?;
    Ok((media, bytes))
}

fn of_no_media(wanted: &str) -> Problem {
    let reason = format!("the body must be {wanted}");
    Problem::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::BadRequest { reason })
}

fn of_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    // What has fields could else be said as a list of their values.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err("the body must be an object".to_owned());
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
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

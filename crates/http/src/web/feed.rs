//! Streams of events: pieces that are made one by one, each when the one before was taken.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use mainstay_model::EventBody;
use tokio::sync::OwnedSemaphorePermit;

/// How long nothing may be sent.
pub(super) const SILENCE: Duration = Duration::from_secs(15);

/// Where the pieces come from.
pub(super) trait Feed: Send + Sized + 'static {
    /// The next piece; waits for it. None where the stream ends.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// What a feed says, for as long as it has a place.
pub(super) fn answer<F: Feed>(place: OwnedSemaphorePermit, feed: F) -> Response {
    let pieces = unfold((feed, place), |(mut feed, place)| async move {
        let piece = feed.next().await?;
        Some((Ok::<_, Infallible>(piece), (feed, place)))
    });
    answer_of(Body::from_stream(pieces))
}

/// Events that are there already.
pub(super) fn answer_of(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body.into()).into_response()
}

/// Whether an event only says more of what goes on.
pub(super) const fn is_said(body: &EventBody) -> bool {
    matches!(body, EventBody::OutputProduced { .. } | EventBody::MessageStreamed(_))
}

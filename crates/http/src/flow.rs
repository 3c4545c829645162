//! How a stream goes out: piece by piece as its client takes them, compressed where it asks for that, with a sign of life where nothing
//! happens.
//!
//! Nothing is prepared for a client that does not read: it is asked for a piece only when the last one is on its way. All that is at hand
//! then goes out together, so a client that is behind costs fewer pieces and not more memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use mainstay_model::Error;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bare;
use super::caller::Caller;
use super::coding::{self, Gzip};
use super::daemon::HttpDaemon;
use super::encode_cache::SignalEncoding;
use super::signals::{AnySignals, Frame};

/// How often something is sent where nothing happens, so that nobody on the way takes the connection for dead.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment, which clients leave out.
const ALIVE: &[u8] = b": \n\n";
/// What one piece costs the machine, about, with its client: with many streams each waits so long for each of them between two pieces, and
/// takes what has happened meanwhile together. Without that a thousand streams of a busy session fall behind, and then read from the log.
const PIECE_COST: Duration = Duration::from_micros(20);
/// The longest such wait: output is held back as long to be joined.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// A shorter one is none.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// A piece that has so many bytes takes nothing more.
pub(super) const PIECE_BYTES: usize = 16 * 1024;

/// What a stream tells.
pub(super) trait ChunkSource: Send + 'static {
    /// What comes next, waited for; none once there is nothing more to tell. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    /// What comes next, where it is there already.
    fn try_next(&mut self) -> Option<Bytes> {
        None
    }
}

/// A stream's place among all, and how it waits for its turn.
pub(super) struct Pace {
    /// Before this nothing more is sent.
    again: Option<Instant>,
    limit: usize,
    place: OwnedSemaphorePermit,
}

impl Pace {
    /// Takes a place.
    ///
    /// # Errors
    /// [`Error::TooManyConnections`].
    pub(super) fn begin(daemon: &HttpDaemon) -> Result<Self, Error> {
        let limit = daemon.engine.limits().streams;
        Ok(Self { again: None, limit, place: daemon.http.place(limit)? })
    }

    /// Waits for the turn.
    pub(super) async fn wait(&mut self) {
        if let Some(again) = self.again.take() {
            tokio::time::sleep_until(again).await;
        }
    }

    /// A piece is on its way.
    pub(super) fn sent(&mut self) {
        let pause = pause(self.limit.saturating_sub(self.place.semaphore().available_permits()));
        self.again = (pause >= SHORTEST_PAUSE).then(|| Instant::now() + pause);
    }
}

/// The stream of events to one client.
struct Flow<T> {
    tells: T,
    gzip: Option<Gzip>,
    has_ended: bool,
    pace: Pace,
    stopped: CancellationToken,
}

/// The answer that is a stream.
///
/// # Errors
/// [`Error::TooManyConnections`].
pub(super) fn answer(caller: &Caller, tells: impl ChunkSource) -> Result<Response, Error> {
    let shared = &caller.daemon.http;
    let pace = Pace::begin(&caller.daemon)?;
    let compressed = || Arc::clone(&shared.compressed).try_acquire_owned().ok();
    let gzip = caller.takes_gzip.then(compressed).flatten().map(Gzip::new);
    let is_compressed = gzip.is_some();
    let stopped = caller.daemon.stopped.clone();
    let flow = Flow { tells, gzip, has_ended: false, pace, stopped };
    let pieces = futures::stream::unfold(flow, |mut flow| async move {
        let piece = flow.piece().await?;
        Some((Ok::<Bytes, Infallible>(piece), flow))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        coding::mark(headers);
    }
    Ok(response)
}

impl<T: ChunkSource> Flow<T> {
    /// What is sent next; none at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        self.pace.wait().await;
        let told = if self.has_ended { None } else { self.told().await };
        self.pace.sent();
        match told {
            Some(told) => match &mut self.gzip {
                Some(gzip) => gzip.piece(&told).ok(),
                None => Some(told),
            },
            None => {
                self.has_ended = true;
                self.gzip.take()?.end().ok()
            }
        }
    }

    /// What comes next, with all that is at hand behind it.
    async fn told(&mut self) -> Option<Bytes> {
        let first = tokio::select! {
            // What has happened is told also while the daemon goes down.
            biased;
            told = self.tells.next() => told?,
            () = self.stopped.cancelled() => return None,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(ALIVE)),
        };
        // Most often nothing is, and what was written for all goes out as it is.
        let Some(second) = self.tells.try_next() else { return Some(first) };
        let mut piece = [first, second].concat();
        while piece.len() < PIECE_BYTES {
            let Some(more) = self.tells.try_next() else { break };
            piece.extend_from_slice(&more);
        }
        Some(piece.into())
    }
}

/// How long each of so many streams waits between two pieces.
fn pause(streams: usize) -> Duration {
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    PIECE_COST.saturating_mul(streams).min(LONGEST_PAUSE)
}

impl SignalEncoding {
    /// Signals to merge into what a client has, and where they stand.
    pub(super) fn tell(self, id: Option<u64>, signals: &AnySignals<'_>) -> Bytes {
        match self {
            Self::Events => patch(id, signals),
            Self::Json => serde_json::to_vec(&Frame { id, signals }).unwrap_or_default().into(),
            Self::Bare => bare::message(&Frame { id, signals }).into(),
        }
    }
}

/// Signals as an event. Source: Datastar, "SSE Events".
fn patch(id: Option<u64>, signals: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(256);
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"event: datastar-patch-signals\ndata: signals ");
    // JSON as it is written here has no line breaks. What cannot be written is nothing that a signal could be.
    if serde_json::to_writer(&mut text, signals).is_err() {
        text.extend_from_slice(b"{}");
    }
    text.extend_from_slice(b"\n\n");
    text.into()
}

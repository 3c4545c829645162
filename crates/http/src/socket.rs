//! Streams over WebSocket: what the streams of server-sent events tell, a frame each, in JSON or BARE. A client says nothing; what it wants is
//! in its request, and commands go in with POST.

use std::collections::BTreeSet;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use mainstay_model::{Error, EventKind};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::daemon::HttpDaemon;
use super::encode_cache::SignalEncoding;
use super::flow::{ChunkSource, KEEP_ALIVE, PIECE_BYTES, Pace};
use super::media::Media;
use super::params::QueryParams;
use super::streams::{After, Completions, Diagnostics, EventChunks, Kinds, Status};
use mainstay_gateway::admission::Admission;
use mainstay_gateway::daemon::LAST_ANSWERS;
use mainstay_gateway::problem::Problem;

/// Bytes of what a client may say, which is nothing: more is not read to be refused.
const SAID_BYTES: usize = 1024;
/// Bytes that are read at once, and written before they go out.
const BUFFER_BYTES: usize = 4 * 1024;

/// Codes of RFC 6455, 7.4.1.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const UNSUPPORTED: u16 = 1003;
const POLICY: u16 = 1008;

/// What is to be told.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SocketQuery {
    /// The stream that the client chose.
    of: StreamName,
    /// Of `events`, only those of these kinds, with commas between; all where it is left out.
    #[allow(dead_code, reason = "`Kinds` reads it")]
    kinds: Option<String>,
}

/// The streams there are.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum StreamName {
    Eval,
    Status,
    Events,
    Diagnostics,
    Completions,
}

/// Serves a chosen stream as a web socket at `GET /stream`.
pub(super) async fn stream(
    caller: Caller,
    QueryParams(SocketQuery { of, kinds: _ }): QueryParams<SocketQuery>,
    after: After,
    Kinds(kinds): Kinds,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Response> {
    let upgrade = upgrade.map_err(|_| no_socket())?;
    let media = caller.takes.ok_or_else(|| not_acceptable().into_response())?;
    let refused = |error| Problem::from(error).into_response();
    open(&caller, upgrade, media, of, after, kinds).await.map_err(refused)
}

/// Begins the stream, and the socket for it.
async fn open(
    caller: &Caller,
    upgrade: WebSocketUpgrade,
    media: Media,
    of: StreamName,
    after: After,
    kinds: BTreeSet<EventKind>,
) -> Result<Response, Error> {
    let wording = match media {
        Media::Json => SignalEncoding::Json,
        Media::Bare => SignalEncoding::Bare,
    };
    match of {
        StreamName::Eval => {
            answer(caller, upgrade, media, EventChunks::of_jobs(caller, after, wording).await?)
        }
        StreamName::Status => answer(caller, upgrade, media, Status::begin(caller, after, wording).await?),
        StreamName::Events => {
            answer(caller, upgrade, media, EventChunks::of_events(caller, after, kinds, wording).await?)
        }
        StreamName::Diagnostics => answer(caller, upgrade, media, Diagnostics::begin(caller, wording).await?),
        StreamName::Completions => answer(caller, upgrade, media, Completions::begin(caller, wording).await?),
    }
}

/// A request that is to become no WebSocket.
fn no_socket() -> Response {
    let reason = "this path is a WebSocket; /eval, /status, /events, /diagnostics and /completions are streams of server-sent events";
    let error = Error::BadRequest { reason: reason.to_owned() };
    let mut response = Problem::with(StatusCode::UPGRADE_REQUIRED, error).into_response();
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    response
}

fn not_acceptable() -> Problem {
    let reason = format!("`Accept` must take {} or {}, version 1", Media::JSON, Media::BARE);
    Problem::with(StatusCode::NOT_ACCEPTABLE, Error::BadRequest { reason })
}

/// The answer that becomes a socket.
///
/// # Errors
/// [`Error::TooManyConnections`].
fn answer(
    caller: &Caller,
    upgrade: WebSocketUpgrade,
    media: Media,
    tells: impl ChunkSource,
) -> Result<Response, Error> {
    let daemon = caller.daemon.clone();
    let pace = Pace::begin(&daemon)?;
    let upgrade = upgrade
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(SAID_BYTES)
        .max_frame_size(SAID_BYTES);
    let admission = caller.admission.clone();
    Ok(upgrade.on_upgrade(move |socket| serve(socket, daemon, admission, (media, pace), tells)))
}

/// Why a socket is closed.
enum CloseReason {
    /// There is nothing more to tell.
    Over,
    /// The daemon goes down.
    ShutDown,
    /// Its client says something.
    Spoken,
    /// Its client's credentials have expired.
    Expired,
    /// Its client is gone.
    Gone,
}

async fn serve(
    socket: WebSocket,
    daemon: HttpDaemon,
    admission: Admission,
    (media, pace): (Media, Pace),
    tells: impl ChunkSource,
) {
    let _answering = daemon.answering.token();
    let (mut sink, stream) = socket.split();
    let stopped = daemon.stopped.clone();
    let end = {
        let telling = SocketWriter { sink: &mut sink, media, pace, stopped: stopped.clone() };
        tokio::select! {
            end = telling.all(tells) => end,
            end = heard(stream) => end,
            () = admission.expired() => CloseReason::Expired,
            () = too_late(&stopped) => CloseReason::Gone,
        }
    };
    let (code, reason) = match end {
        CloseReason::Over => (NORMAL, "There is nothing more to tell"),
        CloseReason::ShutDown => (GOING_AWAY, "Server shutting down"),
        CloseReason::Expired => (POLICY, "The credentials have expired"),
        CloseReason::Spoken => (UNSUPPORTED, "This socket only tells; commands go in with POST"),
        // It may have said so, and then waits for the same of us.
        CloseReason::Gone => return drop(tokio::time::timeout(LAST_ANSWERS, sink.flush()).await),
    };
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // A client that reads nothing is not waited for.
    tokio::time::timeout(LAST_ANSWERS, sink.send(close)).await.ok();
}

/// Waits until the daemon has stopped so long ago that who has not read the rest does not read.
async fn too_late(stopped: &CancellationToken) {
    stopped.cancelled().await;
    tokio::time::sleep(LAST_ANSWERS).await;
}

/// Waits until the client goes, or says what nobody asked it.
async fn heard(mut stream: SplitStream<WebSocket>) -> CloseReason {
    loop {
        match stream.next().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            // Of what is too large, it is only known that it is said; of a connection that broke nothing is lost by another word.
            Some(Ok(Message::Text(_) | Message::Binary(_)) | Err(_)) => return CloseReason::Spoken,
            Some(Ok(Message::Close(_))) | None => return CloseReason::Gone,
        }
    }
}

/// The stream of events to one client of a web socket.
struct SocketWriter<'a> {
    sink: &'a mut SplitSink<WebSocket, Message>,
    media: Media,
    pace: Pace,
    stopped: CancellationToken,
}

impl SocketWriter<'_> {
    /// Tells all there is, as the client takes it.
    async fn all(mut self, mut tells: impl ChunkSource) -> CloseReason {
        loop {
            self.pace.wait().await;
            let next = tokio::select! {
                // What has happened is told also while the daemon goes down.
                biased;
                told = tells.next() => match told {
                    Some(told) => self.tell(told, &mut tells).await,
                    None => return if self.stopped.is_cancelled() { CloseReason::ShutDown } else { CloseReason::Over },
                },
                () = self.stopped.cancelled() => return CloseReason::ShutDown,
                () = tokio::time::sleep(KEEP_ALIVE) => self.sink.send(Message::Ping(Bytes::new())).await,
            };
            if next.is_err() {
                return CloseReason::Gone;
            }
            self.pace.sent();
        }
    }

    /// Tells this, with all that is at hand behind it.
    async fn tell(&mut self, first: Bytes, tells: &mut impl ChunkSource) -> Result<(), axum::Error> {
        let mut bytes = first.len();
        self.sink.feed(message(self.media, first)).await?;
        while bytes < PIECE_BYTES {
            let Some(more) = tells.try_next() else { break };
            bytes += more.len();
            self.sink.feed(message(self.media, more)).await?;
        }
        self.sink.flush().await
    }
}

fn message(media: Media, told: Bytes) -> Message {
    match media {
        Media::Bare => Message::Binary(told),
        // JSON is UTF-8.
        Media::Json => Message::Text(Utf8Bytes::try_from(told).unwrap_or_default()),
    }
}

//! The way in of 2024-11-05: a stream of server-sent events (`GET /sse`), whose first names the address for what the client says
//! (`POST /message?sessionId=…`).
//!
//! What is said becomes lines and what is answered becomes events, so that behind it everything is as over the local socket. A stream is
//! only of the principal that opened it, and all there is of it ends with its connection.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream::{poll_fn, unfold};
use futures::{Stream, StreamExt};
use mainstay_model::{Access, Error, Principal};
use serde_json::value::RawValue;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;
use uuid::Uuid;

use super::call::folder_of;
use super::daemon::McpDaemon;
use super::transport::serve_stream;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_gateway::problem::Problem;

/// Messages that wait to be read, each as long as `message-bytes` allows.
const WAITING: usize = 4;
/// Bytes on their way to a client; who does not read holds up its own answers.
const BUFFER_BYTES: usize = 64 * 1024;
/// How often something is sent, so that a connection whose client is gone is found out.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `/sse` and `/message`. They check no token: whoever mounts them does.
pub fn sse_routes(daemon: McpDaemon) -> Router {
    Router::new()
        .route("/sse", get(open))
        .route("/message", post(said))
        .with_state(SseState { daemon, streams: Streams::default() })
}

#[derive(Clone)]
struct SseState {
    daemon: McpDaemon,
    streams: Streams,
}

/// The streams there are. A connection has one at most, so `http-connections` bounds them.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<HashMap<Uuid, StreamInput>>>);

/// Where what a client says is taken.
struct StreamInput {
    principal: Principal,
    lines: mpsc::Sender<io::Result<Bytes>>,
}

/// A stream that is there as long as this is.
struct StreamGuard {
    streams: Streams,
    id: Uuid,
}

impl Streams {
    fn open(&self, principal: Principal) -> (StreamGuard, mpsc::Receiver<io::Result<Bytes>>) {
        let (lines, said) = mpsc::channel(WAITING);
        let id = Uuid::new_v4();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, StreamInput { principal, lines });
        (StreamGuard { streams: self.clone(), id }, said)
    }

    /// Where what a principal says on a stream of its own is taken.
    fn of(&self, id: Uuid, principal: &Principal) -> Option<mpsc::Sender<io::Result<Bytes>>> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.get(&id).filter(|heard| heard.principal == *principal).map(|heard| heard.lines.clone())
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.streams.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Serves the older transport's stream at `GET /sse`.
async fn open(
    State(held): State<SseState>,
    Extension(admission): Extension<Admission>,
    uri: Uri,
) -> Response {
    let SseState { daemon, streams } = held;
    let (place, mut said) = streams.open(admission.access.principal.clone());
    let (answers, events) = duplex(BUFFER_BYTES);
    let lines = StreamReader::new(poll_fn(move |context| said.poll_recv(context)));
    let folder = uri.query().and_then(folder_of);
    let answering = daemon.answering.token();
    tokio::spawn(async move {
        let context = ClientContext { working_directory: folder, ..ClientContext::default() };
        serve_stream(lines, answers, daemon, admission, context).await;
        drop(answering);
    });
    let body = Body::from_stream(told(place, events));
    ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}

/// What a stream tells: the address, then each answer, and something now and then.
fn told(place: StreamGuard, events: DuplexStream) -> impl Stream<Item = io::Result<String>> {
    let first = format!("event: endpoint\ndata: /message?sessionId={}\n\n", place.id);
    let lines = FramedRead::new(events, LinesCodec::new());
    let rest = unfold((place, lines), |(place, mut lines)| async move {
        let event = match tokio::time::timeout(KEEP_ALIVE, lines.next()).await {
            Err(_) => ":\n\n".to_owned(),
            Ok(line) => format!("event: message\ndata: {}\n\n", line?.ok()?),
        };
        Some((Ok(event), (place, lines)))
    });
    futures::stream::iter([Ok(first)]).chain(rest)
}

/// `POST /message`: taken as soon as there is room for it, and answered on the stream.
async fn said(
    State(held): State<SseState>,
    Extension(access): Extension<Access>,
    uri: Uri,
    request: Request,
) -> Result<StatusCode, Problem> {
    let id = uri.query().and_then(stream_id);
    let lines = id.and_then(|id| held.streams.of(id, &access.principal)).ok_or_else(no_stream)?;
    let limits = held.daemon.engine.limits();
    let body = to_bytes(request.into_body(), limits.message_bytes);
    let late = |_| Error::Timeout { limit_ms: limits.request_ms };
    let body = tokio::time::timeout(Duration::from_millis(limits.request_ms), body).await.map_err(late)?;
    let body = body.map_err(|_| Error::MessageTooLarge { limit: limits.message_bytes })?;
    lines.send(Ok(line(&body)?)).await.map_err(|_| no_stream())?;
    Ok(StatusCode::ACCEPTED)
}

fn stream_id(query: &str) -> Option<Uuid> {
    form_urlencoded::parse(query.as_bytes())
        .find_map(|(name, value)| (name == "sessionId").then(|| value.parse().ok())?)
}

fn no_stream() -> Error {
    let reason = "no stream of yours has it; open one with `GET /sse`, whose first event names the address";
    Error::InvalidArgument { argument: "sessionId".to_owned(), reason: reason.to_owned() }
}

/// A message on one line.
fn line(body: &[u8]) -> Result<Bytes, Error> {
    let refused =
        |error: serde_json::Error| Error::BadRequest { reason: format!("the body is no JSON: {error}") };
    let message: &RawValue = serde_json::from_slice(body).map_err(refused)?;
    // Within texts JSON has no line ends.
    Ok((message.get().replace(['\r', '\n'], " ") + "\n").into())
}

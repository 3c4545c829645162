//! ARCP over WebSocket, at `/arcp` of the daemon's port: an envelope is a frame of text.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use axum::response::Response;
use axum::routing::any;
use futures::{SinkExt, StreamExt, stream};
use mainstay_gateway::arrivals::Arrival;
use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::peer_network::PeerNetwork;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::connection::serve;
use crate::frames::{Incoming, Outbox, Outgoing};
use crate::live_sessions::LiveSessions;
use crate::peer::{End, Peer, Place};
use crate::settings::Settings;

/// The path at which the protocol is served. Source: draft-arcp-02, 4.1.
const PATH: &str = "/arcp";

/// Codes of RFC 6455, 7.4.1.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
/// Registered with IANA for RFC 6455.
const TRY_AGAIN_LATER: u16 = 1013;

/// What a connection holds to read into, in bytes: there may be very many, and most of their frames are small.
const READ_BUFFER: usize = 4096;

/// How long a client has to read what is left for it.
const LAST_FRAMES: Duration = Duration::from_secs(2);

/// The path of the protocol.
pub(crate) fn routes(daemon: Daemon, settings: Settings, live: LiveSessions) -> Router {
    // A connection that was upgraded is no longer counted where it came in.
    let places = Arc::new(Semaphore::new(daemon.engine.limits().connections.min(Semaphore::MAX_PERMITS)));
    Router::new().route(PATH, any(upgrade)).with_state((daemon, settings, live, places))
}

async fn upgrade(
    State((daemon, settings, live, places)): State<(Daemon, Settings, LiveSessions, Arc<Semaphore>)>,
    certificate: Option<Extension<Arc<ClientCertificate>>>,
    Extension(from): Extension<PeerNetwork>,
    arrival: Option<Extension<Arrival>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit = daemon.engine.limits().message_bytes;
    // A little more than may be, so that one that is too large is answered and not cut off.
    let upgrade = upgrade
        .max_message_size(limit.saturating_mul(2))
        .max_frame_size(limit.saturating_mul(2))
        .read_buffer_size(READ_BUFFER);
    let place = Place::of(places, arrival.map(|Extension(arrival)| arrival));
    let has_place = place.is_some();
    let certificate = certificate.map(|Extension(shown)| shown);
    let peer = Peer { daemon, settings, live, attached: None, certificate, from, place };
    upgrade.on_upgrade(move |socket| async move {
        match has_place {
            true => converse(peer, socket, limit).await,
            false => refuse(socket).await,
        }
    })
}

/// Ends a connection that is one too many.
async fn refuse(mut socket: WebSocket) {
    let close = CloseFrame { code: TRY_AGAIN_LATER, reason: "There are too many connections".into() };
    socket.send(Message::Close(Some(close))).await.ok();
    // A client may lose what it has not read yet where its connection is cut off before it has answered.
    timeout(LAST_FRAMES, socket.recv()).await.ok();
}

async fn converse(peer: Peer, socket: WebSocket, limit: usize) {
    let _answering = peer.daemon.answering.token();
    let (mut sink, stream) = socket.split();
    let (outbox, mut leaving) = Outbox::new(peer.settings.patience());
    let outbox = outbox.carrying_bytes();
    let mut writer = tokio::spawn(async move {
        let mut is_first = true;
        while let Some(Outgoing { text, bytes }) = leaving.recv().await {
            // The answer says that the client has the welcome, and so its token.
            let ping = std::mem::take(&mut is_first).then(|| Message::Ping(Default::default()));
            let bytes = bytes.into_iter().map(Message::binary);
            let frames = std::iter::once(Message::text(text)).chain(bytes).chain(ping);
            if sink.send_all(&mut stream::iter(frames.map(Ok))).await.is_err() {
                break;
            }
        }
        sink
    });
    let incoming = stream::unfold(stream, move |mut stream| async move {
        loop {
            let incoming = match stream.next().await?.ok()? {
                Message::Text(text) if text.len() > limit => Incoming::TooLarge,
                Message::Text(text) => Incoming::Text(text.as_str().to_owned()),
                Message::Binary(bytes) if bytes.len() > limit => Incoming::TooLarge,
                Message::Binary(bytes) => Incoming::Binary(bytes.into()),
                Message::Pong(_) => Incoming::Alive,
                Message::Ping(_) => continue,
                Message::Close(_) => return None,
            };
            return Some((incoming, stream));
        }
    });
    let mut incoming = Box::pin(incoming).fuse();
    let end = serve(peer, &mut incoming, outbox).await;
    let Ok(Ok(mut sink)) = timeout(LAST_FRAMES, &mut writer).await else {
        // The client does not read what is left.
        writer.abort();
        return;
    };
    let close = |code, reason: &'static str| Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let closed = match end {
        End::Gone => close(NORMAL, ""),
        End::Refused => close(POLICY, "The session was refused"),
        End::Silent => close(POLICY, "The client does not answer"),
        End::Replaced => close(NORMAL, "Another connection resumed the session"),
        End::Expired => close(POLICY, "The credentials have expired"),
        End::ShutDown => close(GOING_AWAY, "The daemon goes down"),
    };
    sink.send(closed).await.ok();
    // A client may lose what it has not read yet where its connection is cut off before it has answered.
    timeout(LAST_FRAMES, async { while incoming.next().await.is_some() {} }).await.ok();
}

//! The protocol over WebSocket: at `/pi` of the daemon's port, and on a port of its own at `/`.

use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use axum::response::Response;
use axum::routing::any;
use futures::{SinkExt, StreamExt, stream};
use mainstay_gateway::admission::Admission;

use super::connection::{End, Incoming, Peer, outbox, serve};
use super::daemon::PiDaemon;

/// How often a client is asked whether it is there, and how long it has to say so. Source: protocols/pi.md, "Limits".
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(10);

/// Codes of RFC 6455, 7.4.1.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const TRY_AGAIN_LATER: u16 = 1013;

/// The protocol at a path.
pub(crate) fn routes(path: &str) -> Router<PiDaemon> {
    Router::new().route(path, any(upgrade))
}

async fn upgrade(
    State(daemon): State<PiDaemon>,
    Extension(admission): Extension<Admission>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit = daemon.engine.limits().message_bytes;
    // A little more than may be, so that one that is too large is answered and not cut off.
    let upgrade = upgrade.max_message_size(limit.saturating_mul(2)).max_frame_size(limit.saturating_mul(2));
    upgrade.on_upgrade(move |socket| converse(daemon, admission, socket))
}

async fn converse(daemon: PiDaemon, admission: Admission, socket: WebSocket) {
    let _answering = daemon.answering.token();
    let (mut sink, stream) = socket.split();
    let limit = daemon.engine.limits().connections;
    let Some(_place) = daemon.pi.enter(limit) else {
        let reason = format!("Connection limit reached ({limit} connections)");
        let close = CloseFrame { code: TRY_AGAIN_LATER, reason: reason.into() };
        sink.send(Message::Close(Some(close))).await.ok();
        return;
    };
    let client = daemon.engine.attach(admission.access.clone(), "pi").as_connection();
    // Nothing is known here of the environment that the client is in.
    let folder = std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
    let (frames, mut leaving) = outbox();
    let writer = tokio::spawn(async move {
        let mut pings = tokio::time::interval(PING);
        pings.tick().await;
        loop {
            tokio::select! {
                frame = leaving.recv() => match frame {
                    Some(frame) => if sink.send(Message::text(frame)).await.is_err() { return sink },
                    None => return sink,
                },
                _ = pings.tick() => if sink.send(Message::Ping(Default::default())).await.is_err() { return sink },
            }
        }
    });
    let incoming = stream::unfold(stream, |mut stream| async move {
        loop {
            // A client that is there answers each ping.
            let frame = tokio::time::timeout(PING + PONG, stream.next()).await.ok()??;
            let incoming = match frame.ok()? {
                Message::Text(text) => Incoming::Frame(text.as_str().to_owned()),
                Message::Binary(bytes) => match String::from_utf8(bytes.into()) {
                    Ok(text) => Incoming::Frame(text),
                    Err(_) => Incoming::NoText,
                },
                Message::Ping(_) | Message::Pong(_) => continue,
                Message::Close(_) => return None,
            };
            return Some((incoming, stream));
        }
    });
    let end =
        serve(daemon, Peer { client, folder, admission, reads_on: false }, Box::pin(incoming), frames).await;
    let Ok(mut sink) = writer.await else { return };
    let close = |code, reason: &'static str| Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    match end {
        End::Gone => {}
        End::ShutDown => drop(sink.send(close(GOING_AWAY, "Server shutting down")).await),
        End::Expired => drop(sink.send(close(POLICY, "The credentials have expired")).await),
        End::Slow => drop(sink.send(close(TRY_AGAIN_LATER, "Too slow to be told what happens")).await),
    }
}

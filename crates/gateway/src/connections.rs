//! The connections to a port: how many, how long each may be silent, and how they end with the daemon.
//!
//! A head has at most [`HEADERS`] headers and [`BUFFER_BYTES`] bytes, and comes within `request-ms`; so does the next one on a connection that
//! is kept. Of what is sent a client that does not read costs a few buffers and no more: ours, and [`SOCKET_BYTES`] of the system's.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mainstay_model::Error;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use crate::bounded_listener::BoundedListener;
use crate::daemon::{Daemon, LAST_ANSWERS};
use crate::problem::Problem;

/// Headers of a request.
const HEADERS: usize = 100;
/// Bytes of a request's head, and of what is on its way to a client.
const BUFFER_BYTES: usize = 64 * 1024;
/// What the system keeps for a client that does not read. It takes twice this, and else up to some megabytes.
const SOCKET_BYTES: usize = 128 * 1024;

/// Serves connections until the daemon stops; then those that are there come to their end.
pub(crate) async fn serve(listener: TcpListener, daemon: &Daemon, router: Router) {
    let limit = daemon.engine.limits().http_connections;
    let served = TaskTracker::new();
    // Those that are accepted have it from the listener.
    if let Err(error) = sockopt::set_socket_send_buffer_size(&listener, SOCKET_BYTES) {
        tracing::warn!(%error, "the system keeps as much as it likes for clients that do not read");
    }
    let door = BoundedListener::new(listener, limit, full(limit));
    while let Some((stream, place)) = door.next(&daemon.stop).await {
        let (daemon, router) = (daemon.clone(), router.clone());
        served.spawn(async move {
            connection(stream, daemon, router).await;
            drop(place);
        });
    }
    drop(door);
    served.close();
    served.wait().await;
}

/// One connection, to its end.
async fn connection(stream: TcpStream, daemon: Daemon, router: Router) {
    // An answer is several small writes; the last must not wait for the client to acknowledge the first.
    stream.set_nodelay(true).ok();
    let patience = Duration::from_millis(daemon.engine.limits().request_ms);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_headers(HEADERS)
        .max_header_size(BUFFER_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        // A connection that breaks is its client's affair.
        _ = connection.as_mut() => return,
        () = daemon.stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let too_late = async {
        daemon.stopped.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        _ = connection => {}
        () = too_late => tracing::warn!("a connection is cut: its client does not read"),
    }
}

/// What a connection is told for which there is no place.
fn full(limit: usize) -> Vec<u8> {
    let (status, document) = Problem::from(Error::TooManyConnections { limit }).written();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        document.len()
    );
    [head.as_bytes(), &document].concat()
}

//! The connections to a port: how many, how long each may be silent, and how they end with the daemon.
//!
//! A head has at most [`HEADERS`] headers and [`BUFFER_BYTES`] bytes, and comes within `request-ms`; so does the next one on a connection that
//! is kept. Of what is sent a client that does not read costs a few buffers and no more: ours, and [`SOCKET_BYTES`] of the system's.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mainstay_model::Error;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arrivals::{Arrival, Arrivals};
use crate::bounded_listener::BoundedListener;
use crate::client_certificate::ClientCertificate;
use crate::cuttable_stream::CuttableStream;
use crate::daemon::{Daemon, LAST_ANSWERS};
use crate::peer_network::PeerNetwork;
use crate::problem::Problem;
use crate::tls::Tls;

/// Headers of a request.
const HEADERS: usize = 100;
/// Bytes of a request's head, and of what is on its way to a client.
const BUFFER_BYTES: usize = 64 * 1024;
/// What the system keeps for a client that does not read. It takes twice this, and else up to some megabytes.
const SOCKET_BYTES: usize = 128 * 1024;

/// Serves connections until the daemon stops; then those that are there come to their end.
pub(crate) async fn serve(listener: TcpListener, daemon: &Daemon, router: Router, tls: Option<Tls>) {
    let limit = daemon.engine.limits().http_connections;
    // What other machines may have leaves as much to this one.
    let limit = if tls.is_some() { (limit / 2).max(1) } else { limit };
    let served = TaskTracker::new();
    // Those that are accepted have it from the listener.
    if let Err(error) = sockopt::set_socket_send_buffer_size(&listener, SOCKET_BYTES) {
        tracing::warn!(%error, "the system keeps as much as it likes for clients that do not read");
    }
    let door = BoundedListener::new(listener, limit, if tls.is_some() { Vec::new() } else { full(limit) });
    let arrivals = tls.is_some().then(|| arrivals(daemon, limit));
    while let Some((stream, place)) = door.next(&daemon.stop).await {
        let Some(origin) = PeerOrigin::of(&stream, arrivals.as_ref()) else { continue };
        let (daemon, router, tls) = (daemon.clone(), router.clone(), tls.clone());
        served.spawn(async move {
            // An answer is several small writes; the last must not wait for the client to acknowledge the first.
            stream.set_nodelay(true).ok();
            match tls {
                Some(tls) => secure_connection(stream, origin, &tls, daemon, router).await,
                None => connection(stream, origin, daemon, router).await,
            }
            drop(place);
        });
    }
    drop(door);
    served.close();
    served.wait().await;
}

/// The places of clients that have shown no valid credentials yet: at most half of a port's, so that the
/// others find one.
fn arrivals(daemon: &Daemon, limit: usize) -> Arrivals {
    let limits = daemon.engine.limits();
    let all = limits.unauthenticated_connections.min(limit / 2).max(1);
    Arrivals::new(all, limits.unauthenticated_connections_per_address)
}

/// Where a connection comes from. Each of its requests has all of this as extensions.
#[derive(Clone)]
struct PeerOrigin {
    network: PeerNetwork,
    /// What cuts it, on a port that other machines reach.
    cut: CancellationToken,
    /// It counts as a stranger's until its client is admitted, on such a port.
    arrival: Option<Arrival>,
    /// What the client has shown for TLS.
    certificate: Option<Arc<ClientCertificate>>,
}

impl PeerOrigin {
    /// That of a new connection; none where it is one too many, or gone.
    fn of(stream: &TcpStream, arrivals: Option<&Arrivals>) -> Option<Self> {
        let network = PeerNetwork::from(stream.peer_addr().ok()?.ip());
        let cut = CancellationToken::new();
        let arrival = match arrivals {
            Some(arrivals) => {
                let Some(arrival) = arrivals.arrive(network, cut.clone()) else {
                    tracing::debug!(?network, "a connection is refused: too many have shown no credentials");
                    return None;
                };
                Some(arrival)
            }
            None => None,
        };
        Some(Self { network, cut, arrival, certificate: None })
    }

    fn extend(&self, extensions: &mut hyper::http::Extensions) {
        extensions.insert(self.network);
        if let Some(arrival) = &self.arrival {
            extensions.insert(arrival.clone());
        }
        if let Some(certificate) = &self.certificate {
            extensions.insert(Arc::clone(certificate));
        }
    }
}

/// One connection over TLS, to its end. A client whose handshake takes longer than `request-ms` is disconnected.
async fn secure_connection(stream: TcpStream, origin: PeerOrigin, tls: &Tls, daemon: Daemon, router: Router) {
    let patience = Duration::from_millis(daemon.engine.limits().request_ms);
    let stream = CuttableStream::new(stream, origin.cut.clone());
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(patience, tls.accept(stream)) => accepted,
        () = daemon.stop.cancelled() => return,
    };
    match accepted {
        Ok(Ok((stream, certificate))) => {
            let origin = PeerOrigin { certificate: certificate.map(Arc::new), ..origin };
            connection(stream, origin, daemon, router).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "the TLS handshake of a connection failed"),
        Err(_) => tracing::debug!("a connection does not begin TLS in time"),
    }
}

/// One connection, to its end.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: PeerOrigin,
    daemon: Daemon,
    router: Router,
) {
    let patience = Duration::from_millis(daemon.engine.limits().request_ms);
    let answers = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        origin.extend(request.extensions_mut());
        answers.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_headers(HEADERS)
        .max_header_size(BUFFER_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
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

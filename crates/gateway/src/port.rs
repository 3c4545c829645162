//! The ports: who may come in, and where each path leads.
//!
//! Every request must name this machine in Host (a page that resolves its own name to 127.0.0.1 does not), must come from no
//! page or one of this machine's (Origin), and must show the token, unless its path is public: the same for everybody. The port that other machines
//! reach is the same over TLS, where nobody is the user that the daemon runs as.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use mainstay_model::{Error, Timestamp};
use tokio::net::TcpListener;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::admission::Admission;
use crate::arrivals::Arrival;
use crate::authorities::Authorities;
use crate::browser;
use crate::client_certificate::ClientCertificate;
use crate::connections;
use crate::daemon::Daemon;
use crate::peer_network::PeerNetwork;
use crate::problem::Problem;
use crate::protocol::{Pages, Protocols};
use crate::tls::Tls;
use crate::trace::trace;

/// Listens on the loopback interface; port 0 takes any free one.
///
/// # Errors
/// [`Error::PortTaken`]; [`Error::InvalidArgument`] where this user may not have the port, [`Error::DaemonFailed`] where the machine
/// does not give it.
pub async fn listen(port: u16) -> Result<(TcpListener, u16), Error> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await.map_err(|error| refused(port, &error))?;
    let port = listener.local_addr().map_or(port, |address| address.port());
    Ok((listener, port))
}

/// Why a port cannot be listened on.
fn refused(port: u16, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::AddrInUse {
        return Error::PortTaken { port };
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        let reason =
            format!("this user may not listen on port {port}; take 0 for any free one, or one from 1024 on");
        return Error::InvalidArgument { argument: "port".to_owned(), reason };
    }
    Error::DaemonFailed { reason: format!("it cannot listen on 127.0.0.1:{port}: {error}") }
}

/// Serves the daemon's port until it stops.
pub async fn serve(listener: TcpListener, daemon: Daemon, protocols: Protocols) {
    let router = router(&daemon, &protocols);
    connections::serve(listener, &daemon, router, None).await;
}

/// Listens on an address that other machines can reach; port 0 takes any free one.
///
/// # Errors
/// [`Error::PortTaken`]; [`Error::InvalidArgument`] where this user may not have the port, or the machine has no such address.
pub async fn listen_remote(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            let reason = format!("this machine has no address {}", address.ip());
            Error::InvalidArgument { argument: "listen".to_owned(), reason }
        }
        _ => refused(address.port(), &error),
    })?;
    let address = listener.local_addr().unwrap_or(address);
    Ok((listener, address))
}

/// Serves the daemon over TLS on a port that other machines reach by these names, until it stops.
pub async fn serve_remote(
    listener: TcpListener,
    tls: Tls,
    reached: Authorities,
    daemon: &Daemon,
    protocols: Protocols,
) {
    let daemon = daemon.for_others(reached);
    let router = router(&daemon, &protocols);
    connections::serve(listener, &daemon, router, Some(tls)).await;
}

/// Serves these paths alone, until the daemon stops. It checks no token: whoever brings them does.
pub async fn serve_only(listener: TcpListener, daemon: Daemon, paths: Router) {
    let paths = local_only(paths, daemon.authorities(), None);
    connections::serve(listener, &daemon, paths, None).await;
}

/// Serves the protocol of this name alone, on a port of its own, until the daemon stops.
pub async fn serve_alone(listener: TcpListener, port: u16, daemon: Daemon, protocols: Protocols, name: &str) {
    let found = protocols.named(name).and_then(|protocol| protocol.paths_of_own_port(&daemon));
    let Some(paths) = found else {
        tracing::error!(name, "no protocol of this name is served on a port of its own");
        return;
    };
    let pages = pages_of(&protocols);
    let guarded = paths.layer(from_fn_with_state(Guard::new(&daemon, &protocols, pages), require_token));
    let paths = local_only(guarded, Authorities::loopback(port), pages);
    connections::serve(listener, &daemon, paths, None).await;
}

/// Every path of every protocol, behind its checks.
fn router(daemon: &Daemon, protocols: &Protocols) -> Router {
    let limit = DefaultBodyLimit::max(daemon.engine.limits().message_bytes);
    let (mut guarded, mut public) = (Router::new(), Router::new());
    for protocol in protocols.iter() {
        let paths = protocol.paths(daemon);
        guarded = guarded.merge(paths.guarded);
        public = public.merge(paths.public);
    }
    let pages = pages_of(protocols);
    let guarded = guarded
        .layer(limit)
        .layer(from_fn(trace))
        .layer(from_fn_with_state(Guard::new(daemon, protocols, pages), require_token));
    local_only(public.merge(guarded), daemon.authorities(), pages)
}

/// What people see who are refused.
fn pages_of(protocols: &Protocols) -> Option<Pages> {
    protocols.iter().find_map(|protocol| protocol.pages())
}

/// The same paths, for what is addressed to a listener by a name of its own, from no page or one of its own.
fn local_only(router: Router, authorities: Authorities, pages: Option<Pages>) -> Router {
    router.layer(from_fn_with_state((Arc::new(authorities), pages), require_local))
}

/// What the check of tokens needs to know.
#[derive(Clone)]
struct Guard {
    daemon: Daemon,
    /// Paths at which a WebSocket may show its token in the address.
    token_in_address: Arc<[&'static str]>,
    pages: Option<Pages>,
}

impl Guard {
    fn new(daemon: &Daemon, protocols: &Protocols, pages: Option<Pages>) -> Self {
        let token_in_address =
            protocols.iter().flat_map(|protocol| protocol.token_in_address()).copied().collect();
        Self { daemon: daemon.clone(), token_in_address, pages }
    }
}

/// Lets through what is addressed to a listener by a name of its own, from no page or one of its own.
async fn require_local(
    State((authorities, pages)): State<(Arc<Authorities>, Option<Pages>)>,
    request: Request,
    next: Next,
) -> Response {
    let pages = pages.filter(|_| takes_html(request.headers()));
    let response = match authorities.foreign_name(request.headers()) {
        Some(origin) => Problem::from(Error::ForbiddenOrigin { origin }).into_response(),
        None => next.run(request).await,
    };
    let is_refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    match (response.extensions().get::<Error>(), pages) {
        (Some(error), Some(pages)) if is_refused => (pages.refused)(error.clone()),
        (Some(_) | None, _) => response,
    }
}

async fn require_token(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let Guard { daemon, token_in_address, pages } = guard;
    let shown = shown(&request, &token_in_address);
    let is_visit = shown.is_none() && pages.as_ref().is_some_and(|pages| is_visit(&request, pages));
    let admission = match &shown {
        Some(shown) => admission(&daemon, shown, network_of(&request)).await,
        None => {
            by_certificate(&daemon, &request).or_else(|| without_credentials(&daemon, &request, is_visit))
        }
    };
    match admission {
        Some(admission) => {
            if let Some(arrival) = request.extensions().get::<Arrival>() {
                arrival.admit();
            }
            request.extensions_mut().insert(admission.access.clone());
            request.extensions_mut().insert(admission.clone());
            // Other streams have no end of their own; what the daemon waits for are answers.
            let under_way = (request.method() == Method::POST).then(|| daemon.answering.token());
            let response = next.run(request).await.map(|body| limited(body, admission));
            match under_way {
                Some(token) => response.map(|body| held(body, token)),
                None => response,
            }
        }
        // A browser shows no token when it opens an address. What it is given then does, and has nothing in it.
        None => match pages.filter(|_| is_visit) {
            Some(pages) => (pages.shell)(),
            None => Problem::from(Error::Unauthorized).into_response(),
        },
    }
}

/// Whom a token stands for, or the secret of a browser.
async fn admission(daemon: &Daemon, shown: &str, from: PeerNetwork) -> Option<Admission> {
    match browser::access_of(&daemon.tokens, shown) {
        Some(access) => Some(access.into()),
        None => daemon.tokens.admit(shown, from, Timestamp::now()).await,
    }
}

/// Where a request comes from.
fn network_of(request: &Request) -> PeerNetwork {
    request.extensions().get().copied().unwrap_or(PeerNetwork::LOCAL)
}

/// Whom a request stands for by the certificate of its connection.
fn by_certificate(daemon: &Daemon, request: &Request) -> Option<Admission> {
    let certificate = request.extensions().get::<Arc<ClientCertificate>>()?;
    daemon.tokens.admit_certificate(certificate, Timestamp::now()).filter(|_| !is_of_another_page(request))
}

/// Whom a request stands for that shows nothing, where that is allowed. A browser is first given what lets it in.
fn without_credentials(daemon: &Daemon, request: &Request, is_visit: bool) -> Option<Admission> {
    daemon.tokens.anonymous().filter(|_| !is_visit && !is_of_another_page(request))
}

/// Whether a browser asks for a page that is not the daemon's: what a client need not show for itself, any page would have.
fn is_of_another_page(request: &Request) -> bool {
    request.headers().get("sec-fetch-site").is_some_and(|site| site != "same-origin")
}

/// Whether a browser opens an address of the page.
fn is_visit(request: &Request, pages: &Pages) -> bool {
    let below = request.uri().path().strip_prefix(pages.path);
    let is_page = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
    is_page && request.method() == Method::GET && takes_html(request.headers())
}

/// Whether HTML is what someone asks for, as browsers do for people.
pub fn takes_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.to_ascii_lowercase().contains("text/html"))
}

/// The token that a request shows: in its header; in its address where it opens a WebSocket, since many clients of those can give no header.
fn shown(request: &Request, token_in_address: &[&str]) -> Option<String> {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = header.and_then(bearer);
    let upgrade = request.headers().get(header::UPGRADE).and_then(|value| value.to_str().ok());
    let may_be_in_address = token_in_address.contains(&request.uri().path());
    let opens_socket = || {
        let is_socket = upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"));
        may_be_in_address && is_socket && request.method() == Method::GET
    };
    let query = request.uri().query().filter(|_| given.is_none() && opens_socket());
    let of_query = || query?.split('&').find_map(|pair| pair.strip_prefix("token=")).and_then(decoded);
    given.map(str::to_owned).or_else(of_query)
}

/// A token as an address has it: what may not stand there is written with `%` (RFC 3986, 2.1), and a plus
/// means itself. None where it is no text.
fn decoded(written: &str) -> Option<String> {
    let mut parts = written.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The token of a header; the name of the scheme may be written in any case (RFC 9110, 11.1).
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// An answer may be a stream itself: it is under way until its last piece is taken.
fn held(body: Body, token: TaskTrackerToken) -> Body {
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let _held = &token;
        piece
    }))
}

/// An answer that is a stream ends with the credentials that it was asked with; who asks again is refused.
fn limited(body: Body, admission: Admission) -> Body {
    if admission.expires_at.is_none() {
        return body;
    }
    let expired = Box::pin(async move { admission.expired().await });
    Body::from_stream(body.into_data_stream().take_until(expired))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_an_address_is_read_as_it_was_before_it_was_written_there() {
        let of = |query: &str| {
            let request = Request::get(format!("http://localhost/socket?{query}"));
            let request = request.header("upgrade", "websocket").body(Body::empty()).unwrap();
            shown(&request, &["/socket"])
        };
        for (query, token) in [
            ("token=a-b._~+/=", Some("a-b._~+/=")),
            ("x=1&token=corp%3Aa%2bb", Some("corp:a+b")),
            ("token=corp:a", Some("corp:a")),
            ("token=%C3%A9", Some("é")),
            ("token=%C3", None),
            ("token=%3", None),
            ("token=%zz", None),
            ("other=a", None),
        ] {
            assert_eq!(of(query).as_deref(), token, "{query}");
        }
    }

    #[test]
    fn a_port_is_called_taken_only_where_someone_has_it() {
        let said = |kind: io::ErrorKind| {
            let error = refused(80, &kind.into());
            format!("{}: {error}", error.code())
        };
        insta::assert_debug_snapshot!(
            [io::ErrorKind::AddrInUse, io::ErrorKind::PermissionDenied, io::ErrorKind::AddrNotAvailable].map(said),
            @r#"
        [
            "port_taken: port 80 is taken",
            "invalid_argument: port is not valid: this user may not listen on port 80; take 0 for any free one, or one from 1024 on",
            "daemon_failed: the daemon did not start: it cannot listen on 127.0.0.1:80: address not available",
        ]
        "#
        );
    }
}

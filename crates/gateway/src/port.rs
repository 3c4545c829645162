//! The loopback port: who may come in, and where each path leads.
//!
//! Every request must name this machine in Host (a page that resolves its own name to 127.0.0.1 does not), must come from no
//! page or one of this machine's (Origin), and must show the token, unless its path is public: the same for everybody.

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
use crate::browser;
use crate::connections;
use crate::daemon::Daemon;
use crate::problem::Problem;
use crate::protocol::{Pages, Protocols};
use crate::trace::trace;

/// The names of this machine that a request may be addressed to.
pub const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

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
    connections::serve(listener, &daemon, router).await;
}

/// Serves these paths alone, until the daemon stops. It checks no token: whoever brings them does.
pub async fn serve_only(listener: TcpListener, daemon: Daemon, paths: Router) {
    let paths = local_only(paths, daemon.port, None);
    connections::serve(listener, &daemon, paths).await;
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
    connections::serve(listener, &daemon, local_only(guarded, port, pages)).await;
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
    local_only(public.merge(guarded), daemon.port, pages)
}

/// What people see who are refused.
fn pages_of(protocols: &Protocols) -> Option<Pages> {
    protocols.iter().find_map(|protocol| protocol.pages())
}

/// The same paths, for what is addressed to this port of this machine, from this machine.
fn local_only(router: Router, port: u16, pages: Option<Pages>) -> Router {
    router.layer(from_fn_with_state((port, pages), require_local))
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

/// Lets through what is addressed to this machine, from this machine.
async fn require_local(
    State((port, pages)): State<(u16, Option<Pages>)>,
    request: Request,
    next: Next,
) -> Response {
    let pages = pages.filter(|_| takes_html(request.headers()));
    let response = match foreign_name(request.headers(), port) {
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
    match admission(&daemon, shown.as_deref()).await {
        Some(admission) => {
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
        None => match pages.filter(|pages| shown.is_none() && is_visit(&request, pages)) {
            Some(pages) => (pages.shell)(),
            None => Problem::from(Error::Unauthorized).into_response(),
        },
    }
}

/// Whom a request stands for by what it shows: a token, or the secret of a browser.
async fn admission(daemon: &Daemon, shown: Option<&str>) -> Option<Admission> {
    let shown = shown?;
    match browser::access_of(&daemon.tokens, shown) {
        Some(access) => Some(access.into()),
        None => daemon.tokens.admit(shown, Timestamp::now()).await,
    }
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
    let of_query = || query?.split('&').find_map(|pair| pair.strip_prefix("token="));
    given.or_else(of_query).map(str::to_owned)
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

/// The Host or Origin that is not this machine's, if there is one.
fn foreign_name(headers: &HeaderMap, port: u16) -> Option<String> {
    // Of a header that is there twice nobody knows which the other side meant.
    let all = |name| -> Vec<_> {
        headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    let (hosts, origins) = (all(header::HOST), all(header::ORIGIN));
    if hosts.is_empty() {
        return Some(String::new());
    }
    let is_own_origin =
        |origin: &String| origin.strip_prefix("http://").is_some_and(|own| is_own_authority(own, port));
    let foreign_host = hosts.into_iter().find(|host| !is_own_authority(host, port));
    foreign_host.or_else(|| origins.into_iter().find(|origin| !is_own_origin(origin)))
}

fn is_own_authority(authority: &str, port: u16) -> bool {
    OWN_NAMES.iter().any(|name| {
        authority
            .strip_prefix(name)
            .is_some_and(|rest| rest.strip_prefix(':').is_some_and(|p| p.parse() == Ok(port)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        foreign_name(&headers, 37749).is_some()
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_let_in() {
        assert!(!foreign("127.0.0.1:37749", None));
        assert!(!foreign("localhost:37749", Some("http://localhost:37749")));
        for host in [
            "evil.example:37749",
            "127.0.0.1.evil.example:37749",
            "127.0.0.1:1",
            "127.0.0.1",
            "",
            "localhost:377490",
        ] {
            assert!(foreign(host, None), "{host}");
        }
        for origin in ["http://evil.example", "null", "https://localhost:37749", "http://localhost:8080"] {
            assert!(foreign("localhost:37749", Some(origin)), "{origin}");
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

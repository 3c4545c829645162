//! Who asks, and what every answer under `/ui` says to the browser.

use axum::extract::{Extension, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use mainstay_engine::Client;
use mainstay_model::{Access, Error, Seq, SessionId};

use tokio::sync::OwnedSemaphorePermit;

use super::frame;
use crate::HttpDaemon;
use mainstay_gateway::problem::status_of;
use mainstay_protocol::view::ErrorView;

/// What a page may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Says to the browser what the page may do, and not to keep what is shown, but for what its own name says will never change.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    with_headers(next.run(request).await)
}

/// An answer that says so.
pub(super) fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in
        [(header::X_CONTENT_TYPE_OPTIONS, "nosniff"), (header::REFERRER_POLICY, "no-referrer")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What code shows has a stricter one.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Someone who looks at the page.
pub(super) struct Viewer {
    pub(super) daemon: HttpDaemon,
    pub(super) client: Client,
}

impl Viewer {
    /// A place for a stream, which has it until it ends.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        self.daemon.http.place(self.daemon.engine.limits().streams)
    }

    /// The session of this id, where it may be seen.
    pub(super) async fn session(&self, id: &str) -> Result<SessionId, Refused> {
        let unknown = || Error::SessionNotFound { reference: id.to_owned() };
        let session = id.parse().map_err(|_| unknown())?;
        self.client.status(session).await?;
        Ok(session)
    }
}

impl FromRequestParts<HttpDaemon> for Viewer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, daemon: &HttpDaemon) -> Result<Self, Refused> {
        let access = Extension::<Access>::from_request_parts(parts, daemon).await;
        let Extension(access) = access.map_err(|_| Refused(Error::Unauthorized))?;
        Ok(Self { client: daemon.engine.attach(access, "web"), daemon: daemon.clone() })
    }
}

/// Why something is not shown: a page that says so, and what to do next.
pub(super) struct Refused(pub(super) Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = status_of(&self.0);
        let view = ErrorView::from(self.0);
        let page = frame::plain(
            "Not shown",
            &maud::html! {
                h1 { "This cannot be shown" }
                p { (view.message) }
                p { (view.next_step) }
                p { a href="/ui" { "All sessions" } }
            },
        );
        (status, page).into_response()
    }
}

/// What the address says behind its path under a name.
pub(super) fn argument(uri: &Uri, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

/// A place in a session's events that the address says.
pub(super) fn place(uri: &Uri, name: &str) -> Option<Seq> {
    argument(uri, name)?.parse().ok().map(Seq)
}

//! The server of a connection, or of all that come over HTTP: whom it stands for, and what it remembers between calls. [`super::handler`] is what
//! `rmcp` calls of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use mainstay_engine::Client;
use mainstay_model::{Access, Error, Principal, SessionId};
use mainstay_runner::Environment;
use rmcp::model::RequestId;
use rmcp::service::RequestContext;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::daemon::McpDaemon;
use super::ended::EndedSessions;
use super::places::Places;
use super::subscriptions::Subscriptions;

/// MCP for one connection, or for all that come over HTTP.
#[derive(Clone)]
pub struct Server {
    pub(super) daemon: McpDaemon,
    /// The client's folder, where it is known.
    pub(super) working_directory: Option<String>,
    /// The session that the connection used last, or the transport's session; a request without either uses it once.
    last_used: Arc<Mutex<Option<SessionId>>>,
    /// Which connection it is, or which session of the transport.
    pub(super) connection: Uuid,
    /// Why the latest calls were cancelled, by their requests.
    reasons: Arc<watch::Sender<VecDeque<Cancelled>>>,
    /// Whether nobody sees what its client is asked: it declined an ask faster than a person can.
    declines_unseen: Arc<AtomicBool>,
    /// Whom a connection stands for; requests over HTTP each say it.
    whose: Option<Arc<Connected>>,
    /// How many calls may be under way: of the connection, or of all that come over HTTP.
    places: Arc<Places>,
    /// Held while a session is created for want of one, so that two calls at once share it.
    pub(super) creation: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled when the client goes, or the daemon has stopped. A call that is cancelled before that is cancelled by the client.
    pub(super) closing: CancellationToken,
    /// Whether the connection, or the transport's session, has had an answer.
    pub(super) first_answer: FirstAnswer,
    /// What the connection follows, or the transport's session: it ends with the last copy of this.
    pub(super) followers: Arc<Subscriptions>,
    /// The sessions of the transport that their clients have ended.
    ended: EndedSessions,
}

/// Whether a connection has been told.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstAnswer(Arc<AtomicBool>);

impl FirstAnswer {
    /// Whether this is the first answer; from now on none is.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// A request that was cancelled, and why, where its client says it.
type Cancelled = (RequestId, Option<String>);

/// How long the reason of a cancellation is waited for, which comes with it.
const REASON_COMES: Duration = Duration::from_secs(1);
/// How many such reasons are kept.
const REASONS: usize = 64;

/// A connection: whom it stands for, and the client it was at its last call.
struct Connected {
    access: Access,
    environment: Option<Environment>,
    client: Mutex<Option<Client>>,
}

impl Server {
    /// Creates the server of one connection.
    pub(super) fn for_connection(
        daemon: McpDaemon,
        access: Access,
        (working_directory, environment): (Option<String>, Option<Environment>),
        closing: CancellationToken,
    ) -> Self {
        let whose = Some(Arc::new(Connected { access, environment, client: Mutex::default() }));
        let places = Arc::new(Places::new(daemon.engine.limits().connection_requests, 1));
        Self::new(daemon, working_directory, whose, (places, closing))
    }

    /// Serves requests that have nothing to do with each other.
    pub(super) fn for_all(daemon: McpDaemon) -> Self {
        let closing = daemon.stopped.clone();
        // Requests over HTTP have no connection of their own.
        let principals = daemon.tokens.principals();
        let places = Arc::new(Places::new(daemon.engine.limits().connections, principals));
        Self::new(daemon, None, None, (places, closing))
    }

    fn new(
        daemon: McpDaemon,
        working_directory: Option<String>,
        whose: Option<Arc<Connected>>,
        (places, closing): (Arc<Places>, CancellationToken),
    ) -> Self {
        Self {
            daemon,
            working_directory,
            last_used: Arc::default(),
            connection: Uuid::now_v7(),
            reasons: Arc::default(),
            declines_unseen: Arc::default(),
            whose,
            places,
            creation: Arc::default(),
            closing,
            first_answer: FirstAnswer::default(),
            followers: Arc::default(),
            ended: EndedSessions::default(),
        }
    }

    /// For one session of the transport over HTTP, or one request without: it follows and remembers for itself, and shares all else.
    pub(super) fn for_transport_session(&self) -> Self {
        let Self { daemon, working_directory, whose, places, closing, creation, ended, .. } = self.clone();
        Self { creation, ended, ..Self::new(daemon, working_directory, whose, (places, closing)) }
    }

    /// The sessions of the transport that their clients have ended.
    pub(super) fn ended_sessions(&self) -> &EndedSessions {
        &self.ended
    }

    /// Whether a call is cancelled because its client has gone, and not because anybody wants it to stop.
    pub(super) fn has_lost_client(&self, request: Option<&Parts>) -> bool {
        let session = request.and_then(|parts| parts.headers.get(HEADER_SESSION_ID)?.to_str().ok());
        self.closing.is_cancelled() || session.is_some_and(|session| self.ended.has(session))
    }

    /// The client that makes a call, as it calls itself. A connection stays the client it was at its last call.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] where nothing says whom it stands for.
    pub(super) fn client(&self, request: Option<&Parts>, name: &str) -> Result<Client, Error> {
        let Some(connected) = &self.whose else {
            let access = request.and_then(|parts| parts.extensions.get::<Access>());
            let access = access.cloned().ok_or(Error::Unauthorized)?;
            return Ok(self.daemon.engine.attach(access, name));
        };
        let mut client = connected.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().filter(|client| client.name() == name) {
            return Ok(client.clone());
        }
        let attached = self.daemon.engine.attach(connected.access.clone(), name).as_connection();
        Ok(client.insert(attached.with_environment(connected.environment.clone())).clone())
    }

    /// Notes that the client of this connection has left, though its calls may still be under way.
    pub(super) fn leave(&self) {
        let Some(connected) = &self.whose else { return };
        if let Some(client) = connected.client.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            client.leave();
        }
    }

    /// Notes that the answer to a request has come to the client, which sends nothing more.
    pub(super) fn note_delivered(&self, request: &RequestId) {
        self.daemon.mcp.calls.mark_delivered(self.connection, request);
    }

    /// A place for one more call of whoever makes it.
    pub(super) fn place(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<OwnedSemaphorePermit, ErrorData> {
        let request = context.extensions.get::<Parts>();
        let access = match &self.whose {
            Some(connected) => Some(&connected.access),
            None => request.and_then(|parts| parts.extensions.get::<Access>()),
        };
        let principal = access.map_or_else(Principal::local, |access| access.principal.clone());
        self.places.take(&principal).ok_or_else(|| {
            let refused = Error::TooManyRequests { what: "calls".to_owned(), limit: self.places.share() };
            ErrorData::invalid_request(format!("{refused}. {}", refused.next_step()), None)
        })
    }

    /// Whether all that comes is of one connection.
    pub(super) fn is_connection(&self) -> bool {
        self.whose.is_some()
    }

    /// The session the connection used last.
    pub(super) fn last_used(&self) -> Option<SessionId> {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on in the session that the client used over an earlier connection, where it is still there and may be seen.
    pub(super) async fn use_again(&self, session: SessionId) {
        let Some(connected) = &self.whose else { return };
        let client = self.daemon.engine.attach(connected.access.clone(), "mcp:bridge");
        if client.status(session).await.is_ok() {
            self.use_session(session);
        }
    }

    /// Goes back to the session that the connection used before this one, which is withdrawn.
    pub(super) fn use_instead(&self, withdrawn: SessionId, before: Option<SessionId>) {
        let mut last_used = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        if *last_used == Some(withdrawn) {
            *last_used = before;
        }
    }

    /// Remembers the session the connection uses.
    pub(super) fn use_session(&self, session: SessionId) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// What a client said as it cancelled this request; none where it said nothing of the kind.
    pub(super) async fn cancelled_by_client(&self, request: &RequestId) -> Option<Option<String>> {
        let is_of = |(cancelled, _): &Cancelled| cancelled == request;
        let mut reasons = self.reasons.subscribe();
        let said = timeout(REASON_COMES, reasons.wait_for(|reasons| reasons.iter().any(is_of)));
        let reasons = said.await.ok()?.ok()?;
        reasons.iter().find(|reason| is_of(reason)).map(|(_, reason)| reason.clone())
    }

    /// Whether nobody sees what its client is asked.
    pub(super) fn declines_unseen(&self) -> bool {
        self.declines_unseen.load(Ordering::Relaxed)
    }

    /// Nobody sees what its client is asked.
    pub(super) fn note_unseen_decline(&self) {
        self.declines_unseen.store(true, Ordering::Relaxed);
    }

    /// Notes why a request was cancelled.
    pub(super) fn note_cancel(&self, request: RequestId, reason: Option<String>) {
        self.reasons.send_modify(|reasons| {
            reasons.push_back((request, reason));
            if reasons.len() > REASONS {
                reasons.pop_front();
            }
        });
    }
}

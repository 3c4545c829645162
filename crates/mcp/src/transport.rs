//! The two ways in: a stream of lines, and HTTP.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::model::{ClientNotification, JsonRpcMessage, JsonRpcNotification, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::SessionConfig;
use rmcp::transport::streamable_http_server::{SessionId, StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{Transport, TransportAdapterIdentity};
use rmcp::{RoleServer, ServerHandler};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::daemon::McpDaemon;
use super::ended::EndedSessions;
use super::lines::Lines;
use super::resumption::Sessions;
use super::server::Server;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::local_socket::ClientContext;

/// How long a client of the older protocols may be silent before its transport session is forgotten. A running eval makes
/// no sound either, so this is also how long one may take there.
const HTTP_SESSION_LIFE: Duration = Duration::from_hours(6);

/// Serves MCP, one message a line, until the client goes, its credentials have expired, or the daemon stops (`mainstay mcp`).
pub async fn serve_stream<R, W>(
    read: R,
    write: W,
    daemon: McpDaemon,
    admission: impl Into<Admission>,
    context: ClientContext,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (admission, stopped) = (admission.into(), daemon.stopped.clone());
    let closing = CancellationToken::new();
    let lines = Lines::new(read, write, daemon.engine.limits().message_bytes);
    let ClientContext { working_directory, session, environment } = context;
    let server = Server::for_connection(
        daemon,
        admission.access.clone(),
        (working_directory, environment),
        closing.clone(),
    );
    let left = server.clone();
    let transport = Watched { inner: lines, closing, left, admission, stopped, unanswered: Arc::default() };
    if let Some(session) = session {
        Box::pin(server.use_again(session)).await;
    }
    // Boxed, since all that serves a connection would take more of a thread's stack than there is.
    let served = Box::pin(serve_server::<_, _, _, TransportAdapterIdentity>(server, transport)).await;
    let ended = match served {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an MCP connection ended early");
    }
}

/// `/mcp`. It checks no token: whoever mounts it does.
pub fn http_routes(daemon: &McpDaemon) -> Router {
    http_routes_of(daemon, |server| server)
}

/// The same path for another handler, made of each of ours: one a session of the transport, and one a request without.
pub fn http_routes_of<H: ServerHandler>(
    daemon: &McpDaemon,
    handler: impl Fn(Server) -> H + Send + Sync + 'static,
) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(daemon.authorities().hosts())
        .with_max_request_body_bytes(daemon.engine.limits().message_bytes)
        .with_json_response(true)
        // It would begin streams alike for all versions of the protocol; the sessions do it for those that know it.
        .with_sse_retry(None);
    let mut session = SessionConfig::default();
    session.keep_alive = Some(HTTP_SESSION_LIFE);
    let server = Server::for_all(daemon.clone());
    let sessions = Arc::new(Sessions::new(session, daemon.engine.limits()));
    let ended = server.ended_sessions().clone();
    let service = StreamableHttpService::new(
        move || Ok(handler(server.for_transport_session())),
        Arc::clone(&sessions),
        config,
    );
    Router::new().route_service("/mcp", service).layer(from_fn_with_state((sessions, ended), told_of_the_end))
}

/// Says of the end of a session of the transport what clients expect. `rmcp` answers 202 (Accepted) to every `DELETE`, which Python's SDK takes
/// for a failure, and which hides that there is no such session.
async fn told_of_the_end(
    State((sessions, ended)): State<(Arc<Sessions>, EndedSessions)>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::DELETE {
        return next.run(request).await;
    }
    let id = request.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(SessionId::from);
    let was_there = match &id {
        Some(id) => sessions.has_session(id).await.unwrap_or_default(),
        None => false,
    };
    if let Some(id) = id.filter(|_| was_there) {
        ended.note(id);
    }
    let mut response = next.run(request).await;
    if response.status() == StatusCode::ACCEPTED {
        match was_there {
            true => *response.status_mut() = StatusCode::NO_CONTENT,
            false => return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response(),
        }
    }
    response
}

/// A transport that is at its end only when all that came through it is answered, however long that takes: `rmcp` itself
/// waits five seconds. It says when the client sends nothing more, so that one that goes is told from one that cancels. When
/// the daemon has stopped it takes nothing more.
struct Watched<T> {
    inner: T,
    closing: CancellationToken,
    /// Told when the client has left.
    left: Server,
    admission: Admission,
    stopped: CancellationToken,
    unanswered: Arc<watch::Sender<HashSet<RequestId>>>,
}

impl<T> Watched<T> {
    fn note(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.unanswered.send_if_modified(|unanswered| unanswered.insert(request.id.clone()));
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                if let Some(id) = &cancelled.params.request_id {
                    self.unanswered.send_if_modified(|unanswered| unanswered.remove(id));
                }
            }
            JsonRpcMessage::Notification(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

/// The request that a message answers.
fn answered(message: &TxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = answered(&message);
        let sent = self.inner.send(message);
        let unanswered = Arc::clone(&self.unanswered);
        let (left, closing) = (self.left.clone(), self.closing.clone());
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                // One that sends nothing more may still read.
                if sent.is_ok() && closing.is_cancelled() {
                    left.note_delivered(&id);
                }
                unanswered.send_if_modified(|unanswered| unanswered.remove(&id));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = tokio::select! {
            message = self.inner.receive() => message,
            () = self.stopped.cancelled() => None,
            () = self.admission.expired() => None,
        };
        match &message {
            Some(message) => self.note(message),
            None => {
                self.closing.cancel();
                self.left.leave();
                // It fails only without a sender, and we are one.
                self.unanswered.subscribe().wait_for(HashSet::is_empty).await.ok();
            }
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

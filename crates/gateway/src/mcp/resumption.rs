//! Sessions of the transport whose clients may lose a connection of streamable HTTP: who comes back with the id of the last event it has
//! is told what it missed ([`Kept`]), and what comes. Only the versions before 2026-07-28 have such sessions.
//!
//! None of it outlives the daemon: a client whose session is not known (404) begins a new one, and finds its work again by the handle that
//! every answer has, and the answer to what it sent by its idempotency key.

use std::sync::Arc;

use futures::Stream;
use futures::future::Either;
use mainstay_model::Limits;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig, SessionError,
};
use rmcp::transport::streamable_http_server::session::{EventStore, ServerSseMessage, SessionManager};
use rmcp::transport::streamable_http_server::{RestoreOutcome, SessionId};

use super::kept::Kept;

/// The id that `rmcp` gives to what stands before the answer to `initialize`.
const BEFORE_ALL: &str = "0";

/// The sessions.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    kept: Kept,
}

impl Sessions {
    pub(super) fn new(config: SessionConfig, limits: &Limits) -> Self {
        let kept = Kept::new(limits.mcp_kept_bytes, limits.mcp_streams);
        let mut inner = LocalSessionManager::default().with_event_store(Arc::new(kept.clone()));
        inner.session_config = config;
        Self { inner, kept }
    }
}

/// What `rmcp` calls the stream of what belongs to no request.
fn common(session: &SessionId) -> String {
    format!("{session}:common")
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let closed = self.inner.close_session(id).await;
        self.kept.forget(&common(id));
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.kept.go_on(common(id));
        // It may have been closed meanwhile.
        if !self.inner.has_session(id).await? {
            self.kept.forget(&common(id));
        }
        Ok(stream)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if last_event_id == BEFORE_ALL {
            return self.create_standalone_stream(id).await.map(Either::Left);
        }
        let missed = self.kept.after(&last_event_id);
        missed.map(Either::Right).map_err(|error| SessionError::EventStore(error.into()).into())
    }

    async fn restore_session(&self, _: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        Ok(RestoreOutcome::NotSupported)
    }

    /// Requests of the newest version would outlive their connections by it, and to end one is to cancel its request.
    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        None
    }
}

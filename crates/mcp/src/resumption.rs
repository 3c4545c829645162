//! Sessions of the transport whose clients may lose a connection of streamable HTTP: who comes back with the id of the last event it has
//! is told what it missed ([`ReplayBuffer`]), and what comes. Only the versions before 2026-07-28 have such sessions.
//!
//! None of it outlives the daemon: a client whose session is not known (404) begins a new one, and finds its work again by the handle that
//! every answer has, and the answer to what it sent by its idempotency key.

use std::collections::HashSet;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::Either;
use futures::stream::iter;
use futures::{Stream, StreamExt};
use mainstay_model::Limits;
use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig, SessionError,
};
use rmcp::transport::streamable_http_server::session::{EventStore, ServerSseMessage, SessionManager};
use rmcp::transport::streamable_http_server::{RestoreOutcome, SessionId};

use super::replay_buffer::ReplayBuffer;

/// The id of what a stream of no request begins with.
const BEFORE_ALL: &str = "0";

/// The sessions.
///
/// From 2025-11-25 on a stream begins with an event that says nothing, so that a client which loses the connection early has an id to come back
/// with. Clients of older versions know no such event, and Gemini CLI loses all tools over one, since it reads the nothing as JSON.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    kept: ReplayBuffer,
    /// Those of a version that knows events without data.
    primed: Mutex<HashSet<SessionId>>,
}

impl Sessions {
    pub(super) fn new(config: SessionConfig, limits: &Limits) -> Self {
        let kept = ReplayBuffer::new(limits.mcp_kept_bytes, limits.mcp_streams);
        let mut inner = LocalSessionManager::default().with_event_store(Arc::new(kept.clone()));
        inner.session_config = config;
        Self { inner, kept, primed: Mutex::default() }
    }

    /// Whether the client of a session knows events without data.
    fn is_primed(&self, id: &SessionId) -> bool {
        self.primed.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// What a stream tells the client of a session.
    fn told(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let is_primed = self.is_primed(id);
        stream.filter(move |event| ready(is_primed || event.message.is_some()))
    }
}

/// Whether the version that an answer to `initialize` has agreed on knows events without data.
fn agrees_on_priming(answer: &ServerJsonRpcMessage) -> bool {
    match answer {
        JsonRpcMessage::Response(response) => match &response.result {
            ServerResult::InitializeResult(agreed) => {
                agreed.protocol_version.as_str() >= ProtocolVersion::V_2025_11_25.as_str()
            }
            _ => false,
        },
        JsonRpcMessage::Error(_) | JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
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
        let answer = self.inner.initialize_session(id, message).await?;
        if agrees_on_priming(&answer) {
            self.primed.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
            // It may have been closed meanwhile.
            if !self.inner.has_session(id).await? {
                self.primed.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            }
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let closed = self.inner.close_session(id).await;
        self.kept.forget(&common(id));
        self.primed.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.inner.create_stream(id, message).await?;
        Ok(self.told(id, stream))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let begin = ServerSseMessage::priming(BEFORE_ALL, SessionConfig::DEFAULT_SSE_RETRY);
        let stream = self.told(id, iter([begin]).chain(self.kept.go_on(common(id))));
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
        missed
            .map(|missed| Either::Right(self.told(id, missed)))
            .map_err(|error| SessionError::EventStore(error.into()).into())
    }

    async fn restore_session(&self, _: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        Ok(RestoreOutcome::NotSupported)
    }

    /// Requests of the newest version would outlive their connections by it, and to end one is to cancel its request.
    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        None
    }
}

//! What can be asked about one session: its committed state, its worker's usage and the progress of its warm-up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{AgentState, Error, RunningJob, Session, SessionId, SessionState};
use mainstay_runner::{ResourceUsage, WarmUpProgress};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::Engine;
use crate::session::Request;
use crate::sync::time::timeout;

/// A session, and what its worker uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The session as it is now.
    pub session: Session,
    /// What its worker uses.
    pub usage: Option<ResourceUsage>,
    /// How far it is, where it is given its definitions back.
    pub warm_up: Option<WarmUpProgress>,
    /// Whether the connection that asked for what runs has left.
    #[serde(default)]
    pub is_orphaned: bool,
    /// That its creator's environment was too large to be taken, in a sentence.
    #[serde(default)]
    pub dropped_environment: Option<String>,
}

impl Engine {
    /// How the agent of a session goes on: as it said last, or as far as that is known before it is started.
    pub fn agent_state(&self, session: &Session) -> AgentState {
        let factory = || self.shared.factories.iter().find(|factory| factory.serves(&session.kind));
        let environment = || self.shared.environments.of(session.id);
        let begins = || Some(factory()?.beginning(Path::new(&session.working_directory), &environment()));
        session.agent.clone().or_else(begins).unwrap_or_default()
    }

    /// A session as committed, also one that was deleted.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        match self.committed(session) {
            Some(session) => Ok(Some((*session).clone())),
            None => self.shared.log.session(session).await,
        }
    }

    /// A session as the log has it, and what its worker uses. Never older than an event that was read: one that follows
    /// from the log may hear of a commit before the session's task does.
    pub(crate) async fn status(&self, session: SessionId) -> Result<SessionStatus, Error> {
        let session = self.stored(session).await?;
        let usage = if session.worker.is_some() { self.usage(session.id).await } else { None };
        let warm_up = self.warm_up(&session);
        let is_orphaned = self.is_orphaned(&session);
        let dropped_environment = self.shared.environments.dropped(session.id);
        Ok(SessionStatus { session, usage, warm_up, is_orphaned, dropped_environment })
    }

    /// Whether the connection that asked for what runs in a session has left.
    pub(crate) fn is_orphaned(&self, session: &Session) -> bool {
        let asked_for = |running: &RunningJob| (running.source.principal(), running.command.clone());
        session.running().is_some_and(|running| self.shared.clients.has_left(&asked_for(running)))
    }

    /// Word of each client that leaves from now on.
    pub(crate) fn departures(&self) -> watch::Receiver<()> {
        self.shared.clients.departures()
    }

    /// How far a session is that is given its definitions back.
    pub(crate) fn warm_up(&self, session: &Session) -> Option<WarmUpProgress> {
        match session.state() {
            SessionState::WarmingUp => self.shared.warm_ups.of(session.id),
            SessionState::Uninitialized
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => None,
        }
    }

    /// Waits until the session is neither idle nor warming up, at most `limit`, and returns the session as it then is.
    pub(crate) async fn settled(&self, session: SessionId, limit: Duration) -> Result<Arc<Session>, Error> {
        // Held meanwhile: it keeps the task of an idle session.
        let mut handle = self.handle(session).await?;
        let visible = &mut handle.visible;
        let has_settled = |session: &Arc<Session>| match session.state() {
            SessionState::Uninitialized | SessionState::WarmingUp => false,
            SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => true,
        };
        // Whether it settled or not, the caller sees the state.
        timeout(limit, visible.wait_for(has_settled)).await.ok();
        Ok(Arc::clone(&visible.borrow()))
    }

    /// What a live session's worker uses.
    pub(crate) async fn usage(&self, session: SessionId) -> Option<ResourceUsage> {
        let handle = self.lock().handles.get(&session)?.upgrade()?;
        let (reply, answer) = oneshot::channel();
        handle.send(Request::Usage { reply }).await;
        answer.await.ok().flatten()
    }
}

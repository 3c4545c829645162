//! Which sessions have a connection. A session has one at most: who resumes it takes it from the connection before, which may be lost without the
//! daemon's knowledge.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// The sessions that have a connection.
#[derive(Clone, Default)]
pub(crate) struct LiveSessions {
    connections: Arc<Mutex<HashMap<String, Connection>>>,
    /// How many sessions were opened; held by who looks whether those are too many.
    opened: Arc<tokio::sync::Mutex<usize>>,
}

struct Connection {
    /// Held for as long as the connection has the session.
    held: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled once another connection wants the session.
    replaced: CancellationToken,
}

/// A session that a connection has.
pub(crate) struct HeldSession {
    session: String,
    sessions: LiveSessions,
    /// Cancelled once another connection wants the session.
    pub(crate) replaced: CancellationToken,
    _held: OwnedMutexGuard<()>,
}

impl LiveSessions {
    /// Takes a session from the connection that has it, and waits until that has ended.
    pub(crate) async fn hold(&self, session: &str) -> HeldSession {
        let (held, replaced) = {
            let mut all = self.lock();
            let entry = all
                .entry(session.to_owned())
                .or_insert_with(|| Connection { held: Arc::default(), replaced: CancellationToken::new() });
            std::mem::take(&mut entry.replaced).cancel();
            (Arc::clone(&entry.held), entry.replaced.clone())
        };
        let held = held.lock_owned().await;
        HeldSession { session: session.to_owned(), sessions: self.clone(), replaced, _held: held }
    }

    /// Counts a session that is opened. Only one in so many is to look at all sessions there are: that is its turn, as long as it is held.
    pub(crate) async fn turn_to_look(&self, one_in: usize) -> Option<tokio::sync::MutexGuard<'_, usize>> {
        let mut opened = self.opened.lock().await;
        let is_turn = opened.is_multiple_of(one_in.max(1));
        *opened = opened.wrapping_add(1);
        is_turn.then_some(opened)
    }

    /// Whether a connection has this session.
    pub(crate) fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldSession {
    fn drop(&mut self) {
        // Whoever wants it meanwhile has the entry.
        if !self.replaced.is_cancelled() {
            self.sessions.lock().remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_is_taken_from_the_connection_before_once_that_has_ended() {
        let sessions = LiveSessions::default();
        let first = sessions.hold("a").await;
        let waits = tokio::spawn({
            let sessions = sessions.clone();
            async move { sessions.hold("a").await }
        });
        first.replaced.cancelled().await;
        assert!(!waits.is_finished(), "the first has it still");
        drop(first);
        let second = waits.await.unwrap();
        assert!(!second.replaced.is_cancelled());
        drop(sessions.hold("b").await);
        assert_eq!(sessions.lock().len(), 1);
        drop(second);
        assert_eq!(sessions.lock().len(), 0, "nothing is kept of what nobody has");
    }
}

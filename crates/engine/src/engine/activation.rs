//! Who brings up a session's task: one at a time for each session, so that each has one task, and nobody once the daemon goes down.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use mainstay_model::SessionId;
use tokio::sync::{OwnedMutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::sync::Mutex;

/// The turns of those who bring up tasks.
#[derive(Default)]
pub(super) struct Activations {
    /// Held by all of them, and alone by who waits for their end.
    all: RwLock<()>,
    of_session: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
}

/// Held while a session's task is brought up.
pub(super) struct Activation<'a> {
    _turn: OwnedMutexGuard<()>,
    _one_of_all: RwLockReadGuard<'a, ()>,
}

impl Activations {
    /// The turn to bring up the task of a session.
    pub(super) async fn begin(&self, session: SessionId) -> Activation<'_> {
        let one_of_all = self.all.read().await;
        let turn = self.turn(session).lock_owned().await;
        Activation { _turn: turn, _one_of_all: one_of_all }
    }

    /// Waits until nobody brings up a task any more, and lets nobody begin.
    pub(super) async fn end_all(&self) -> RwLockWriteGuard<'_, ()> {
        self.all.write().await
    }

    fn turn(&self, session: SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.of_session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&session).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::<tokio::sync::Mutex<()>>::default();
        turns.insert(session, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(number))
    }

    #[test]
    fn tasks_of_several_sessions_are_brought_up_beside_each_other_and_two_of_one_are_not() {
        let activations = Activations::default();
        let first = activations.begin(session(1)).now_or_never().unwrap();
        assert!(activations.begin(session(1)).now_or_never().is_none());
        let second = activations.begin(session(2)).now_or_never().unwrap();
        assert!(activations.end_all().now_or_never().is_none());
        drop(first);
        drop(activations.begin(session(1)).now_or_never().unwrap());
        drop(second);
        let _no_more = activations.end_all().now_or_never().unwrap();
        assert!(activations.begin(session(1)).now_or_never().is_none());
    }
}

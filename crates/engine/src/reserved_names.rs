//! The names that sessions are about to get. A name is reserved until its session has it, or did not get it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use mainstay_model::{Principal, SessionId};

use crate::sync::Mutex;

/// The owner, the folder and the name.
pub(crate) type NameKey = (Principal, String, String);

/// The names that sessions are about to get.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashMap<NameKey, (SessionId, usize)>>);

impl Names {
    /// Reserves a name for a session, which may do so several times; none where another has.
    pub(crate) fn reserve(self: &Arc<Self>, key: NameKey, session: SessionId) -> Option<Reservation> {
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (holder, count) = reserved.entry(key.clone()).or_insert((session, 0));
        let is_ours = *holder == session;
        *count += usize::from(is_ours);
        is_ours.then(|| Reservation { names: Arc::clone(self), key })
    }

    /// Whether a session is about to get this name.
    pub(crate) fn is_reserved(&self, key: &NameKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }
}

/// A name that a session is about to get.
#[derive(Debug)]
pub(crate) struct Reservation {
    names: Arc<Names>,
    key: NameKey,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = reserved.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                reserved.remove(&self.key);
            }
        }
    }
}

//! The server's own lane: what creates sessions, one after the other.

use mainstay_model::Error;
use tokio::sync::{Mutex, MutexGuard, Semaphore};

/// The server's lane: one at a time, in the order in which they came, and so many waiting at most.
pub(crate) struct ServerLane {
    turn: Mutex<()>,
    places: Semaphore,
    limit: usize,
}

impl ServerLane {
    /// One in which so many may wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            turn: Mutex::default(),
            places: Semaphore::new(limit.saturating_add(1).min(Semaphore::MAX_PERMITS)),
            limit,
        }
    }

    /// How many wait or are carried out.
    pub(crate) fn len(&self) -> usize {
        self.limit.saturating_add(1).saturating_sub(self.places.available_permits())
    }

    /// The next turn, once it has come; until it is dropped.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let place = self.places.try_acquire().map_err(|_| Error::LaneFull { limit: self.limit })?;
        Ok(Turn { _turn: self.turn.lock().await, _place: place })
    }
}

/// The right to create a session, held by one creation at a time.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _place: tokio::sync::SemaphorePermit<'a>,
}

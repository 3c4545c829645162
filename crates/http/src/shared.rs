//! What all requests over HTTP share: the places for streams, and what is kept of checks, events and the daemon's health.

use std::sync::Arc;

use mainstay_model::{Error, Limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::checks::Checks;
use super::encode_cache::EncodeCache;
use super::health::Health;
use super::recorders;

/// What all requests share.
pub struct Shared {
    pub(crate) checks: Checks,
    /// How the daemon was.
    pub(crate) health: Health,
    /// Permits for open streams, which bound their number.
    pub(crate) streams: Arc<Semaphore>,
    /// Places for those of them that are compressed.
    pub(crate) compressed: Arc<Semaphore>,
    /// What streams tell of events.
    pub(crate) written: EncodeCache,
}

impl Shared {
    /// With as many places as the limits give. The process records metrics from then on.
    pub fn new(limits: &Limits) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        recorders::record();
        Self {
            checks: Checks::default(),
            health: Health::new(limits.health_notes),
            streams: places(limits.streams),
            compressed: places(limits.compressed_streams),
            written: EncodeCache::default(),
        }
    }

    /// A place for a stream, which has it until it ends. `limit` is how many there are.
    pub(crate) fn place(&self, limit: usize) -> Result<OwnedSemaphorePermit, Error> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| Error::TooManyConnections { limit })
    }
}

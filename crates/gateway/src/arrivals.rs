//! The connections from other machines whose clients have not shown valid credentials yet: how many there may be, together and of one peer.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::keyed_places::{KeyedPlace, KeyedPlaces};
use crate::peer_network::PeerNetwork;

/// The places of connections whose clients are not known yet.
pub(crate) struct Arrivals {
    all: Arc<Semaphore>,
    peers: KeyedPlaces<PeerNetwork>,
}

/// A connection whose client may not be known yet. It has a place among those until the client is admitted, or the connection ends.
#[derive(Clone)]
pub struct Arrival(Arc<Mutex<Option<Places>>>);

struct Places {
    _all: OwnedSemaphorePermit,
    _peer: KeyedPlace<PeerNetwork>,
}

impl Arrivals {
    /// So many places for all together, and so many for each peer.
    pub(crate) fn new(all: usize, each: usize) -> Self {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Self { all, peers: KeyedPlaces::new(each) }
    }

    /// A connection of this peer; none where there is no place for it.
    pub(crate) fn arrive(&self, from: PeerNetwork) -> Option<Arrival> {
        let peer = self.peers.try_acquire(from)?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Arrival(Arc::new(Mutex::new(Some(Places { _all: all, _peer: peer })))))
    }
}

impl Arrival {
    /// Gives up the place, since the client has shown valid credentials.
    pub fn admit(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn network(last: u8) -> PeerNetwork {
        IpAddr::from([192, 0, 2, last]).into()
    }

    #[test]
    fn strangers_have_so_many_places_and_whoever_is_admitted_needs_none() {
        let arrivals = Arrivals::new(3, 2);
        let [first, second] = [1, 1].map(|last| arrivals.arrive(network(last)).unwrap());
        assert!(arrivals.arrive(network(1)).is_none(), "it has two");
        let third = arrivals.arrive(network(2)).unwrap();
        assert!(arrivals.arrive(network(3)).is_none(), "all together have three");
        first.admit();
        let fourth = arrivals.arrive(network(1)).unwrap();
        assert!(arrivals.arrive(network(1)).is_none());
        drop((second, third, fourth));
        assert!(arrivals.arrive(network(3)).is_some());
    }
}

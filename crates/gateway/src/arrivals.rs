//! The connections from other machines whose clients have not shown valid credentials yet: how many there may
//! be, together and of one peer.
//!
//! Where there are as many as may be, the peer that has most of them loses its oldest for a new one. So
//! whoever has many addresses keeps nobody out that connects and shows its credentials.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::peer_network::PeerNetwork;

/// The connections whose clients are not known yet.
pub(crate) struct Arrivals {
    limit: usize,
    limit_of_peer: usize,
    strangers: Arc<Mutex<Strangers>>,
}

#[derive(Default)]
struct Strangers {
    count: usize,
    last_id: u64,
    /// What cuts each connection, by peer, the oldest first.
    peers: HashMap<PeerNetwork, BTreeMap<u64, CancellationToken>>,
}

/// A connection whose client may not be known yet. It counts as a stranger's until the client is admitted, or
/// the connection ends.
#[derive(Clone)]
pub struct Arrival(Arc<Stranger>);

struct Stranger {
    id: u64,
    from: PeerNetwork,
    all: Arc<Mutex<Strangers>>,
}

impl Arrivals {
    /// At most so many together, and so many of each peer.
    pub(crate) fn new(limit: usize, limit_of_peer: usize) -> Self {
        Self { limit, limit_of_peer, strangers: Arc::default() }
    }

    /// A new connection of this peer, and what cuts it; none where the peer has as many as it may have.
    pub(crate) fn arrive(&self, from: PeerNetwork, cut: CancellationToken) -> Option<Arrival> {
        let mut strangers = locked(&self.strangers);
        if strangers.peers.get(&from).is_some_and(|own| own.len() >= self.limit_of_peer) {
            return None;
        }
        if strangers.count >= self.limit {
            strangers.cut_one();
        }
        strangers.count += 1;
        strangers.last_id += 1;
        let id = strangers.last_id;
        strangers.peers.entry(from).or_default().insert(id, cut);
        Some(Arrival(Arc::new(Stranger { id, from, all: Arc::clone(&self.strangers) })))
    }
}

impl Strangers {
    /// Cuts the oldest connection of the peer that has most; of several such peers, of the one whose oldest
    /// is the oldest of all.
    fn cut_one(&mut self) {
        let of_peer = |own: &BTreeMap<u64, CancellationToken>| {
            (own.len(), std::cmp::Reverse(own.keys().next().copied()))
        };
        let most = self.peers.iter().max_by_key(|(_, own)| of_peer(own));
        let Some((from, id)) = most.and_then(|(from, own)| Some((*from, *own.keys().next()?))) else {
            return;
        };
        if let Some(cut) = self.remove(from, id) {
            tracing::debug!(?from, "a connection is cut for another: too many have shown no credentials");
            cut.cancel();
        }
    }

    fn remove(&mut self, from: PeerNetwork, id: u64) -> Option<CancellationToken> {
        let own = self.peers.get_mut(&from)?;
        let cut = own.remove(&id)?;
        if own.is_empty() {
            self.peers.remove(&from);
        }
        self.count -= 1;
        Some(cut)
    }
}

impl Arrival {
    /// Says that the client has shown valid credentials: the connection is no stranger's any more.
    pub fn admit(&self) {
        self.0.leave();
    }
}

impl Stranger {
    fn leave(&self) {
        locked(&self.all).remove(self.from, self.id);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.leave();
    }
}

fn locked(strangers: &Mutex<Strangers>) -> MutexGuard<'_, Strangers> {
    strangers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// A connection from a machine; whether it was cut.
    struct Connection {
        arrival: Arrival,
        cut: CancellationToken,
    }

    fn arrive(arrivals: &Arrivals, last: u8) -> Option<Connection> {
        let cut = CancellationToken::new();
        let from = IpAddr::from([192, 0, 2, last]).into();
        let arrival = arrivals.arrive(from, cut.clone())?;
        Some(Connection { arrival, cut })
    }

    #[test]
    fn a_peer_has_so_many_connections_until_its_clients_are_admitted_or_gone() {
        let arrivals = Arrivals::new(9, 2);
        let [first, second] = [1, 1].map(|last| arrive(&arrivals, last).unwrap());
        assert!(arrive(&arrivals, 1).is_none());
        assert!(arrive(&arrivals, 2).is_some(), "another is in nobody's way");
        first.arrival.admit();
        let third = arrive(&arrivals, 1).unwrap();
        assert!(arrive(&arrivals, 1).is_none());
        drop(second);
        assert!(arrive(&arrivals, 1).is_some());
        assert!(!first.cut.is_cancelled() && !third.cut.is_cancelled());
    }

    #[test]
    fn the_peer_with_most_connections_makes_room_and_whoever_is_admitted_does_not() {
        let arrivals = Arrivals::new(4, 3);
        let [known, one, two, three] = [1, 2, 2, 3].map(|last| arrive(&arrivals, last).unwrap());
        known.arrival.admit();
        let fourth = arrive(&arrivals, 4).unwrap();
        let is_cut = |all: &[&Connection]| -> Vec<_> {
            all.iter().map(|connection| connection.cut.is_cancelled()).collect()
        };
        assert_eq!(is_cut(&[&known, &one, &two, &three, &fourth]), [false; 5]);
        let fifth = arrive(&arrivals, 5).unwrap();
        assert_eq!(is_cut(&[&known, &one, &two, &three, &fourth]), [false, true, false, false, false]);
        // Each has one: the oldest makes room.
        let sixth = arrive(&arrivals, 6).unwrap();
        assert_eq!(is_cut(&[&known, &two, &three, &fourth, &fifth]), [false, true, false, false, false]);
        // What was cut counts no more, and not twice.
        drop((one, two));
        let seventh = arrive(&arrivals, 7).unwrap();
        assert_eq!(is_cut(&[&three, &fourth, &fifth, &sixth, &seventh]), [true, false, false, false, false]);
        assert_eq!(locked(&arrivals.strangers).count, 4);
        drop((three, fourth, fifth, sixth, seventh, known));
        let strangers = locked(&arrivals.strangers);
        assert_eq!((strangers.count, strangers.peers.len()), (0, 0));
    }
}

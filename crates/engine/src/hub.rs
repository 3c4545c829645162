//! Live events for those who follow a session, and the cursor that joins them to the log without gap or repetition.
//!
//! Only committed events come through here. A follower that is too slow for the live channel reads what it missed from
//! the log: it costs others nothing, and misses nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_log::Log;
use mainstay_model::{Error, Event, Seq, SessionId};
use tokio::sync::broadcast;

/// How many live events a follower may be behind before it reads from the log.
const LIVE_EVENTS: usize = 256;
/// How many events are read from the log at once.
const PAGE: usize = 256;

type Live = broadcast::Sender<Arc<Event>>;

/// The live channels of the sessions that someone follows.
pub(crate) struct Hub {
    /// None once the daemon goes down.
    channels: Mutex<Option<HashMap<SessionId, Live>>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { channels: Mutex::new(Some(HashMap::new())) }
    }
}

impl Hub {
    /// Passes committed events on, in the order of the session.
    pub(crate) fn publish(&self, session: SessionId, events: Vec<Event>) {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(channels) = channels.as_mut() else { return };
        let Some(live) = channels.get(&session) else { return };
        if live.receiver_count() == 0 {
            channels.remove(&session);
            return;
        }
        for event in events {
            // It fails only when the last follower left just now.
            live.send(Arc::new(event)).ok();
        }
    }

    /// Follows a session from a cursor on.
    pub(crate) fn subscribe(&self, log: Arc<dyn Log>, session: SessionId, after: Seq) -> Subscription {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = || broadcast::channel(LIVE_EVENTS).0;
        let live = match channels.as_mut() {
            Some(channels) => channels.entry(session).or_insert_with(channel).subscribe(),
            None => channel().subscribe(),
        };
        Subscription { log, session, cursor: after, live, page: VecDeque::new(), caught_up: false }
    }

    /// Ends every live channel: followers get what was published, then the end.
    pub(crate) fn close(&self) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Every event of a session after a cursor, exactly once, in order: first those in the log, then live ones.
pub struct Subscription {
    log: Arc<dyn Log>,
    session: SessionId,
    cursor: Seq,
    live: broadcast::Receiver<Arc<Event>>,
    page: VecDeque<Event>,
    caught_up: bool,
}

impl Subscription {
    /// The next event; waits for it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::StoreFailed`] where the log cannot be read, [`Error::DaemonStopping`] after the last event of a daemon that
    /// goes down.
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.seq;
                return Ok(Arc::new(event));
            }
            if !self.caught_up {
                self.page = self.log.events(self.session, self.cursor, PAGE).await?.into();
                self.caught_up = self.page.is_empty();
                continue;
            }
            match self.live.recv().await {
                Ok(event) if event.seq <= self.cursor => {}
                Ok(event) if event.seq == self.cursor.next() => {
                    self.cursor = event.seq;
                    return Ok(event);
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.caught_up = false,
                Err(broadcast::error::RecvError::Closed) => return Err(Error::DaemonStopping),
            }
        }
    }
}

//! Live events for those who follow sessions, and the cursor that joins them to the log without gap or repetition.
//!
//! Only committed events come through here. What was published last is kept once for all followers of a session
//! ([`recent`]); a follower is a cursor into that ([`subscription`]), and one that is too far behind reads from the log.
//! So publishing costs the same however slow anyone is. Those who follow all sessions share one reader of the log
//! ([`tail`]), because sessions publish side by side, and only the log knows the order of all.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use mainstay_log::Log;
use mainstay_model::{Event, EventFilter, Live, Position, Seq, SessionId};
use tokio::sync::{broadcast, watch};

use crate::metering::ActivityCounters;
use crate::sync::{Mutex, MutexGuard};

mod feed;
mod live;
mod recent;
mod subscription;
mod tail;

pub(crate) use feed::{Feed, publish_stored};
pub(crate) use live::Listener;
use recent::{Place, Recent};
pub use subscription::Cursor;
use subscription::Sources;
pub(crate) use subscription::Subscription;
use tail::Tail;

/// The live channels of what someone follows.
pub(crate) struct Hub {
    /// None once the daemon goes down.
    channels: Mutex<Option<Channels>>,
    /// What went through it.
    pub(crate) activity: ActivityCounters,
}

struct Channels {
    sessions: HashMap<SessionId, watch::Sender<Recent<Seq>>>,
    /// What is heard at once, of each session that someone listens to.
    live: HashMap<SessionId, broadcast::Sender<Arc<Live>>>,
    /// The newest position that was published.
    newest: watch::Sender<Position>,
    tail: Option<Tail>,
}

impl Hub {
    /// A hub over a log whose newest event has this place.
    pub(crate) fn new(newest: Position) -> Self {
        let (newest, _) = watch::channel(newest);
        Self {
            channels: Mutex::new(Some(Channels {
                sessions: HashMap::new(),
                live: HashMap::new(),
                newest,
                tail: None,
            })),
            activity: ActivityCounters::default(),
        }
    }

    /// The newest position that was published; none once the daemon goes down.
    pub(crate) fn newest(&self) -> Option<Position> {
        self.lock().as_ref().map(|channels| *channels.newest.borrow())
    }

    /// Passes committed events on, in the order of the session.
    pub(crate) fn publish(&self, session: SessionId, events: Vec<Event>) {
        let mut channels = self.lock();
        let Some(channels) = channels.as_mut() else { return };
        let Some(last) = events.last().map(|event| event.position) else { return };
        let events: Vec<_> = events.into_iter().map(Arc::new).collect();
        let is_taken = channels.tail.as_ref().is_some_and(|tail| tail.take(&events));
        // A session may publish after another whose events come later in the log.
        channels.newest.send_if_modified(|newest| {
            let is_newer = last > *newest;
            *newest = last.max(*newest);
            is_newer && !is_taken
        });
        if let Some(live) = channels.sessions.get(&session) {
            live.send_modify(|recent| {
                // What another daemon stored may be published by two: by who hears of it, and by a committer that is late.
                let newest = recent.last();
                for event in events.into_iter().filter(|event| event.seq > newest) {
                    recent.push(Seq(event.seq.0.saturating_sub(1)), event);
                }
            });
        }
    }

    /// Follows from a cursor on what the filter lets through. Must be called within a runtime.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        log: Arc<dyn Log>,
        cursor: Cursor,
        filter: EventFilter,
    ) -> Subscription {
        let sources = Sources { hub: Arc::downgrade(self), log, filter };
        match cursor {
            Cursor::Session { session, after } => {
                Subscription::of_session(session, sources, after, self.session(session))
            }
            Cursor::Log { after } => {
                let live = self.tail(&sources.log);
                Subscription::of_log(sources, after, live)
            }
        }
    }

    /// Passes on what is kept nowhere, to those who listen.
    pub(crate) fn tell(&self, session: SessionId, live: Live) {
        let mut channels = self.lock();
        let Some(Channels { live: listened, .. }) = channels.as_mut() else { return };
        if let Some(told) = listened.get(&session)
            && told.send(Arc::new(live)).is_err()
        {
            listened.remove(&session);
        }
    }

    /// Listens to a session. What was said before is not heard.
    pub(crate) fn listen(&self, session: SessionId) -> Listener {
        let channel = || broadcast::channel(live::KEPT).0;
        let heard = match self.lock().as_mut() {
            Some(channels) => {
                // Those that nobody listens to any more.
                channels.live.retain(|_, listened| listened.receiver_count() > 0);
                channels.live.entry(session).or_insert_with(channel).subscribe()
            }
            None => channel().subscribe(),
        };
        Listener(heard)
    }

    /// How many subscriptions there are.
    pub(crate) fn subscribers(&self) -> usize {
        self.lock().as_ref().map_or(0, |Channels { sessions, tail, .. }| {
            let of_sessions: usize = sessions.values().map(watch::Sender::receiver_count).sum();
            of_sessions + tail.as_ref().map_or(0, Tail::followers)
        })
    }

    /// Ends every live channel: followers get what was published, then the end.
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    fn session(&self, session: SessionId) -> watch::Receiver<Recent<Seq>> {
        match self.lock().as_mut() {
            Some(channels) => channels.sessions.entry(session).or_default().subscribe(),
            None => ended(),
        }
    }

    fn tail(&self, log: &Arc<dyn Log>) -> watch::Receiver<Recent<Position>> {
        match self.lock().as_mut() {
            Some(Channels { newest, tail, .. }) => {
                tail.get_or_insert_with(|| Tail::start(Arc::clone(log), newest.subscribe())).follow()
            }
            None => ended(),
        }
    }

    /// Drops the session's channel where nobody follows it any more.
    fn left_session(&self, session: SessionId) {
        if let Some(channels) = self.lock().as_mut()
            && channels.sessions.get(&session).is_some_and(|live| live.receiver_count() == 0)
        {
            channels.sessions.remove(&session);
        }
    }

    /// Ends the reader of the log where nobody follows all sessions any more.
    fn left_log(&self) {
        if let Some(channels) = self.lock().as_mut() {
            channels.tail.take_if(|tail| tail.followers() == 0).into_iter().for_each(Tail::end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Channels>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel that gives nothing more.
fn ended<P: Place>() -> watch::Receiver<Recent<P>> {
    watch::channel(Recent::default()).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_log::{SqliteLog, SqliteOptions};
    use uuid::Uuid;

    #[tokio::test]
    async fn a_channel_goes_with_its_last_follower() {
        let folder = tempfile::tempdir().unwrap();
        let log: Arc<dyn Log> = Arc::new(SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap());
        let hub = Arc::new(Hub::new(Position::ZERO));
        let session = SessionId::from_uuid(Uuid::nil());
        for cursor in [Cursor::Session { session, after: Seq::ZERO }, Cursor::Log { after: Position::ZERO }] {
            let follow = || hub.subscribe(Arc::clone(&log), cursor, EventFilter::default());
            let (one, other) = (follow(), follow());
            let open = || {
                let channels = hub.lock();
                let channels = channels.as_ref().unwrap();
                channels.sessions.len() + usize::from(channels.tail.is_some())
            };
            drop(one);
            assert_eq!((open(), hub.subscribers()), (1, 1), "{cursor:?}");
            drop(other);
            assert_eq!((open(), hub.subscribers()), (0, 0), "{cursor:?}");
        }
    }
}

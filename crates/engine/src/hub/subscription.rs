//! A follower: a cursor, first into the log, then into what was published last. It holds at most a small page of events,
//! however far behind it is.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use mainstay_log::Log;
use mainstay_model::{Error, Event, EventFilter, Position, Seq, SessionId};
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

use super::Hub;
use super::recent::{Next, Place, Recent, json_bytes};

/// How many events are read from the log at once, at first.
const FIRST_PAGE: usize = 16;
/// How many at most.
const LARGEST_PAGE: usize = 256;
/// Bytes of JSON of the events that one follower holds; a larger event is held alone.
const PAGE_BYTES: usize = 3 * 1024;

/// What was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// A place in the events of one session.
    Session {
        /// The session that is followed.
        session: SessionId,
        /// The last event that the subscriber has.
        after: Seq,
    },
    /// Of all sessions, in the order of the log.
    Log {
        /// The last event that the subscriber has.
        after: Position,
    },
}

/// Every wanted event after a cursor, exactly once, in order: first those in the log, then live ones.
pub(crate) struct Subscription(SubscribedStream);

enum SubscribedStream {
    Session(Follower<OneSession>),
    Log(Follower<AllSessions>),
}

impl Subscription {
    pub(super) fn of_session(
        session: SessionId,
        sources: Sources,
        after: Seq,
        live: watch::Receiver<Recent<Seq>>,
    ) -> Self {
        Self(SubscribedStream::Session(Follower::new(OneSession(session), sources, after, live)))
    }

    pub(super) fn of_log(sources: Sources, after: Position, live: watch::Receiver<Recent<Position>>) -> Self {
        Self(SubscribedStream::Log(Follower::new(AllSessions, sources, after, live)))
    }

    /// Nothing in the log comes after its cursor that is not published to it, so that it need not look.
    pub(crate) const fn begins_at_the_end(&mut self) {
        match &mut self.0 {
            SubscribedStream::Session(follower) => follower.is_behind = false,
            SubscribedStream::Log(follower) => follower.is_behind = false,
        }
    }

    /// The next event that is wanted; waits for it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::StoreFailed`] where the log cannot be read, [`Error::DaemonStopping`] after the last event of a daemon that
    /// goes down.
    pub(crate) async fn next(&mut self) -> Result<Arc<Event>, Error> {
        match &mut self.0 {
            SubscribedStream::Session(follower) => follower.next().await,
            SubscribedStream::Log(follower) => follower.next().await,
        }
    }

    /// The next event that is wanted, where it was read already or published lately.
    pub(crate) fn try_next(&mut self) -> Option<Arc<Event>> {
        match &mut self.0 {
            SubscribedStream::Session(follower) => follower.try_next(),
            SubscribedStream::Log(follower) => follower.try_next(),
        }
    }

    /// How far it has come: past the last event it gave, and past those after it that are known not to be wanted. Another
    /// subscription that begins here goes on where this one is.
    pub(crate) fn cursor(&self) -> Cursor {
        match &self.0 {
            SubscribedStream::Session(follower) => {
                Cursor::Session { session: follower.stream.0, after: follower.cursor }
            }
            SubscribedStream::Log(follower) => Cursor::Log { after: follower.cursor },
        }
    }
}

/// Where a follower's events come from, and which it wants.
pub(super) struct Sources {
    pub(super) hub: Weak<Hub>,
    pub(super) log: Arc<dyn Log>,
    pub(super) filter: EventFilter,
}

/// A stream of events that a subscription can follow.
#[async_trait]
trait Stream {
    type Place: Place + Send + Sync;

    /// The events after a place, from the log.
    async fn read(&self, log: &dyn Log, after: Self::Place, limit: usize) -> Result<Vec<Event>, Error>;

    /// Nobody may follow it any more.
    fn leave(&self, hub: &Hub);
}

struct OneSession(SessionId);

struct AllSessions;

#[async_trait]
impl Stream for OneSession {
    type Place = Seq;

    async fn read(&self, log: &dyn Log, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        log.events(self.0, after, limit).await
    }

    fn leave(&self, hub: &Hub) {
        hub.left_session(self.0);
    }
}

#[async_trait]
impl Stream for AllSessions {
    type Place = Position;

    async fn read(&self, log: &dyn Log, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        log.all_events(after, limit).await
    }

    fn leave(&self, hub: &Hub) {
        hub.left_log();
    }
}

struct Follower<S: Stream> {
    stream: S,
    sources: Sources,
    cursor: S::Place,
    /// The wanted events after the cursor, up to `read`.
    page: VecDeque<Event>,
    read: S::Place,
    page_size: usize,
    /// Whether the log may have events after `read` that are not published any more.
    is_behind: bool,
    /// None once it is dropped.
    live: Option<watch::Receiver<Recent<S::Place>>>,
}

impl<S: Stream> Follower<S> {
    fn new(stream: S, sources: Sources, after: S::Place, live: watch::Receiver<Recent<S::Place>>) -> Self {
        Self {
            stream,
            sources,
            cursor: after,
            page: VecDeque::new(),
            read: after,
            page_size: FIRST_PAGE,
            is_behind: true,
            live: Some(live),
        }
    }

    async fn next(&mut self) -> Result<Arc<Event>, Error> {
        // One who always finds an event must still let others run.
        consume_budget().await;
        loop {
            if let Some(event) = self.take() {
                return Ok(Arc::new(event));
            }
            if self.is_behind {
                let events = self.stream.read(&*self.sources.log, self.cursor, self.page_size).await?;
                self.keep(events);
                continue;
            }
            let Some(live) = &mut self.live else { return Err(Error::DaemonStopping) };
            let next = live.borrow_and_update().next(self.cursor, &self.sources.filter);
            match next {
                Next::Found(event) => {
                    self.cursor = S::Place::of(&event);
                    return Ok(event);
                }
                Next::Nothing(reached) => {
                    self.cursor = reached;
                    live.changed().await.map_err(|_| Error::DaemonStopping)?;
                }
                Next::Gone => self.is_behind = true,
            }
        }
    }

    /// What comes next without a look into the log.
    fn try_next(&mut self) -> Option<Arc<Event>> {
        if let Some(event) = self.take() {
            return Some(Arc::new(event));
        }
        if self.is_behind {
            return None;
        }
        // Not marked as seen: who waits next looks again.
        match self.live.as_ref()?.borrow().next(self.cursor, &self.sources.filter) {
            Next::Found(event) => {
                self.cursor = S::Place::of(&event);
                Some(event)
            }
            Next::Nothing(_) | Next::Gone => None,
        }
    }

    /// The next event of the page.
    fn take(&mut self) -> Option<Event> {
        let event = self.page.pop_front()?;
        self.cursor = S::Place::of(&event);
        if self.page.is_empty() {
            self.page = VecDeque::new();
            self.cursor = self.read;
        }
        Some(event)
    }

    /// Keeps of what was read what is wanted and not too large together; the rest is read again.
    fn keep(&mut self, events: Vec<Event>) {
        self.is_behind = events.len() >= self.page_size;
        let (mut used, mut kept_bytes) = (0, 0);
        for event in events {
            let place = S::Place::of(&event);
            if self.sources.filter.matches(&event) {
                let bytes = json_bytes(&event);
                if kept_bytes + bytes > PAGE_BYTES && !self.page.is_empty() {
                    self.is_behind = true;
                    break;
                }
                kept_bytes += bytes;
                self.page.push_back(event);
            }
            self.read = place;
            used += 1;
        }
        self.page.shrink_to_fit();
        if used > 0 {
            // As many as would be kept of events like these: what is not kept is read twice.
            self.page_size = (used * PAGE_BYTES / kept_bytes.max(1)).clamp(1, LARGEST_PAGE);
        }
        if self.page.is_empty() {
            self.cursor = self.cursor.max(self.read);
        }
    }
}

impl<S: Stream> Drop for Follower<S> {
    fn drop(&mut self) {
        // First, lest it is counted.
        self.live = None;
        if let Some(hub) = self.sources.hub.upgrade() {
            self.stream.leave(&hub);
        }
    }
}

//! The events that were published last, kept once for all who follow them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use mainstay_model::{Event, EventFilter, Position, Seq};

/// How many events are kept, of a session or of all together.
const EVENTS: usize = 256;
/// Bytes of JSON of all that are kept; a larger one is kept alone.
const BYTES: usize = 256 * 1024;

/// An event's place in the order that is followed.
pub(super) trait Place: Copy + Default + Ord {
    /// Returns the place of the event in its stream.
    fn of(event: &Event) -> Self;
}

impl Place for Seq {
    fn of(event: &Event) -> Self {
        event.seq
    }
}

impl Place for Position {
    fn of(event: &Event) -> Self {
        event.position
    }
}

/// Every event after one place and up to another.
pub(super) struct Recent<P> {
    after: P,
    last: P,
    kept: VecDeque<RecentEvent>,
    bytes: usize,
}

struct RecentEvent {
    event: Arc<Event>,
    bytes: usize,
}

impl<P: Place> Default for Recent<P> {
    fn default() -> Self {
        Self::from(P::default())
    }
}

impl<P: Place> From<P> for Recent<P> {
    /// None yet, and what comes comes after this place.
    fn from(place: P) -> Self {
        Self { after: place, last: place, kept: VecDeque::new(), bytes: 0 }
    }
}

/// What comes after a cursor.
#[derive(Debug, PartialEq)]
pub(super) enum Next<P> {
    /// This, and nothing that is wanted before it.
    Found(Arc<Event>),
    /// Nothing that is wanted up to here.
    Nothing(P),
    /// It is not kept any more.
    Gone,
}

impl<P: Place> Recent<P> {
    /// Adds an event; `before` is the place of the one before it. The oldest go where they are too many.
    pub(super) fn push(&mut self, before: P, event: Arc<Event>) {
        if before != self.last {
            self.pass(before);
        }
        let bytes = json_bytes(&event);
        self.last = P::of(&event);
        self.bytes += bytes;
        self.kept.push_back(RecentEvent { event, bytes });
        while self.kept.len() > EVENTS || (self.bytes > BYTES && self.kept.len() > 1) {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes;
            self.after = P::of(&oldest.event);
        }
    }

    /// Goes on to a place without the events before it.
    pub(super) fn pass(&mut self, place: P) {
        *self = Self::from(place);
    }

    /// Of the newest event that it has been told, kept or not.
    pub(super) const fn last(&self) -> P {
        self.last
    }

    /// The first event after a cursor that the filter lets through.
    pub(super) fn next(&self, cursor: P, filter: &EventFilter) -> Next<P> {
        if self.last <= cursor {
            return Next::Nothing(cursor);
        }
        if cursor < self.after {
            return Next::Gone;
        }
        let first = self.kept.partition_point(|kept| P::of(&kept.event) <= cursor);
        let found = self.kept.range(first..).find(|kept| filter.matches(&kept.event));
        found.map_or(Next::Nothing(self.last), |kept| Next::Found(Arc::clone(&kept.event)))
    }
}

/// About what an event takes in memory.
pub(super) fn json_bytes(event: &Event) -> usize {
    let mut counter = Counter(0);
    // Nothing in an event refuses to be JSON, and counting cannot fail.
    serde_json::to_writer(&mut counter, event).ok();
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

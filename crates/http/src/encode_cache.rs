//! What streams tell of events, written once for all who are told the same.
//!
//! An event never changes, so what is told of it depends on the event and the kind of stream alone. The streams of one session tell the
//! same events at about the same time: few are kept, and whoever finds one gone writes it again.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use mainstay_model::{Event, Seq, SessionId};

/// How many are kept: more than a session's events that streams are told without looking into the log.
const KEPT: usize = 1024;
/// Bytes of the largest that is kept.
const BYTES: usize = 16 * 1024;

/// In which way a stream tells an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EventView {
    /// What it means for the session's jobs.
    Jobs,
    /// The event itself, among those of its session.
    OfSession,
    /// The event itself, among those of all sessions.
    OfAll,
}

/// In which encoding signals are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SignalEncoding {
    /// As server-sent events (`text/event-stream`).
    Events,
    /// As frames in JSON.
    Json,
    /// As frames in BARE.
    Bare,
}

/// Which event, told in which way and in which words.
type CacheKey = (EventView, SignalEncoding, SessionId, Seq);

/// What was written lately.
pub(super) struct EncodeCache {
    hasher: RandomState,
    places: Box<[Mutex<Option<CacheEntry>>]>,
}

struct CacheEntry {
    key: CacheKey,
    /// None where that event tells nothing.
    text: Option<Bytes>,
}

impl Default for EncodeCache {
    fn default() -> Self {
        let places = std::iter::repeat_with(Mutex::default).take(KEPT).collect();
        Self { hasher: RandomState::new(), places }
    }
}

impl EncodeCache {
    /// What is told of an event; written where it is not there already.
    pub(super) fn of(
        &self,
        (telling, wording): (EventView, SignalEncoding),
        event: &Event,
        write: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Bytes> {
        let key = (telling, wording, event.session, event.seq);
        let place = self.hasher.hash_one(key) % KEPT as u64;
        let place = self.places.get(place as usize)?;
        // Who comes meanwhile waits for what is being written, and does not write it too.
        let mut kept = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.key == key) {
            return kept.text.clone();
        }
        let text = write();
        if text.as_ref().is_none_or(|text| text.len() <= BYTES) {
            *kept = Some(CacheEntry { key, text: text.clone() });
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{EventBody, Metadata, Position, Source, Timestamp};
    use uuid::Uuid;

    use super::*;

    const JOBS: (EventView, SignalEncoding) = (EventView::Jobs, SignalEncoding::Events);
    const ALL: (EventView, SignalEncoding) = (EventView::OfAll, SignalEncoding::Events);

    fn event(seq: u64) -> Event {
        Event {
            session: SessionId::from_uuid(Uuid::nil()),
            seq: Seq(seq),
            position: Position(seq),
            at: Timestamp::UNIX_EPOCH,
            metadata: Metadata {
                source: Source::System,
                correlation: None,
                causation: None,
                environment: None,
            },
            body: EventBody::SessionReset,
        }
    }

    #[test]
    fn each_event_is_told_as_itself_in_each_way_and_written_once() {
        let written = EncodeCache::default();
        let mut writes = 0;
        let mut tell = |way, seq: u64| {
            written.of(way, &event(seq), || {
                writes += 1;
                Some(Bytes::from(format!("{way:?} {seq}")))
            })
        };
        for way in [
            (EventView::Jobs, SignalEncoding::Events),
            (EventView::Jobs, SignalEncoding::Bare),
            (EventView::OfSession, SignalEncoding::Events),
            (EventView::OfAll, SignalEncoding::Json),
        ] {
            for _ in 0..3 {
                assert_eq!(tell(way, 1).unwrap(), format!("{way:?} 1"));
            }
        }
        // More than have a place: none is ever told in another's stead.
        for seq in 1..=2 * KEPT as u64 {
            assert_eq!(tell(JOBS, seq).unwrap(), format!("{JOBS:?} {seq}"));
        }
        assert!((4 + 2 * KEPT - 1..=4 + 2 * KEPT).contains(&writes), "{writes}");
    }

    #[test]
    fn what_tells_nothing_is_known_and_what_is_large_is_not_kept() {
        let written = EncodeCache::default();
        let unasked = || -> Option<Bytes> { panic!("it was written before") };
        assert_eq!(written.of(JOBS, &event(1), || None), None);
        assert_eq!(written.of(JOBS, &event(1), unasked), None);
        let large = || Some(Bytes::from(vec![b'x'; BYTES + 1]));
        assert_eq!(written.of(ALL, &event(2), large), large());
        let other = || Some(Bytes::from_static(b"again"));
        assert_eq!(written.of(ALL, &event(2), other), other());
    }
}

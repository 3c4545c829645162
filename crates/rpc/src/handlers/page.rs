//! Pages: as much of a list as one message should hold.

use mainstay_model::Error;
use serde::Serialize;

/// Events in one page at most.
pub(super) const PAGE_LIMIT: usize = 1000;
/// Where a page ends early, in bytes of JSON.
pub(super) const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// As many of the items as one message should hold, and at least one. The next page begins after the last of them.
pub(super) fn page<T: Serialize>(mut items: Vec<T>) -> Result<Vec<T>, Error> {
    let mut bytes = 0;
    for (index, item) in items.iter().enumerate() {
        let text = serde_json::to_string(item);
        bytes += text.map_err(|error| Error::BadRequest { reason: error.to_string() })?.len();
        if bytes > PAGE_BYTES && index > 0 {
            items.truncate(index);
            break;
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Event, EventBody, Metadata, Position, Seq, SessionId, Source, Timestamp};
    use uuid::Uuid;

    fn event(bytes: usize) -> Event {
        let metadata =
            Metadata { source: Source::System, correlation: None, causation: None, environment: None };
        Event {
            session: SessionId::from_uuid(Uuid::nil()),
            seq: Seq(1),
            position: Position::ZERO,
            at: Timestamp::now(),
            metadata,
            body: EventBody::SessionRenamed { name: "x".repeat(bytes) },
        }
    }

    #[test]
    fn a_page_of_large_events_ends_early_and_is_never_empty() {
        let length = |events: &[Event]| page(events.to_vec()).unwrap().len();
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[event(1), event(1)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES / 2), event(PAGE_BYTES / 3), event(PAGE_BYTES / 2)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES + 1), event(1)]), 1);
    }
}

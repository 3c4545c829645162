//! Where the items of a file stand among the events of the session that is made of them.

use super::item::{ExportedEvent, Item};
use mainstay_model::Timestamp;
use mainstay_model::entry::Origin;
use mainstay_model::event::EventBody;
use mainstay_model::id::{Seq, SessionId};

/// Where an event of an imported cell belongs: the command it is of, and the event that accepted that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedEvent {
    /// When it was recorded.
    pub at: Timestamp,
    /// The event that accepted the cell; none for that one itself.
    pub causation: Option<Seq>,
    /// What the event says.
    pub body: EventBody,
}

/// The events of a session that was imported, of which the first gets this seq.
pub fn placed(items: Vec<Item>, session: SessionId, first: Seq) -> Vec<PlacedEvent> {
    let mut events = Vec::new();
    for item in items {
        let requested = Seq(first.0 + events.len() as u64);
        match item {
            Item::Cell { events: said, .. } => {
                events.extend(said.into_iter().enumerate().map(|(index, ExportedEvent { at, body })| {
                    PlacedEvent { at, causation: (index > 0).then_some(requested), body }
                }));
            }
            Item::Message { event: ExportedEvent { at, body }, .. } => {
                events.push(PlacedEvent { at, causation: None, body: imported(body, session) });
            }
            Item::Reset { at } => {
                events.push(PlacedEvent { at, causation: None, body: EventBody::SessionReset });
            }
            Item::Label { at, entry, label } => {
                let entry = Origin { session, number: entry };
                let body = EventBody::EntryLabeled { entry, label: Some(label) };
                events.push(PlacedEvent { at, causation: None, body });
            }
            Item::End { .. } => {}
        }
    }
    events
}

/// What a summary stands for are the numbers of the session's own entries now.
fn imported(body: EventBody, session: SessionId) -> EventBody {
    let EventBody::TranscriptCompacted(mut compaction) = body else { return body };
    compaction.covers.iter_mut().for_each(|segment| segment.session = session);
    EventBody::TranscriptCompacted(compaction)
}

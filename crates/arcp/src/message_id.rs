//! The ids of messages that tell of an event, which are the same each time they are told.

use mainstay_arcp_protocol::ids::{ulid_number, ulid_text};
use mainstay_model::{Event, Position};

use crate::fold_place::Place;

/// The id of a message, which is the same each time it is told: when its event happened, the event's place in the log, and the message's among those
/// of the event.
pub(crate) fn ulid_of_place(event: &Event, index: u16) -> String {
    let milliseconds = u128::from(event.at.as_millisecond().unsigned_abs()) & ((1 << 48) - 1);
    ulid_text(milliseconds << 80 | u128::from(event.position.0) << 16 | u128::from(index))
}

/// The place of a message that has this id.
pub(crate) fn place_of_ulid(id: &str) -> Option<Place> {
    let number = ulid_number(id)?;
    let position = u64::try_from((number >> 16) & u128::from(u64::MAX)).ok()?;
    let index = u16::try_from(number & u128::from(u16::MAX)).ok()?;
    Some(Place { position: Position(position), index })
}

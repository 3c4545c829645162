//! Ids that are the same each time: of messages that tell of an event, and of what is named by a hash.

use mainstay_arcp_protocol::ids::{ulid_number, ulid_text};
use mainstay_model::{Event, Position, Timestamp};

use crate::fold_place::Place;

/// The id of a message, which is the same each time it is told: when its event happened, the event's place in the log, and the message's among those
/// of the event.
pub(crate) fn ulid_of_place(event: &Event, index: u16) -> String {
    ulid_at(event.at, u128::from(event.position.0) << 16 | u128::from(index))
}

/// A ULID of this moment; the number says the rest, in 80 bits.
pub(crate) fn ulid_at(at: Timestamp, number: u128) -> String {
    let milliseconds = u128::from(at.as_millisecond().unsigned_abs()) & ((1 << 48) - 1);
    ulid_text(milliseconds << 80 | number & ((1 << 80) - 1))
}

/// A ULID that says what was hashed, and no moment.
pub(crate) fn ulid_of_hash(hasher: &blake3::Hasher) -> String {
    let mut half = [0; 16];
    half.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    ulid_text(u128::from_be_bytes(half))
}

/// The place of a message that has this id.
pub(crate) fn place_of_ulid(id: &str) -> Option<Place> {
    let number = ulid_number(id)?;
    let position = u64::try_from((number >> 16) & u128::from(u64::MAX)).ok()?;
    let index = u16::try_from(number & u128::from(u16::MAX)).ok()?;
    Some(Place { position: Position(position), index })
}

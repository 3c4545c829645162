//! The ids of messages of dialect A, which say how far their client has come. Source: draft-arcp-01, 6.1.1 and 19.
//!
//! A message that tells of an event has the event's place, and its own among those of the event whether its reader is told of the others or not. So
//! submitters and observers know it by the same id. The message in which an observer is told has the same place, and a mark of the subscription. A question to people has the
//! id of its ask, so that an answer finds it; one that wants the vote of whom the job is not told to has the number and the ask. All others have the number of the last message that was told before them.

use mainstay_arcp_protocol::ids::ulid_number;
use mainstay_model::{AskId, Event, LeaseId, Position, SessionId, Timestamp};

use crate::fold_place::{Place, Reached};
use crate::message_id::{place_of_ulid, ulid_at, ulid_of_place};

const EVENT: &str = "evt_";
const ASK: &str = "ask_";
const VOTE: &str = "vote_";
const OBSERVED: &str = "obs_";
const LEASE: &str = "lease_";
const OTHER: &str = "msg_";
const CHECKPOINT: &str = "chk_";

/// The id of a message that tells of an event.
pub(super) fn of_event(event: &Event, index: u16) -> String {
    format!("{EVENT}{}", ulid_of_place(event, index))
}

/// The id of a message that tells an observer what is told of an event.
pub(super) fn of_observed(event: &Event, index: u16, subscription: &str) -> String {
    let hash = blake3::derive_key("mainstay arcp observer 2", subscription.as_bytes());
    let mark = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    format!("{OBSERVED}{}_{mark:08x}", ulid_of_place(event, index))
}

/// An id behind which all is that happened after this place in the log.
pub(super) fn behind(position: Position, at: Timestamp) -> String {
    format!("{EVENT}{}", ulid_at(at, u128::from(position.0) << 16 | u128::from(u16::MAX)))
}

/// The id of a question to people.
pub(super) fn of_ask(ask: AskId) -> String {
    format!("{ASK}{ask}")
}

/// The id of a question that is told beside the jobs of a session which has come to this number.
pub(super) fn of_vote(number: u64, time: Timestamp, ask: AskId) -> String {
    format!("{VOTE}{}_{ask}", numbered(number, time, rand::random()))
}

/// The ask of a question that has this id.
pub(super) fn ask_of(id: &str) -> Option<AskId> {
    match id.strip_prefix(VOTE) {
        Some(vote) => vote.split_once('_')?.1.parse().ok(),
        None => id.strip_prefix(ASK)?.parse().ok(),
    }
}

/// The name of a lease of a job that runs in this session of the engine.
pub(super) fn of_lease(home: SessionId, lease: LeaseId) -> String {
    format!("{LEASE}{}_{}", home.as_uuid().simple(), lease.as_uuid().simple())
}

/// The session of the engine and the lease that a name means.
pub(super) fn lease_of(name: &str) -> Option<(SessionId, LeaseId)> {
    let (home, lease) = name.strip_prefix(LEASE)?.split_once('_')?;
    Some((home.parse().ok()?, lease.parse().ok()?))
}

/// The id of a message behind which a session has come to this number, told apart from others of the same moment by `mark`.
pub(super) fn at(number: u64, time: Timestamp, mark: u32) -> String {
    format!("{OTHER}{}", numbered(number, time, mark))
}

/// The id of a checkpoint at which a session has come to this number.
pub(super) fn of_checkpoint(number: u64, time: Timestamp) -> String {
    format!("{CHECKPOINT}{}", numbered(number, time, 0))
}

fn numbered(number: u64, time: Timestamp, mark: u32) -> String {
    ulid_at(time, u128::from(number & ((1 << 48) - 1)) << 32 | u128::from(mark))
}

fn number_of(ulid: &str) -> Option<u64> {
    u64::try_from((ulid_number(ulid)? >> 32) & ((1 << 48) - 1)).ok()
}

/// The place of a message that tells of an event.
pub(super) fn place_of(id: &str) -> Option<Place> {
    place_of_ulid(id.strip_prefix(EVENT)?)
}

/// What a client has that has this message; none where no message has this id.
pub(super) fn reached(id: &str) -> Option<Reached> {
    if let Some(ulid) = id.strip_prefix(OTHER) {
        return number_of(ulid).map(Reached::Seq);
    }
    if let Some((ulid, _)) = id.strip_prefix(VOTE).and_then(|rest| rest.split_once('_')) {
        return ask_of(id).and(number_of(ulid)).map(Reached::Seq);
    }
    let observed = id.strip_prefix(OBSERVED).and_then(|rest| rest.split_once('_'));
    let place = observed.map_or_else(|| place_of(id), |(ulid, _)| place_of_ulid(ulid));
    (place.is_some() || ask_of(id).is_some()).then(|| Reached::Message { id: id.to_owned(), place })
}

/// What a client has that was at this checkpoint; none where no checkpoint has this id.
pub(super) fn reached_checkpoint(id: &str) -> Option<Reached> {
    number_of(id.strip_prefix(CHECKPOINT)?).map(Reached::Seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_behind_a_place_is_behind_all_messages_of_it(position in 0_u64..1 << 60, index: u16) {
            let place = place_of(&behind(Position(position), Timestamp::UNIX_EPOCH)).unwrap();
            let (last, next) =
                (Place { position: Position(position), index }, Place { position: Position(position + 1), index: 0 });
            prop_assert!(place >= last && place < next);
        }

        #[test]
        fn an_id_says_the_number_that_it_was_made_of(number in 0_u64..1 << 48, mark: u32, at_ms in 0_i64..1 << 47) {
            let time = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
            prop_assert_eq!(reached(&at(number, time, mark)), Some(Reached::Seq(number)));
            prop_assert_eq!(reached_checkpoint(&of_checkpoint(number, time)), Some(Reached::Seq(number)));
        }

        #[test]
        fn the_id_of_a_wanted_vote_says_its_ask_and_the_number(number in 0_u64..1 << 48, ask: u128) {
            let ask = AskId::from_uuid(uuid::Uuid::from_u128(ask));
            let id = of_vote(number, Timestamp::UNIX_EPOCH, ask);
            prop_assert_eq!((ask_of(&id), reached(&id)), (Some(ask), Some(Reached::Seq(number))));
        }

        #[test]
        fn the_name_of_a_lease_says_where_it_is(home: u128, lease: u128) {
            let home = SessionId::from_uuid(uuid::Uuid::from_u128(home));
            let lease = LeaseId::from_uuid(uuid::Uuid::from_u128(lease));
            prop_assert_eq!(lease_of(&of_lease(home, lease)), Some((home, lease)));
        }

        #[test]
        fn what_is_no_id_of_ours_says_nothing(text in "(evt_|ask_|vote_|msg_|obs_)?[a-z]{0,30}") {
            prop_assert_eq!(reached(&text), None);
            prop_assert_eq!(reached_checkpoint(&text), None);
        }
    }
}

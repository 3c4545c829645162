//! What holds of whatever bytes there are, for tests and fuzzers.

use super::super::agents::Say;
use super::super::commands::{Cancel, Exec, Load, MergeFrom, Rename};
use super::super::create::{Create, Fork};
use super::super::diagnostics::{Check, Complete};
use super::super::submission::Terms;
use super::{Decode, Encode, message, read};

/// As the body of any command but the answer to an ask, whose JSON has white space wherever one likes.
pub(crate) fn check_bodies(bytes: &[u8]) {
    check::<Exec>(bytes);
    check::<Load>(bytes);
    check::<Cancel>(bytes);
    check::<Terms>(bytes);
    check::<Rename>(bytes);
    check::<Say>(bytes);
    check::<MergeFrom>(bytes);
    check::<Check>(bytes);
    check::<Complete>(bytes);
    check::<Create>(bytes);
    check::<Fork>(bytes);
}

/// What is accepted has one way to be written, so nothing of it was passed over; where it is not, that is said.
fn check<T: Decode + Encode>(bytes: &[u8]) {
    match read::<T>(bytes) {
        Ok(said) => assert_eq!(message(&said), bytes),
        Err(malformed) => assert!(!malformed.to_string().is_empty()),
    }
}

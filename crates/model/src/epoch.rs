//! The epoch of a session's ownership.

use serde::{Deserialize, Serialize};

/// How many times a session's ownership has been taken. Only the owner of the newest epoch may append to the session, and only it is
/// obeyed by the session's runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of whoever creates a session.
    pub const FIRST: Self = Self(1);
}

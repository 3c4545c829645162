//! What a store holds, in numbers.

use serde::{Deserialize, Serialize};

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatistics {
    /// Sessions that were not deleted.
    pub sessions: u64,
    /// How many sessions were deleted.
    pub deleted: u64,
    /// Events of all of them.
    pub events: u64,
    /// How many outcomes of commands are stored.
    pub outcomes: u64,
    /// How many entries are stored, each counted once.
    pub entries: u64,
    /// How often an entry stands in a session of its own. What forks have of others is not counted: it takes no room.
    pub places: u64,
    /// How many objects are stored.
    pub objects: u64,
    /// What they take, in bytes.
    pub object_bytes: u64,
    /// What the database takes, in bytes, the large objects beside it not counted.
    pub database_bytes: u64,
    /// What of that is free for what comes, in bytes.
    pub free_bytes: u64,
    /// What the files of large objects take, in bytes.
    pub file_bytes: u64,
}

/// What a store holds of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatistics {
    /// How many events the session has.
    pub events: u64,
    /// What they say, in bytes.
    pub event_bytes: u64,
    /// Entries of its own.
    pub entries: u64,
    /// What they say, in bytes, whether others say the same or not.
    pub entry_bytes: u64,
    /// How many other sessions have entries of it in their transcripts.
    pub holders: u64,
}

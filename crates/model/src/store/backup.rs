//! What a backup holds.

use serde::{Deserialize, Serialize};

use crate::{ObjectHash, Position, Timestamp};

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// When it was made.
    pub made_at: Timestamp,
    /// The newest event that is in it.
    pub position: Position,
    /// How many sessions there are.
    pub sessions: u64,
    /// The hash of the database's file.
    pub database: ObjectHash,
    /// How many of their objects have files.
    pub files: u64,
    /// What all of it takes, in bytes.
    pub bytes: u64,
}

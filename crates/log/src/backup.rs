//! Backups: all that a store holds at one moment, in a folder that is a store itself. It is whole once its manifest is there.

use mainstay_model::{ObjectHash, Position, Timestamp};
use serde::{Deserialize, Serialize};

/// The name of the file that ends a backup.
pub const MANIFEST: &str = "backup.json";

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

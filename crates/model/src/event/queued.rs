//! Commands that wait for their turn, and when commands must have ended.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::command::SessionCommand;
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, IdempotencyKey, Version};

/// A command that waits for its turn, with all that is needed to carry it out when that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedCommand {
    /// The id of the command.
    pub command: CommandId,
    /// The fingerprint of the command's content.
    pub fingerprint: CommandFingerprint,
    /// The client's name for what it wants done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// What must have succeeded before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<CommandId>,
    /// The version that the session must have when it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
    /// When it must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What the command asks for.
    pub body: SessionCommand,
}

/// When a command must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// The time of the deadline.
    pub at: Timestamp,
    /// How long that is after its acceptance, in milliseconds.
    pub limit_ms: u64,
}

impl Deadline {
    /// So long after now.
    pub fn after(now: Timestamp, limit_ms: u64) -> Self {
        let span = jiff::SignedDuration::from_millis(i64::try_from(limit_ms).unwrap_or(i64::MAX));
        Self { at: now.checked_add(span).unwrap_or(Timestamp::MAX), limit_ms }
    }
}

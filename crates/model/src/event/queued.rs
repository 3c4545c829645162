//! Commands that wait for their turn.

use serde::{Deserialize, Serialize};

use crate::command::SessionCommand;
use crate::event::Deadline;
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

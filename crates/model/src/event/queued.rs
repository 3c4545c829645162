//! Commands that wait for their turn.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::command::SessionCommand;
use crate::error::Error;
use crate::event::{Deadline, ends_by};
use crate::fingerprint::CommandFingerprint;
use crate::grant::Grants;
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
    /// What its job may do at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Box<Grants>>,
    /// What the command asks for.
    pub body: SessionCommand,
}

impl QueuedCommand {
    /// When it must have ended: its deadline, or the end of its grant.
    pub fn ends_by(&self) -> Option<Timestamp> {
        ends_by(self.deadline, self.grants.as_deref())
    }

    /// Why it has no more time; none where it has.
    pub fn overdue(&self, now: Timestamp) -> Option<Error> {
        let deadline = self.deadline.filter(|deadline| deadline.at <= now);
        let expired = self.grants.as_ref().and_then(|grants| grants.expires_at()).filter(|at| *at <= now);
        deadline
            .map(|deadline| Error::TimedOut { limit_ms: deadline.limit_ms })
            .or(expired.map(|at| Error::GrantExpired { at }))
    }
}

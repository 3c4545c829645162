//! What a command is known and answered by.

use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, IdempotencyKey, Principal};

/// The identity of a command: under it the outcome is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The principal that sent the command.
    pub principal: Principal,
    /// The id of the command.
    pub command: CommandId,
    /// The client's name for what it wants done once.
    pub key: Option<IdempotencyKey>,
    /// The fingerprint of the command's content.
    pub fingerprint: CommandFingerprint,
}

//! What a client says of a command beside what it asks: its name and its conditions.

use mainstay_model::{CommandId, IdempotencyKey, Version};
use serde::{Deserialize, Serialize};

/// What a command may say beside what it asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Conditions {
    /// The client's name for what it wants done once, whatever id it sends it under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// Commands that must have succeeded before it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<CommandId>,
    /// The version that the session must have when it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
    /// How long it may take from its acceptance to its end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Under what name and conditions a command is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Sent {
    /// The client's name for the command: sent again under it, it gets the first answer and is not carried out again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    /// The conditions under which the command may run.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl Sent {
    /// Under this name, without conditions.
    pub fn named(command: CommandId) -> Self {
        Self { command: Some(command), conditions: Conditions::default() }
    }
}

//! Commands as clients name them, whatever the protocol.

use mainstay_engine::{Client, CommandStatus};
use mainstay_model::{AskId, CommandId, Error, IdempotencyKey, SessionId, Version};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a command: the client's own, or one of ours where it gave none.
///
/// # Errors
/// [`Error::InvalidArgument`] where the client's looks like one of ours.
pub fn id_of(given: Option<CommandId>) -> Result<CommandId, Error> {
    match given {
        Some(id) => id.check_given().map(|()| id),
        None => Ok(anonymous()),
    }
}

/// The id of a command whose client gives none.
pub fn anonymous() -> CommandId {
    CommandId::anonymous(Uuid::now_v7())
}

/// Where an ask is that was answered under this command id before: it waits no more, and the answer is the stored one.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn answered_before(
    client: &Client,
    reference: &str,
    command: Option<&CommandId>,
) -> Result<Option<(SessionId, AskId)>, Error> {
    let (Some(command), Ok(ask)) = (command, reference.parse()) else { return Ok(None) };
    match client.command(command).await {
        Ok(CommandStatus::Ended(stored)) => Ok(stored.session.map(|session| (session, ask))),
        Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => Ok(Some((session, ask))),
        Err(Error::CommandNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The options of a compiler in what a client says: parted by spaces.
pub fn arguments_in(said: Option<&str>) -> Vec<String> {
    said.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

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

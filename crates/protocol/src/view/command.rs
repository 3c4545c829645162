//! How far a command has come.

use mainstay_model::{CommandId, Outcome, SessionId, Version};
use serde::{Deserialize, Serialize};

/// How far a command has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandView {
    /// The id of the command.
    pub command: CommandId,
    /// Its session, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// `waits`, `runs` or `ended`.
    pub state: CommandState,
    /// The session's version once it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Its one stored answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// Where a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandState {
    /// It waits for its turn.
    Waits,
    /// It is carried out.
    Runs,
    /// It has its outcome.
    Ended,
}

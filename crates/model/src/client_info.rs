//! What is known of a client that is connected.

use serde::{Deserialize, Serialize};

use crate::{Principal, SessionId, Timestamp};

/// A client that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Counted from the daemon's start.
    pub number: u64,
    /// Whom it stands for.
    pub principal: Principal,
    /// What it is: `terminal`, `cli`, `mcp:NAME`.
    pub name: String,
    /// Since when it is there.
    pub since: Timestamp,
    /// The sessions it follows.
    pub follows: Vec<SessionId>,
    /// Whether it follows all.
    #[serde(default)]
    pub follows_all: bool,
}

//! What a rate of commands is counted over.

use serde::{Deserialize, Serialize};

/// Whose commands are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RateScope {
    /// Those of one session.
    Session,
    /// Those of all sessions together.
    Server,
}

impl std::fmt::Display for RateScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Session => "of one session",
            Self::Server => "of all sessions together",
        })
    }
}

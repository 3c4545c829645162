//! Why a job is not trusted with more. Source: ARCP draft 01, 15.6.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What stands against trusting a job with more, whatever the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TrustRefusal {
    /// Who answers may not do everything.
    NotAllRights,
    /// The answer comes through what asked for it.
    OwnRequest,
    /// The level is that of the daemon itself.
    Privileged,
    /// More time was wanted for what was given for a time.
    Extension,
}

impl TrustRefusal {
    /// What the client can do about it.
    pub(crate) const fn next_step(self) -> &'static str {
        match self {
            Self::NotAllRights => "Have a principal with the right to everything answer it.",
            Self::OwnRequest => {
                "Have a principal with the right to everything answer it, through another session."
            }
            Self::Privileged => "Ask for `trusted`, which is the most that a job is ever given.",
            Self::Extension => "Ask for it anew, and have a principal with the right to everything answer.",
        }
    }
}

impl fmt::Display for TrustRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAllRights => "only who may do everything says how far a job is trusted",
            Self::OwnRequest => "the session that asks to trust a job with more does not answer that",
            Self::Privileged => "no job is `privileged`: only the daemon itself is",
            Self::Extension => "what a job is trusted with for a time is not extended",
        })
    }
}

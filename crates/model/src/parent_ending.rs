//! How the end of a job reaches the jobs that it gave tasks to. Source: ARCP draft 01, section 14.

use serde::{Deserialize, Serialize};

/// How a job came to its end that had given tasks to others, which are told to stop for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParentEnding {
    /// Someone asked for it to stop, or its session was stopped.
    Cancelled,
    /// It took longer than it may.
    TimedOut,
    /// Its grant has ended, or it has spent its budget.
    Denied,
    /// Its worker, or the machine, was lost.
    Lost,
}

impl std::fmt::Display for ParentEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "was cancelled",
            Self::TimedOut => "took longer than it may",
            Self::Denied => "was denied to go on",
            Self::Lost => "was lost",
        })
    }
}

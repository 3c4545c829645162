//! Reloads: which submissions run again in the worker that is there, once a script that a session loaded has changed, or why a new
//! worker has to run all of them; and what came of either.
//!
//! [`plan`] knows submissions by what they used, and by what the worker says of their code ([`Description`]).

mod plan;
mod report;

use serde::{Deserialize, Serialize};

pub use self::plan::{Candidate, FullReplayReason, plan};
pub use self::report::{CHANGES_KEPT, Reload, ValueChange};

/// What a worker says of some code, without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The names that it gives a meaning, of whatever kind.
    #[serde(default)]
    pub defines: Vec<String>,
    /// Whether it gives more names a meaning, which are not known.
    #[serde(default)]
    pub defines_others: bool,
    /// The names of the scripts that it loads, with those that these load: all of them are loaded again when it runs again.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Why it must not run twice in one process, for people.
    #[serde(default)]
    pub runs_once: Option<String>,
}

#[cfg(test)]
mod tests;

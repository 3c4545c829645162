//! What a reload reports: the submissions that ran again, and the values that changed.

use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::id::Seq;
use crate::replay::{Divergence, DivergenceKind};

/// A value that is another than before a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueChange {
    /// The event that accepted the submission.
    pub requested: Seq,
    /// Its name; `it` is the last expression's.
    pub name: String,
    /// What it has now, as it is printed, how it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The value before the change, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

impl Display for ValueChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { name, now, was, .. } = self;
        match (now, was) {
            (Some(now), Some(was)) if now != was => write!(f, "{name} is {now} (was {was})"),
            (Some(now), None) => write!(f, "{name} is {now}"),
            (Some(_), Some(_)) | (None, _) => write!(f, "{name} is another"),
        }
    }
}

/// How many changes of values are told.
pub const CHANGES_KEPT: usize = 100;

/// What ran again because something had changed that a session's code uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    /// The submissions that ran again, in the worker that was there; none where a new one ran all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<Vec<Seq>>,
    /// Those that would have, had not one before them failed: the session has of them what it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Seq>,
    /// How many a rebuilding runs.
    pub of: u32,
    /// Why a new worker ran them, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What gave another value; at most [`CHANGES_KEPT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ValueChange>,
}

impl Reload {
    /// What came of it, in a line.
    pub fn line(&self, diverged: &[Divergence]) -> String {
        let Self { in_place, left, of, because, changes } = self;
        let submissions = |count: u32| if count == 1 { "submission" } else { "submissions" };
        let ran = match (in_place, because) {
            (Some(ran), _) => format!("{} of {of} {} ran again", ran.len(), submissions(*of)),
            (None, None) => format!("{of} {} ran again in a new worker", submissions(*of)),
            (None, Some(because)) => {
                format!("{of} {} ran again in a new worker ({because})", submissions(*of))
            }
        };
        let is_told = |divergence: &&Divergence| !matches!(divergence.kind, DivergenceKind::Values { .. });
        let mut told: Vec<String> = diverged.iter().filter(is_told).map(ToString::to_string).collect();
        match left.as_slice() {
            [] => {}
            [one] => told.push(format!("#{one} did not run")),
            several => {
                let several: Vec<_> = several.iter().map(|seq| format!("#{seq}")).collect();
                told.push(format!("{} did not run", several.join(", ")));
            }
        }
        told.extend(changes.iter().map(ToString::to_string));
        match told.is_empty() {
            true => format!("{ran}: nothing gave another value"),
            false => format!("{ran}: {}", told.join(", ")),
        }
    }
}

//! Validity: which of the things that were said in a session may be no longer true, since what their code ran against has changed.
//! Source: seed 000, "Epistemic Validity".
//!
//! Events are facts and stay as they are; what is derived here is how far they still hold. It never looks at a file: what is there
//! now comes in as an argument.

mod records;

use serde::{Deserialize, Serialize};

use crate::fingerprint::{Environment, Reference};

pub use self::records::Records;

/// How far what an eval gave still holds. In the order of what counts more where several things were touched.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Validity {
    /// Nothing that it touched has changed.
    Valid,
    /// It cannot be told.
    Unknown,
    /// Something that it touched has changed: it may give something else now.
    Stale,
    /// Something that it touched is gone.
    Invalid,
}

impl Validity {
    /// Returns the name of the validity.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unknown => "unknown",
            Self::Stale => "stale",
            Self::Invalid => "invalid",
        }
    }

    /// What is said beside an output that may hold no longer; of what cannot be told nothing is.
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::Valid | Self::Unknown => None,
            Self::Stale => Some("stale: something it used has changed since"),
            Self::Invalid => Some("invalid: something it used is gone"),
        }
    }

    /// Whether it may be shown without a mark.
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// How far what code gave still holds, which ran against `recorded` and touched so much of it, where `present` is what it would run
/// against now. Nothing is known of what has no record, and of code of which it cannot be told what it touched only that nothing has changed.
pub fn assess(present: &Environment, recorded: Option<&Environment>, touched: Option<&[String]>) -> Validity {
    let Some(recorded) = recorded else { return Validity::Unknown };
    if recorded == present {
        return Validity::Valid;
    }
    // Everything touches the runtime, and little depends on which it is.
    let runtime = if recorded.runtime == present.runtime { Validity::Valid } else { Validity::Unknown };
    let of = |name: &String| compare(present.references.get(name), recorded.references.get(name));
    match touched {
        Some(touched) => touched.iter().map(of).fold(runtime, Validity::max),
        None if recorded.references.keys().all(|name| of(name).is_valid()) => runtime,
        None => Validity::Unknown,
    }
}

/// How far something holds that touched one reference.
fn compare(present: Option<&Reference>, recorded: Option<&Reference>) -> Validity {
    let hash = |reference: Option<&Reference>| reference.and_then(|reference| reference.hash.clone());
    match (hash(present), hash(recorded)) {
        (None, None) => Validity::Unknown,
        (None, Some(_)) => Validity::Invalid,
        (Some(present), Some(recorded)) if present == recorded => Validity::Valid,
        (Some(_), Some(_) | None) => Validity::Stale,
    }
}

/// How many evals of a session do not surely hold any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidityCounts {
    /// Something that they touched has changed.
    pub stale: u64,
    /// Something that they touched is gone.
    pub invalid: u64,
    /// It cannot be told.
    pub unknown: u64,
}

impl ValidityCounts {
    /// Whether all of them hold.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, validity: Validity) {
        match validity {
            Validity::Valid => {}
            Validity::Unknown => self.unknown += 1,
            Validity::Stale => self.stale += 1,
            Validity::Invalid => self.invalid += 1,
        }
    }
}

#[cfg(test)]
mod tests;

//! Divergences: what a submission that runs again gives that differs from what it gave before.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::id::{Seq, SessionId};

/// A submission whose part in a rebuilt session is not what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", from = "WrittenDivergence")]
#[schemars(!from)]
pub struct Divergence {
    /// The event that accepted it.
    pub requested: Seq,
    /// The session in which it ran at first, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What became of it.
    #[serde(flatten)]
    pub kind: DivergenceKind,
}

/// A divergence as it stands in a log. A bare request is one that ended otherwise: nothing else was compared once.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenDivergence {
    Request(Seq),
    Whole {
        requested: Seq,
        #[serde(default)]
        session: Option<SessionId>,
        #[serde(flatten)]
        kind: DivergenceKind,
    },
}

impl From<WrittenDivergence> for Divergence {
    fn from(written: WrittenDivergence) -> Self {
        match written {
            WrittenDivergence::Request(requested) => {
                Self { requested, session: None, kind: DivergenceKind::Ending { error: None } }
            }
            WrittenDivergence::Whole { requested, session, kind } => Self { requested, session, kind },
        }
    }
}

impl Divergence {
    /// In `session`, of a submission that ran at first in `ran_in`.
    pub fn of(session: SessionId, ran_in: SessionId, requested: Seq, kind: DivergenceKind) -> Self {
        Self { requested, session: (ran_in != session).then_some(ran_in), kind }
    }

    /// Whether people are told of it. That an expression alone gave another value is nothing that later code can see, but for the last one.
    pub fn is_told(&self) -> bool {
        !matches!(&self.kind, DivergenceKind::Values { names, .. } if names.iter().all(|name| name == LAST_VALUE))
    }
}

/// What became of a submission that diverged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "divergence", rename_all = "camelCase")]
pub enum DivergenceKind {
    /// It ended otherwise: it failed where it had run to its end, or the reverse.
    Ending {
        /// What it failed with, how that begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// It gave other values, or values of other types.
    Values {
        /// Their names; `it` is the last expression's. At most [`NAMES_KEPT`].
        names: Vec<String>,
        /// What those have now that still have a value, as it is printed, how it begins.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        now: BTreeMap<String, String>,
    },
    /// It was not run: it had ended a worker.
    LeftOut,
    /// It was not run: its code was withheld, and so is not known.
    Withheld,
    /// It was not run: it had asked for a secret, which is not kept.
    Secret,
}

/// The name of the last expression's value.
pub(crate) const LAST_VALUE: &str = "it";

/// How many names a divergence has at most.
pub const NAMES_KEPT: usize = 20;

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requested = match &self.session {
            Some(session) => format!("{}#{}", session.short(), self.requested),
            None => format!("#{}", self.requested),
        };
        match &self.kind {
            DivergenceKind::Ending { error: None } => write!(f, "{requested} ended otherwise"),
            DivergenceKind::Ending { error: Some(error) } => write!(f, "{requested} failed: {error}"),
            DivergenceKind::Values { names, now } => {
                for (index, name) in names.iter().enumerate() {
                    let before =
                        if index == 0 { format!("{requested} gave another ") } else { ", ".to_owned() };
                    write!(f, "{before}`{name}`")?;
                    now.get(name).map_or(Ok(()), |value| write!(f, " (now {value})"))?;
                }
                Ok(())
            }
            DivergenceKind::Withheld => write!(f, "{requested} was left out: its code was withheld"),
            DivergenceKind::Secret => {
                write!(f, "{requested} was left out: it asks for a secret, which is not kept; run it again")
            }
            DivergenceKind::LeftOut => write!(f, "{requested} was left out: it had ended a worker"),
        }
    }
}

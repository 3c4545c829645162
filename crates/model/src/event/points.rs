//! Where sessions were forked off others, and where entries of others were put into them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::label::Labels;
use crate::transcript::{Segment, Transcript};

/// Where a session was forked off another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkPoint {
    /// The session it was forked off.
    pub from: SessionId,
    /// How many entries of that session's transcript it has.
    pub entries: u64,
    /// How many were asked for, where that would have parted an answer from what it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// The inherited entries, as segments of sessions.
    pub segments: Vec<Segment>,
    /// Those of them whose code runs again: not those that a reset had dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replay: Vec<Segment>,
    /// What they were called.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// Where entries of another session were put into a transcript. Source: seed 004, "MergeRecord".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergePoint {
    /// The session they are from.
    pub from: SessionId,
    /// Which entries of its transcript were asked for, by their indices.
    pub entries: Vec<Range<u64>>,
    /// The entries: those, and what belongs to them.
    pub brought: Vec<Segment>,
    /// How many entries they stand behind.
    pub at: u64,
    /// Behind how many they were to stand, which may have parted what belongs together; at the end where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u64>,
    /// The transcript since then.
    pub transcript: Transcript,
    /// What runs to rebuild the session as it was then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replay: Vec<Segment>,
}

impl MergePoint {
    /// What was asked for, without what that comes to.
    pub fn asked(&self) -> Self {
        Self {
            from: self.from,
            entries: self.entries.clone(),
            brought: Vec::new(),
            at: 0,
            wanted: self.wanted,
            transcript: Transcript::default(),
            replay: Vec::new(),
        }
    }
}

//! Segments: runs of entries of one session.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// Entries of one session, in a row: the numbers `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Segment {
    /// The session they came to be in.
    pub session: SessionId,
    /// The index of the first entry.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
    /// Whether its entries count whatever their session dropped: those that a merge brought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl Segment {
    /// Entries that are in a transcript as they came to be.
    pub const fn new(session: SessionId, from: u64, to: u64) -> Self {
        Self { session, from, to, kept: false }
    }

    /// How many entries it has.
    pub const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it has the entry with this number of this session's own.
    pub fn has(&self, session: SessionId, number: u64) -> bool {
        self.session == session && (self.from..self.to).contains(&number)
    }

    /// Whether another begins where it ends.
    fn goes_on_with(&self, other: &Self) -> bool {
        self.session == other.session && self.to == other.from && self.kept == other.kept
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many entries segments have together.
pub fn total(segments: &[Segment]) -> u64 {
    segments.iter().fold(0, |all, segment| all.saturating_add(segment.len()))
}

/// The same, whatever their sessions dropped.
pub fn kept(segments: &[Segment]) -> impl Iterator<Item = Segment> {
    segments.iter().map(|segment| Segment { kept: true, ..*segment })
}

/// The entries with these indices.
pub fn slice(segments: &[Segment], indices: Range<u64>) -> Vec<Segment> {
    let mut begins: u64 = 0;
    let mut found = Vec::new();
    for segment in segments {
        let ends = begins.saturating_add(segment.len());
        let (from, to) = (indices.start.max(begins), indices.end.min(ends));
        if from < to {
            let at = |index: u64| segment.from + (index - begins);
            found.push(Segment { from: at(from), to: at(to), ..*segment });
        }
        begins = ends;
    }
    found
}

/// Returns the same entries in as few segments as possible.
pub fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.goes_on_with(&segment) => last.to = segment.to,
            Some(_) | None => joined.push(segment),
        }
    }
    joined
}

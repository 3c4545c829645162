//! Transcripts: ordered entries, as segments of sessions. Source: seed 004; protocols/transcripts.md.
//!
//! A session's own entries are numbered as they come to be, and never change. Its transcript is a list of segments of such
//! numbers, its own among them. So a fork is a list of segments, a merge puts some into the list, and neither copies an
//! entry or looks at one.

mod compacted;
mod segment;
mod units;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;

pub use self::compacted::{CompactedEntries, context};
pub use self::segment::{Segment, joined, kept, slice, total};
pub use self::units::{Bond, leaves_open, whole_beginning, whole_units};

/// What a session's transcript consists of: `before`, then the session's own entries from `own_from` on, however many they
/// become.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<Segment>,
    #[serde(default, skip_serializing_if = "is_zero")]
    own_from: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Transcript {
    /// That of a session which begins with these.
    pub fn beginning_with(segments: Vec<Segment>) -> Self {
        Self { before: joined(segments), own_from: 0 }
    }

    /// What comes before the session's own entries.
    pub fn inherited(&self) -> &[Segment] {
        &self.before
    }

    /// The session's own entries at its end, where it has so many entries in all.
    pub fn own(&self, session: SessionId, entries: u64) -> Segment {
        let own = entries.saturating_sub(total(&self.before));
        Segment::new(session, self.own_from, self.own_from.saturating_add(own))
    }

    /// Whether it is nothing but the session's own entries.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// All of it, where `session` has so many entries of its own.
    pub fn segments(&self, session: SessionId, own: u64) -> Vec<Segment> {
        let last = Segment::new(session, self.own_from, own);
        let mut all = self.before.clone();
        all.push(last);
        joined(all)
    }

    /// How many entries it has.
    pub fn len(&self, own: u64) -> u64 {
        total(&self.before).saturating_add(own.saturating_sub(self.own_from))
    }

    /// The first index at which an entry of `session` stands in the transcript of `owner`; none where it does not stand there.
    pub fn index_of(&self, owner: SessionId, session: SessionId, number: u64) -> Option<u64> {
        let mut begins: u64 = 0;
        for segment in &self.before {
            if segment.has(session, number) {
                return Some(begins.saturating_add(number - segment.from));
            }
            begins = begins.saturating_add(segment.len());
        }
        let nth_of_last = number.checked_sub(self.own_from).filter(|_| session == owner)?;
        Some(begins.saturating_add(nth_of_last))
    }

    /// Puts entries of others before the one with the index `at`, or at the end; what `session` says next comes at the end.
    pub fn insert(&mut self, session: SessionId, own: u64, at: u64, segments: &[Segment]) {
        let all = self.segments(session, own);
        let mut after = slice(&all, at..u64::MAX);
        let mut before = slice(&all, 0..at);
        before.extend(kept(segments));
        before.append(&mut after);
        (self.before, self.own_from) = (joined(before), own);
    }
}

#[cfg(test)]
mod tests;

//! What an agent is shown of a transcript: the newest summary, and what it does not stand for.

use std::collections::HashMap;

use super::segment::Segment;
use crate::entry::{Role, TranscriptEntry};
use crate::id::SessionId;

/// What an agent is shown of a transcript: the newest summary, then what it does not stand for. Older summaries are among what
/// the newest stands for, wherever they are.
pub fn context(entries: &[TranscriptEntry]) -> Vec<&TranscriptEntry> {
    let is_summary = |placed: &TranscriptEntry| placed.entry.role == Role::Summary;
    let Some(newest) = entries.iter().rposition(is_summary) else { return entries.iter().collect() };
    let (before, behind) = entries.split_at(newest);
    let covers = entries[newest].entry.covers();
    let mut covered = CompactedEntries::of(&covers);
    let mut is_shown = |placed: &&TranscriptEntry| !covered.take(placed.session, placed.number);
    let before: Vec<&TranscriptEntry> = before.iter().filter(&mut is_shown).collect();
    let rest = before.into_iter().chain(behind).filter(|placed| !is_summary(placed));
    std::iter::once(&entries[newest]).chain(rest).collect()
}

/// The entries that a summary stands for, each as often as it stood in the transcript. One that is merged back later stands there once more,
/// and the summary knows nothing of it.
#[derive(Debug)]
pub struct CompactedEntries<'a> {
    segments: &'a [Segment],
    taken: HashMap<(SessionId, u64), usize>,
}

impl<'a> CompactedEntries<'a> {
    /// Starts with no occurrence taken. The segments are those that the summary stands for.
    pub fn of(segments: &'a [Segment]) -> Self {
        Self { segments, taken: HashMap::new() }
    }

    /// Whether the summary stands for the next occurrence of an entry. Asked in the order of the transcript, up to the summary.
    pub fn take(&mut self, session: SessionId, number: u64) -> bool {
        let times = self.segments.iter().filter(|segment| segment.has(session, number)).count();
        if times == 0 {
            return false;
        }
        let taken = self.taken.entry((session, number)).or_default();
        let is_covered = *taken < times;
        *taken += 1;
        is_covered
    }
}

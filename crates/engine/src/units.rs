//! The units of a transcript that a cut must not part: a call and its result, an input and its output.

use mainstay_log::Log;
use mainstay_model::transcript::{slice, whole_beginning};
use mainstay_model::{Bond, Error, Segment, TranscriptEntry};

use crate::entries::entries_of;

/// How many entries on each side of a cut are looked at first.
pub(crate) const UNIT: u64 = 64;

/// What binds entries to each other.
pub(crate) fn bonds(entries: &[TranscriptEntry]) -> Vec<Bond<'_>> {
    entries.iter().map(|placed| placed.entry.bond()).collect()
}

/// How many of the entries before the one with the index `wanted` leave no call without its result.
pub(crate) async fn whole_beginning_of(
    log: &dyn Log,
    segments: &[Segment],
    wanted: u64,
) -> Result<u64, Error> {
    let mut back = UNIT;
    loop {
        let first = wanted.saturating_sub(back);
        let around = entries_of(log, &slice(segments, first..wanted.saturating_add(UNIT))).await?;
        let whole = whole_beginning(&bonds(&around), usize::try_from(wanted - first).unwrap_or(usize::MAX));
        // Where nothing is whole, the unit began before what was read.
        if whole > 0 || first == 0 {
            return Ok(first + whole as u64);
        }
        back = back.saturating_mul(2);
    }
}

//! Globs over segments: `*` stands for any characters within one segment, `**` for any number of segments.
//!
//! One algorithm matches a text and compares two globs. It goes back to the last star alone, so its cost is
//! at most the product of the two lengths, whatever the glob.

use super::canonical::Reason;

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentGlob {
    /// Any number of segments, also none.
    AnySegments,
    /// One segment, in which each `*` stands for any characters.
    One(String),
}

impl SegmentGlob {
    /// Reads one segment of a pattern.
    pub(super) fn read(segment: &str) -> Result<Self, Reason> {
        match segment {
            "**" => Ok(Self::AnySegments),
            _ if segment.contains("**") => Err("`**` stands for whole segments; within one, write `*`"),
            _ => Ok(Self::One(segment.to_owned())),
        }
    }
}

/// Whether the segments are what the globs stand for.
pub(super) fn matches(globs: &[SegmentGlob], segments: &[String]) -> bool {
    wildcard(globs, segments, is_any, |glob, segment| match glob {
        SegmentGlob::AnySegments => false,
        SegmentGlob::One(glob) => segment_matches(glob, segment),
    })
}

/// Whether all that `narrow` stands for is shown to be what `wide` stands for.
///
/// The stars of `narrow` are taken as symbols that only a star of `wide` stands for. So it is true only where
/// it holds, whatever is put in place of them. It is false for some pairs for which it holds.
pub(super) fn covers(wide: &[SegmentGlob], narrow: &[SegmentGlob]) -> bool {
    wildcard(wide, narrow, is_any, |wide, narrow| match (wide, narrow) {
        // A `*` in `narrow` is no character of `wide`, so only a star of `wide` takes it.
        (SegmentGlob::One(wide), SegmentGlob::One(narrow)) => segment_matches(wide, narrow),
        _ => false,
    })
}

/// The globs in the order in which most pairs can be compared: `*/**` stands for what `**/*` does, and `**`
/// for what `**/**` does.
pub(super) fn in_order(globs: Vec<SegmentGlob>) -> Vec<SegmentGlob> {
    let mut ordered: Vec<SegmentGlob> = Vec::with_capacity(globs.len());
    for glob in globs {
        match (&glob, ordered.last()) {
            (SegmentGlob::AnySegments, Some(SegmentGlob::AnySegments)) => {}
            (SegmentGlob::One(star), Some(SegmentGlob::AnySegments)) if star == "*" => {
                ordered.insert(ordered.len() - 1, glob);
            }
            _ => ordered.push(glob),
        }
    }
    ordered
}

fn is_any(glob: &SegmentGlob) -> bool {
    *glob == SegmentGlob::AnySegments
}

/// Whether a segment is what its glob stands for. Bytes are compared: text in UTF-8 is equal where its bytes
/// are.
fn segment_matches(glob: &str, segment: &str) -> bool {
    wildcard(glob.as_bytes(), segment.as_bytes(), |byte| *byte == b'*', |glob, byte| glob == byte)
}

/// Whether the items are what the pattern stands for, in which a star stands for any run of items and all
/// else for one item each.
///
/// Each run of items between two stars is taken where it first fits: that leaves the most to what follows.
fn wildcard<P, T>(
    pattern: &[P],
    items: &[T],
    is_star: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut next, mut at) = (0, 0);
    // What follows the last star, and the item at which that was tried last.
    let mut last_star = None;
    while let Some(item) = items.get(at) {
        match pattern.get(next) {
            Some(star) if is_star(star) => {
                next += 1;
                last_star = Some((next, at));
            }
            Some(one) if fits(one, item) => (next, at) = (next + 1, at + 1),
            _ => {
                let Some((after_star, tried)) = last_star else { return false };
                (next, at) = (after_star, tried + 1);
                last_star = Some((next, at));
            }
        }
    }
    pattern[next..].iter().all(is_star)
}

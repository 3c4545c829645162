//! Paths of files: the one form of each, and patterns of them. Links are not followed here, since nothing is
//! read.

use super::canonical::{Canonical, Reason};
use super::glob::SegmentGlob;
use super::percent::hides_traversal;

/// The path without `.`, `..`, double slashes and a slash at its end.
///
/// Escapes such as `%20` are ordinary characters of a path, and are kept. A segment that would be `..` if
/// somebody decoded it is refused, and so is a backslash, which is a separator for some programs and a
/// character for others.
pub(super) fn canonical(path: &str) -> Result<Canonical, Reason> {
    if !path.starts_with('/') {
        return Err("a path begins with `/`");
    }
    refuse_ambiguous(path)?;
    let mut segments: Vec<String> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ if hides_traversal(segment) => return Err("a segment hides `.`, `..` or a NUL"),
            _ => segments.push(segment.to_owned()),
        }
    }
    Ok(Canonical { text: format!("/{}", segments.join("/")), segments })
}

/// A pattern of paths begins with `/` or `**`.
pub(super) fn pattern(text: &str) -> Result<Vec<SegmentGlob>, Reason> {
    if !text.starts_with('/') && !text.starts_with("**/") {
        return Err("a pattern of paths begins with `/` or `**/`");
    }
    refuse_ambiguous(text)?;
    text.split('/').filter(|segment| !segment.is_empty()).map(segment_pattern).collect()
}

/// One segment of a pattern, in which nothing is resolved.
pub(super) fn segment_pattern(segment: &str) -> Result<SegmentGlob, Reason> {
    if hides_traversal(segment) {
        return Err("a pattern has no segment `.` or `..`, encoded or not");
    }
    SegmentGlob::read(segment)
}

fn refuse_ambiguous(path: &str) -> Result<(), Reason> {
    if path.contains('\0') {
        return Err("a path has no NUL");
    }
    if path.contains('\\') { Err("a path has no backslash") } else { Ok(()) }
}

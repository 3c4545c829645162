//! Names of tools, agents, models and of what deployments name themselves: opaque text that is split into
//! segments.

use super::canonical::{Canonical, Reason};
use super::glob::SegmentGlob;
use super::path::segment_pattern;
use super::percent::hides_traversal;

/// How a name is split.
pub(super) type Split = fn(&str) -> Vec<String>;

/// The name as it is. Names are compared as they are written: what only looks like another name is another
/// name.
///
/// Names are not resolved, so `.` and `..` have no meaning in them. They are refused for the sake of a
/// program that puts a name into a path.
pub(super) fn canonical(name: &str, split: Split) -> Result<Canonical, Reason> {
    validate(name)?;
    if name.split('/').any(hides_traversal) {
        return Err("a segment of a name is not `.` or `..`, encoded or not");
    }
    Ok(Canonical { text: name.to_owned(), segments: split(name) })
}

/// A pattern of names, split as they are.
pub(super) fn pattern(text: &str, split: Split) -> Result<Vec<SegmentGlob>, Reason> {
    validate(text)?;
    split(text).iter().map(|segment| segment_pattern(segment)).collect()
}

/// A pattern of agents. One without a version covers every version.
pub(super) fn agent_pattern(text: &str) -> Result<Vec<SegmentGlob>, Reason> {
    let mut globs = pattern(text, agent_segments)?;
    if globs.len() == 1 {
        globs.push(SegmentGlob::AnySegments);
    }
    Ok(globs)
}

/// What stands between slashes.
pub(super) fn segments(name: &str) -> Vec<String> {
    name.split('/').map(str::to_owned).collect()
}

/// Tools of servers have slashes, as `mcp:github/create_issue`, and names on either side in which a dot means
/// nothing. Others are named with dots, as `humanq.ask`. The first segment says which, so that neither is
/// taken for the other.
pub(super) fn tool_segments(name: &str) -> Vec<String> {
    let (manner, separator) = if name.contains('/') { ("slashes", '/') } else { ("dots", '.') };
    let names = name.split(separator).map(str::to_owned);
    std::iter::once(manner.to_owned()).chain(names).collect()
}

/// The name of an agent, and its version where it has one.
pub(super) fn agent_segments(name: &str) -> Vec<String> {
    name.splitn(2, '@').map(str::to_owned).collect()
}

fn validate(name: &str) -> Result<(), Reason> {
    if name.is_empty() {
        return Err("a name is not empty");
    }
    if name.contains(char::is_control) { Err("a name has no control characters") } else { Ok(()) }
}

//! Entries that belong together: a message that calls tools, and their results.

use std::ops::Range;

use crate::entry::Role;

/// What of an entry binds it to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond<'a> {
    /// What part it plays.
    pub role: Role,
    /// The tool's call that it is, or answers.
    pub call: Option<&'a str>,
}

/// The smallest range around `wanted` that parts nothing that belongs together, in a transcript of these entries.
pub fn whole_units(entries: &[Bond<'_>], wanted: Range<u64>) -> Range<u64> {
    let is_cut = |index: u64| usize::try_from(index).is_ok_and(|index| is_cut(entries, index));
    let Range { mut start, mut end } = wanted;
    while !is_cut(start) {
        start -= 1;
    }
    while start < end && !is_cut(end) {
        end += 1;
    }
    start..end
}

/// Whether a call of the first so many of these entries has no result among them: it may have one among those behind.
pub fn leaves_open(entries: &[Bond<'_>], count: u64) -> bool {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    !open_calls(entries.get(..count).unwrap_or(entries)).is_empty()
}

/// How many of these entries, at most `wanted` from the first, can be taken away so that nothing which stays, or is yet to
/// come, belongs to them: a call that has no result yet stays.
pub fn whole_beginning(entries: &[Bond<'_>], wanted: usize) -> usize {
    let is_asked =
        |entry: &Bond<'_>| matches!(entry.role, Role::User | Role::Input | Role::Output | Role::Summary);
    // Calls from before someone else spoke were given up.
    let turn = entries.iter().rposition(is_asked).map_or(0, |asked| asked + 1);
    let open = open_calls(&entries[turn..]);
    let is_pending = |entry: &Bond<'_>| {
        entry.role == Role::ToolCall && entry.call.is_some_and(|call| open.contains(&call))
    };
    let pending = entries[turn..].iter().position(is_pending).map_or(entries.len(), |at| turn + at);
    (0..=wanted.min(pending)).rev().find(|count| is_cut(entries, *count)).unwrap_or(0)
}

/// Whether a transcript may be cut before the entry with this index. An output stays with its input, a tool's result with its
/// call, calls that were made together stay together, and thoughts with what was said after them.
fn is_cut(entries: &[Bond<'_>], index: usize) -> bool {
    let Some((before, after)) = entries.split_at_checked(index) else { return true };
    let (Some(last), Some(next)) = (before.last(), after.first()) else { return true };
    let is_answer = matches!(next.role, Role::Output | Role::ToolResult);
    let goes_on = last.role.is_a_models() && next.role.is_a_models();
    if is_answer || goes_on && last.role == Role::Thinking {
        return false;
    }
    let open = open_calls(before);
    let is_answered = |call: &&str| {
        let used_next = after.iter().find(|entry| entry.call == Some(call));
        used_next.is_some_and(|entry| entry.role == Role::ToolResult)
    };
    open.is_empty() || !goes_on && !open.iter().any(is_answered)
}

/// The calls of these that have no result among them.
pub(super) fn open_calls<'a>(entries: &[Bond<'a>]) -> Vec<&'a str> {
    let mut open = Vec::new();
    for entry in entries {
        let Some(call) = entry.call else { continue };
        // A call under an id that was used before is another one.
        open.retain(|made| *made != call);
        if entry.role == Role::ToolCall {
            open.push(call);
        }
    }
    open
}

//! What a tool changed in a file, as a difference by lines.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::Tone;

/// Texts that are longer are shown as gone and new, in bytes: the time to compare grows with them.
const COMPARED_BYTES: usize = 64 * 1024;
/// How long two texts are compared: lines that are found to be others by then are the difference.
const COMPARED_FOR: Duration = Duration::from_millis(100);

/// A line below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// None of what is there beside what matters.
    pub tone: Option<Tone>,
    /// The text, without its line break.
    pub text: String,
}

impl Line {
    pub(super) fn toned(tone: Tone, text: &str) -> Self {
        Self { tone: Some(tone), text: text.to_owned() }
    }

    /// A line of a difference.
    fn of_change(text: &str) -> Self {
        let tone = match text.chars().next() {
            Some('+') => Some(Tone::Good),
            Some('-') => Some(Tone::Error),
            _ => None,
        };
        Self { tone, text: text.to_owned() }
    }
}

/// What was changed in a file.
pub(super) struct Change {
    pub(super) lines: Vec<Line>,
    added: usize,
    removed: usize,
}

impl Change {
    /// The file that a tool changes, if it is one that does.
    pub(super) fn path<'a>(tool: &str, arguments: &'a Value) -> Option<&'a str> {
        let is_change = matches!(tool, "edit" | "write" | "Edit" | "Write" | "MultiEdit");
        let path = || ["path", "file_path"].iter().find_map(|name| arguments.get(name)?.as_str());
        is_change.then(path).flatten()
    }

    /// What a call changed: as the tool says it of its result, or else by what it was told to put in the place of what.
    pub(super) fn of(tool: &str, arguments: &Value, details: Option<&Value>) -> Option<Self> {
        if let Some(diff) = details.and_then(|details| details.get("diff")?.as_str()) {
            return Some(Self::from_lines(diff.lines().map(Line::of_change).collect()));
        }
        Self::path(tool, arguments)?;
        let text = |edit: &Value, names: [&str; 2]| {
            names.iter().find_map(|name| edit.get(name)?.as_str().map(str::to_owned))
        };
        if let Some(content) = arguments.get("content").and_then(Value::as_str) {
            return Some(Self::from_lines(compared("", content)));
        }
        let listed = arguments.get("edits").and_then(Value::as_array);
        let edits = listed.map_or(std::slice::from_ref(arguments), Vec::as_slice);
        let mut lines = Vec::new();
        for edit in edits {
            let old = text(edit, ["oldText", "old_string"])?;
            let new = text(edit, ["newText", "new_string"])?;
            if !lines.is_empty() {
                lines.push(Line::toned(Tone::Faint, "..."));
            }
            lines.extend(compared(&old, &new));
        }
        Some(Self::from_lines(lines))
    }

    fn from_lines(lines: Vec<Line>) -> Self {
        let count = |tone| lines.iter().filter(|line| line.tone == Some(tone)).count();
        Self { added: count(Tone::Good), removed: count(Tone::Error), lines }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{} -{}", self.added, self.removed)
    }
}

fn compared(old: &str, new: &str) -> Vec<Line> {
    let marked =
        |mark: char, text: &str| Line::of_change(&format!("{mark} {}", text.trim_end_matches(['\n', '\r'])));
    if old.len() + new.len() > COMPARED_BYTES {
        let gone = old.lines().map(|line| marked('-', line));
        return gone.chain(new.lines().map(|line| marked('+', line))).collect();
    }
    let compared = TextDiff::configure().timeout(COMPARED_FOR).diff_lines(old, new);
    let line = |change: similar::Change<&str>| {
        let mark = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        marked(mark, change.value())
    };
    compared.iter_all_changes().map(line).collect()
}

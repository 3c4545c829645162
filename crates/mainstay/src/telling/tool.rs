//! Tools' calls on one line each: what was called, with what, and in short what came of it.

use std::fmt;

use mainstay_model::Part;
use mainstay_model::message::{CALL, IS_ERROR, TOOL};
use serde_json::Value;

use super::Told;
use crate::terminal::Tone;

/// Characters shown of arguments, and of a line of a result.
const SHOWN: usize = 80;

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    /// What ties it to its result.
    pub(super) id: String,
    tool: String,
    arguments: String,
}

impl Call {
    pub(super) fn new(id: &str, tool: &str, arguments: &Value) -> Self {
        Self { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments_shown(arguments) }
    }

    /// The call that a part of a message is, or that it is the result of, as far as it says.
    pub(super) fn of(part: &Part) -> Self {
        let named = |name: &str| part.metadata.get(name).and_then(Value::as_str);
        let arguments = serde_json::from_str(&part.text).unwrap_or(Value::Null);
        Self::new(named(CALL).unwrap_or_default(), named(TOOL).unwrap_or("tool"), &arguments)
    }

    /// With what came of it.
    pub(super) fn answered(&self, result: &Part) -> Told {
        let is_error = result.metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default();
        let (mark, tone) = if is_error { ("✗", Tone::Error) } else { ("✓", Tone::Faint) };
        let text = beginning(&text_of(&Value::String(result.text.clone())));
        let separator = if text.is_empty() { "" } else { ": " };
        Told::Line(tone, format!("{mark} {self}{separator}{text}"))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.arguments.is_empty() { "" } else { " " };
        write!(f, "{}{separator}{}", self.tool, self.arguments)
    }
}

/// The call that a result belongs to.
pub(super) fn id_of(result: &Part) -> Option<&str> {
    result.metadata.get(CALL).and_then(Value::as_str)
}

/// The last line of what a tool has given so far, in whatever words it says that.
pub(super) fn last_line(output: &Value) -> Option<String> {
    let text = text_of(output);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(shortened(line.trim_end()))
}

/// One argument speaks for itself; of several their names are wanted too.
fn arguments_shown(arguments: &Value) -> String {
    let text = match arguments {
        Value::Null => String::new(),
        Value::Object(fields) => match fields.values().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            [Value::String(only)] => only.clone(),
            [..] => arguments.to_string(),
        },
        other => other.to_string(),
    };
    let mut lines = text.lines();
    let first = shortened(lines.next().unwrap_or_default());
    if lines.next().is_some() && !first.ends_with('…') { format!("{first} …") } else { first }
}

/// What is text in an answer: itself, or its text blocks.
fn text_of(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let inner = ["text", "output", "content"].iter().find_map(|name| fields.get(*name));
            inner.map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The first line of a text, and how many there are.
fn beginning(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [] => String::new(),
        [only] => shortened(only.trim()),
        [first, ..] => format!("{} … ({} lines)", shortened(first.trim()), lines.len()),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

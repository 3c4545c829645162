//! Tools' calls: what was called, with what, and what came of it, in a line and in lines below that.

use std::fmt;

use mainstay_model::Part;
use mainstay_model::agent::ToolCall;
use mainstay_model::live::OpenCall;
use mainstay_model::message::{IS_ERROR, TOOL, output_text};
use mainstay_model::screen::settled;
use serde_json::Value;

use super::change::{Change, Line};
use crate::Tone;

/// Characters shown of arguments, and of a line of a result.
const SHOWN: usize = 80;

/// A call of a tool.
#[derive(Debug)]
pub struct Call {
    tool: String,
    arguments: Value,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it went well.
    pub tone: Tone,
    /// What was called, in a line.
    pub call: String,
    /// The same with all its arguments.
    pub whole_call: String,
    /// What came of it, in a line; nothing where it gave nothing.
    pub short: String,
    /// The same whole, where it is longer.
    pub below: Vec<Line>,
    /// Which of those are worth the most.
    pub worth: Excerpt,
}

/// Which lines are shown of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// The first lines of the output.
    Beginning,
    /// The last: what a command says in the end is what came of it.
    End,
    /// The first, and more of them: what was changed.
    Change,
}

impl Outcome {
    /// All in one line.
    pub fn line(&self) -> String {
        let Self { call, short, .. } = self;
        if short.is_empty() { call.clone() } else { format!("{call}: {short}") }
    }
}

impl Call {
    pub(super) fn new(call: &ToolCall, arguments: &Value) -> Self {
        Self { tool: call.tool.clone(), arguments: arguments.clone() }
    }

    /// The call that a part of a message is, or that it is the result of, as far as it says.
    pub fn of(part: &Part) -> Self {
        let tool = part.metadata.get(TOOL).and_then(Value::as_str).unwrap_or("tool");
        Self { tool: tool.to_owned(), arguments: serde_json::from_str(&part.text).unwrap_or(Value::Null) }
    }

    fn whole_arguments(&self) -> String {
        let path = Change::path(&self.tool, &self.arguments).map(str::to_owned);
        path.unwrap_or_else(|| arguments_text(&self.arguments))
    }

    /// What came of it.
    pub fn outcome(&self, result: &Part) -> Outcome {
        let is_error = result.metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default();
        let (mark, tone) = if is_error { ("✗", Tone::Error) } else { ("✓", Tone::Faint) };
        let call = format!("{mark} {self}");
        let whole_call = format!("{mark} {} {}", self.tool, self.whole_arguments()).trim_end().to_owned();
        let change = Change::of(&self.tool, &self.arguments, result.metadata.get("details"));
        if let Some(change) = change.filter(|_| !is_error) {
            let (short, below) = (change.to_string(), change.lines);
            return Outcome { tone, call, whole_call, short, below, worth: Excerpt::Change };
        }
        let text = settled(&output_text(&Value::String(result.text.clone()))).into_owned();
        let tone_below = if is_error { Tone::Error } else { Tone::Faint };
        let lines: Vec<&str> = text.trim_end().lines().skip_while(|line| line.trim().is_empty()).collect();
        let below = match lines.as_slice() {
            [] => Vec::new(),
            [only] if only.chars().count() <= SHOWN => Vec::new(),
            lines => lines.iter().map(|line| Line::toned(tone_below, line)).collect(),
        };
        let worth = if self.tool == "bash" { Excerpt::End } else { Excerpt::Beginning };
        Outcome { tone, call, whole_call, short: beginning(&text), below, worth }
    }
}

impl From<&OpenCall> for Call {
    fn from(open: &OpenCall) -> Self {
        Self::new(&open.call, &open.arguments)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = match Change::path(&self.tool, &self.arguments) {
            Some(path) => shortened(path),
            None => arguments_shown(&self.arguments),
        };
        let separator = if arguments.is_empty() { "" } else { " " };
        write!(f, "{}{separator}{arguments}", self.tool)
    }
}

/// The last line of what a tool has given so far, in whatever words it says that.
pub(super) fn last_line(output: &Value) -> Option<String> {
    let text = output_text(output);
    let text = settled(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(shortened(line.trim_end()))
}

/// One argument speaks for itself; of several their names are wanted too.
fn arguments_shown(arguments: &Value) -> String {
    let text = arguments_text(arguments);
    let mut lines = text.lines();
    let first = shortened(lines.next().unwrap_or_default());
    if lines.next().is_some() && !first.ends_with('…') { format!("{first} …") } else { first }
}

fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::Object(fields) => match fields.values().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            [Value::String(only)] => only.clone(),
            [..] => arguments.to_string(),
        },
        other => other.to_string(),
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

//! Conversations that other programs keep: their lines, and the items made of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Header, Item, numbered};
use mainstay_model::Timestamp;
use mainstay_model::entry::INLINE_BYTES;
use mainstay_model::error::Error;
use mainstay_model::event::EventBody;
use mainstay_model::id::SessionKind;
use mainstay_model::message::{BLOCK, Compaction, Message, Part, PartRole};

/// How much of what was said first names a conversation, in characters.
const NAME_CHARACTERS: usize = 60;

/// The longest label that comes along.
const LABEL_BYTES: usize = 200;

/// A line, and where it stands.
#[derive(Debug)]
pub(super) struct Line {
    /// The number of the line, from 1.
    pub(super) number: u64,
    pub(super) value: Map<String, Value>,
}

impl Line {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value.get(name).and_then(Value::as_str)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value.get(name).and_then(Value::as_object)
    }

    /// When it was written.
    pub(super) fn at(&self) -> Option<Timestamp> {
        self.text("timestamp")?.parse().ok()
    }
}

/// What is made of the lines.
#[derive(Debug, Default)]
pub(super) struct Draft {
    items: Vec<(Option<Timestamp>, EventBody)>,
    /// What people call entries, by their numbers.
    labels: BTreeMap<u64, (Option<Timestamp>, String)>,
    entries: u64,
    left_out: BTreeMap<String, u64>,
    /// What people called it.
    pub(super) name: Option<String>,
    /// The folder in which the conversation ran.
    pub(super) working_directory: Option<String>,
}

/// A conversation that was read.
pub(super) struct Conversation {
    pub(super) header: Header,
    pub(super) items: Vec<Item>,
    pub(super) left_out: BTreeMap<String, u64>,
}

/// The lines of a file. A last one that was cut off is said to be left out.
pub(super) fn lines(text: &str, draft: &mut Draft) -> Result<Vec<Line>, Error> {
    let mut lines = Vec::new();
    let mut given = (1_u64..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((number, line)) = given.next() {
        match serde_json::from_str(line) {
            Ok(Value::Object(value)) => lines.push(Line { number, value }),
            Ok(_) => return Err(invalid(number, "it is no JSON object".to_owned())),
            Err(_) if given.peek().is_none() => draft.leave_out("torn last line"),
            Err(error) => return Err(invalid(number, damage(&error))),
        }
    }
    Ok(lines)
}

/// What is wrong with a line, without the line's own number, which is always 1.
fn damage(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(told.as_str(), |(what, _)| what);
    format!("{what} at column {}", error.column())
}

pub(super) const fn invalid(line: u64, reason: String) -> Error {
    Error::ImportInvalid { line, reason }
}

impl Draft {
    /// One more of these did not come along.
    pub(super) fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    /// How many entries there are so far.
    pub(super) const fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds what was said; nothing where it says nothing and cost nothing.
    pub(super) fn say(&mut self, at: Option<Timestamp>, message: Message) {
        if message.parts.is_empty() && message.usage.is_none() {
            return;
        }
        if self.name.is_none() {
            let asked = message.parts.iter().find(|part| is_typed(part));
            self.name = asked.and_then(|part| named_by(&part.text));
        }
        self.entries += message.parts.len() as u64;
        self.items.push((at, EventBody::MessageAdded(Box::new(message))));
    }

    /// A summary stands for so many entries from the first.
    pub(super) fn compact(
        &mut self,
        at: Option<Timestamp>,
        entries: u64,
        summary: String,
        metadata: BTreeMap<String, Value>,
    ) {
        let covers = if entries == 0 { Vec::new() } else { vec![numbered(0, entries)] };
        self.entries += 1;
        let compaction = Compaction { covers, summary, metadata };
        self.items.push((at, EventBody::TranscriptCompacted(Box::new(compaction))));
    }

    /// Gives an entry a label; takes it off where the label says nothing.
    pub(super) fn label(&mut self, at: Option<Timestamp>, entry: u64, label: &str) {
        let label: String = label.chars().filter(|character| !character.is_control()).collect();
        match label.trim() {
            "" => drop(self.labels.remove(&entry)),
            label if label.len() > LABEL_BYTES => self.leave_out("long labels"),
            label => drop(self.labels.insert(entry, (at, label.to_owned()))),
        }
    }

    /// The parts of a message's content: a text, or blocks, each as `of_block` has it.
    pub(super) fn parts(
        &mut self,
        content: Option<&Value>,
        role: PartRole,
        of_block: impl Fn(&mut Self, &Map<String, Value>) -> Option<Part>,
    ) -> Vec<Part> {
        match content {
            Some(Value::String(text)) => vec![Part::text(role, text)],
            Some(Value::Array(blocks)) => blocks
                .iter()
                .map(|block| {
                    let known = block.as_object().and_then(|block| of_block(self, block));
                    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
                    known.unwrap_or_else(|| Part::block(role, kind, block))
                })
                .collect(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Keeps what a program notes of a tool's result beside it, where it is not large.
    pub(super) fn with_details(&mut self, part: Part, details: Option<&Value>) -> Part {
        let Some(details) = details.filter(|details| !details.is_null()) else { return part };
        if details.to_string().len() > INLINE_BYTES {
            self.leave_out("large details of a tool's result");
            return part;
        }
        part.with("details", details.clone())
    }

    /// The whole, where something was said.
    pub(super) fn finish(self, text: &str, now: Timestamp) -> Result<Conversation, Error> {
        if self.items.is_empty() {
            let last = text.lines().count().max(1) as u64;
            return Err(invalid(last, "nothing was said in it".to_owned()));
        }
        let mut last = Timestamp::MIN;
        let mut items = Vec::with_capacity(self.items.len());
        for (at, body) in self.items {
            // As exact as the log keeps it, and not before what was said before.
            let at = at.and_then(|at| Timestamp::from_microsecond(at.as_microsecond()).ok());
            last = at.unwrap_or(if last == Timestamp::MIN { now } else { last }).min(now).max(last);
            items.push(Item::message(last, body));
        }
        for (entry, (at, label)) in self.labels {
            let at = at.and_then(|at| Timestamp::from_microsecond(at.as_microsecond()).ok());
            items.push(Item::Label { at: at.unwrap_or(last).min(now), entry, label });
        }
        let name = self.name.unwrap_or_else(|| "imported".to_owned());
        let working_directory = self.working_directory.unwrap_or_default();
        let header = Header::new(name, SessionKind::agent(), None, working_directory, None);
        Ok(Conversation { header, items, left_out: self.left_out })
    }
}

/// Whether a person typed it: what programs say in their name comes with tags, or something about it.
fn is_typed(part: &Part) -> bool {
    part.role == PartRole::User && part.metadata.is_empty() && !part.text.starts_with('<')
}

/// What a text calls a session: its first words, on one line; none where there are none.
pub(super) fn named_by(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
    let short: String = line.chars().take(NAME_CHARACTERS).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    (!short.trim().is_empty()).then(|| format!("{}{more}", short.trim_end()))
}

/// A tool's result, from the text or the blocks that it answered.
pub(super) fn tool_result(call: &str, content: Option<&Value>) -> Part {
    let plain = match content {
        None | Some(Value::Null) => Some(""),
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Array(blocks)) => match blocks.as_slice() {
            [] => Some(""),
            [block] if block.get("type").and_then(Value::as_str) == Some("text") => {
                block.get("text").and_then(Value::as_str)
            }
            [..] => None,
        },
        Some(_) => None,
    };
    match (plain, content) {
        (Some(text), _) => Part::tool_result(call, text),
        (None, content) => {
            let whole = content.map(Value::to_string).unwrap_or_default();
            Part::tool_result(call, whole).with(BLOCK, "content")
        }
    }
}

/// A part with the text of a block, and what else the block has but its type.
pub(super) fn with_rest(part: Part, block: &Map<String, Value>, but: &[&str]) -> Part {
    let rest = block
        .iter()
        .filter(|(name, value)| *name != "type" && !but.contains(&name.as_str()) && !value.is_null());
    rest.fold(part, |part, (name, value)| part.with(name, value.clone()))
}

/// The indices of the nodes from the first to this one, each the parent of the next. A node whose parent is not there, or
/// comes again, is the first.
pub(super) fn path(last: usize, parent: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let (mut path, mut seen, mut next) = (Vec::new(), HashSet::new(), Some(last));
    while let Some(index) = next.filter(|index| seen.insert(*index)) {
        path.push(index);
        next = parent(index);
    }
    path.reverse();
    path
}

/// Where the line with each id is.
pub(super) fn by_id<'a>(lines: &'a [Line], id: &str) -> HashMap<&'a str, usize> {
    lines.iter().enumerate().filter_map(|(index, line)| Some((line.text(id)?, index))).collect()
}

pub(super) fn count(usage: &Map<String, Value>, name: &str) -> u64 {
    usage.get(name).and_then(Value::as_u64).unwrap_or_default()
}

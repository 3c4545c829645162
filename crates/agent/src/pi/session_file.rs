//! pi's session file, version 3, made of what an agent goes on from. It is a by-product: it can be made again at any time, and the
//! same conversation makes the same file.

use std::collections::HashMap;
use std::path::Path;

use mainstay_formats::exchange::pi_message;
use mainstay_model::{Role, SessionId, Timestamp};
use mainstay_runner::Conversation;
use serde_json::{Map, Value, json};

use mainstay_formats::exchange::pi_messages::{EntryText, Kind, PiEntry, said};

/// A file to resume from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionFile {
    /// What stands in it.
    pub(crate) text: String,
    /// The entries of the file, in order.
    pub(crate) entry_counts: EntryCounts,
}

/// How many entries of ours each entry of a file stands for that was written here, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryCounts(Vec<(String, u64)>);

/// Makes the file; none where nothing was said.
pub(crate) fn session_file(
    session: SessionId,
    working_directory: &Path,
    conversation: &Conversation,
) -> Option<SessionFile> {
    let first = conversation.entries.first()?.0.at;
    let mut writer = Writer::default();
    writer.line(
        json!({
            "type": "session", "version": 3, "id": session.to_string(), "timestamp": first.to_string(),
            "cwd": working_directory.display().to_string(),
        }),
        None,
    );
    for said in paired(all_said(conversation)) {
        writer.entry(said.fields, said.entries, said.at);
    }
    let last = conversation.entries.last().map_or(first, |(placed, _)| placed.at);
    if let Some(state) = &conversation.state {
        let thinking = json!({ "type": "thinking_level_change", "thinkingLevel": state.thinking });
        writer.value(thinking, last);
        if let Some(model) = &state.model {
            let change = json!({ "type": "model_change", "provider": model.provider, "modelId": model.id });
            writer.value(change, last);
        }
    }
    if !conversation.name.trim().is_empty() {
        writer.value(json!({ "type": "session_info", "name": conversation.name }), last);
    }
    Some(SessionFile { text: writer.text, entry_counts: writer.entry_counts })
}

/// Everything that was said, in pi's shapes.
fn all_said(conversation: &Conversation) -> Vec<PiEntry> {
    let shown: Vec<EntryText<'_>> =
        conversation.entries.iter().map(|(placed, text)| (placed, text.as_str())).collect();
    let state = conversation.state.as_ref();
    let (summary, rest) = match shown.split_first() {
        Some(((placed, text), rest)) if placed.entry.role == Role::Summary => (Some((placed, *text)), rest),
        Some(_) | None => (None, shown.as_slice()),
    };
    let groups = rest.chunk_by(|(one, _), (next, _)| (one.session, one.first) == (next.session, next.first));
    let mut all: Vec<PiEntry> = groups.flat_map(|group| said(group, state)).collect();
    if let Some(tokens) = state.and_then(|state| state.context_tokens)
        && let Some(last) = all.iter_mut().rfind(|said| said.is_whole())
    {
        last.takes(tokens);
    }
    if let Some((placed, text)) = summary {
        let of = |name: &str| placed.entry.metadata.get(name).cloned();
        let mut fields = Map::new();
        fields.insert("type".to_owned(), "compaction".into());
        fields.insert("summary".to_owned(), text.into());
        fields.insert("tokensBefore".to_owned(), of("tokensBefore").unwrap_or_else(|| 0.into()));
        fields.extend(of("details").map(|details| ("details".to_owned(), details)));
        // What it stands for is not in the file, and all that is comes after it.
        fields.insert("firstKeptEntryId".to_owned(), entry_id(1).into());
        all.insert(0, PiEntry { kind: Kind::Other, fields, entries: 0, at: placed.at });
    }
    all
}

/// With an answer to each call, right behind it: a provider refuses a conversation in which one is missing, or answers nothing.
fn paired(all: Vec<PiEntry>) -> Vec<PiEntry> {
    let mut paired: Vec<PiEntry> = Vec::with_capacity(all.len());
    let mut open: Vec<(String, String)> = Vec::new();
    for said in all {
        match &said.kind {
            Kind::Result { call } => match open.iter().position(|(waits, _)| waits == call) {
                Some(index) => {
                    open.remove(index);
                    paired.push(said);
                }
                None => {
                    close(&mut open, &mut paired, said.at);
                    paired.push(said.in_words());
                }
            },
            Kind::Assistant { calls } => {
                close(&mut open, &mut paired, said.at);
                open.clone_from(calls);
                paired.push(said);
            }
            Kind::Other => {
                close(&mut open, &mut paired, said.at);
                paired.push(said);
            }
        }
    }
    let at = paired.last().map_or(Timestamp::UNIX_EPOCH, |last| last.at);
    close(&mut open, &mut paired, at);
    paired
}

fn close(open: &mut Vec<(String, String)>, paired: &mut Vec<PiEntry>, at: Timestamp) {
    paired.extend(open.drain(..).map(|(call, tool)| PiEntry::interrupted(&call, &tool, at)));
}

/// The name of an entry, by how many are before it.
fn entry_id(index: usize) -> String {
    format!("{index:08x}")
}

#[derive(Default)]
struct Writer {
    text: String,
    entry_counts: EntryCounts,
}

impl Writer {
    fn value(&mut self, value: Value, at: Timestamp) {
        if let Value::Object(fields) = value {
            self.entry(fields, 0, at);
        }
    }

    fn entry(&mut self, mut fields: Map<String, Value>, entries: u64, at: Timestamp) {
        let id = entry_id(self.entry_counts.0.len());
        let parent = self.entry_counts.0.last().map(|(id, _)| id.clone());
        fields.insert("id".to_owned(), id.clone().into());
        fields.insert("parentId".to_owned(), parent.into());
        fields.insert("timestamp".to_owned(), at.to_string().into());
        self.line(Value::Object(fields), Some((id, entries)));
    }

    fn line(&mut self, value: Value, entry: Option<(String, u64)>) {
        self.entry_counts.0.extend(entry);
        self.text.push_str(&value.to_string());
        self.text.push('\n');
    }
}

/// How many entries of ours stand at or behind the entry with this id, in a file that began as written here and went on as pi
/// went on; none where it has no such entry.
pub(crate) fn kept(entry_counts: &EntryCounts, file: &str, first_kept: &str) -> Option<u64> {
    let known: HashMap<&str, u64> =
        entry_counts.0.iter().map(|(id, entries)| (id.as_str(), *entries)).collect();
    let mut kept: Option<u64> = None;
    for line in file.lines() {
        let Ok(Value::Object(entry)) = serde_json::from_str::<Value>(line) else { continue };
        let Some(id) = entry.get("id").and_then(Value::as_str) else { continue };
        if entry.get("type").and_then(Value::as_str) == Some("session") {
            continue;
        }
        if id == first_kept {
            kept = Some(0);
        }
        if let Some(kept) = &mut kept {
            *kept += known.get(id).copied().unwrap_or_else(|| entries_of(&entry));
        }
    }
    kept
}

/// How many entries of ours come of one that pi wrote.
fn entries_of(entry: &Map<String, Value>) -> u64 {
    let message = match entry.get("type").and_then(Value::as_str) {
        Some("message") => entry.get("message").and_then(Value::as_object).cloned().unwrap_or_default(),
        Some("custom_message") => {
            let mut message = entry.clone();
            message.insert("role".to_owned(), "custom".into());
            message
        }
        Some(_) | None => return 0,
    };
    pi_message(&message).parts.len() as u64
}

#[cfg(test)]
mod tests;

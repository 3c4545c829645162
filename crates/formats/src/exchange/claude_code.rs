//! Claude Code's session files, as it writes them under `~/.claude/projects`.
//!
//! Each line with a `uuid` hangs on another by `parentUuid`; what was said is the way to the newest leaf. One message of the
//! model is several lines with the same `message.id`, and results of tools that ran at once hang on lines of their own calls.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::foreign::{Draft, Line, by_id, count, invalid, lines, named_by, path, tool_result, with_rest};
use mainstay_model::error::Error;
use mainstay_model::message::{Cost, IS_ERROR, Message, Part, PartRole, TokenUsage};

/// Reads such a file.
pub(super) fn read(text: &str) -> Result<Draft, Error> {
    let mut draft = Draft::default();
    let lines = lines(text, &mut draft)?;
    let chosen = chosen(&lines, &mut draft);
    draft.working_directory = lines.iter().find_map(|line| line.text("cwd")).map(str::to_owned);
    draft.name = title(&lines);
    let said: Vec<&Line> = chosen.into_iter().map(|index| &lines[index]).collect();
    let mut messages: HashMap<&str, Vec<&Line>> = HashMap::new();
    for line in &said {
        message_id(line).into_iter().for_each(|id| messages.entry(id).or_default().push(*line));
    }
    let mut after_boundary = None;
    for line in &said {
        match line.text("type") {
            Some("assistant") => {
                // Its other lines are in it.
                let parts = message_id(line).map_or(Some(vec![*line]), |id| messages.remove(id));
                if let Some(parts) = parts {
                    let mut message = assistant(&parts, &mut draft);
                    // The program wrote it in the model's name; no model is told.
                    if line.is("isApiErrorMessage") {
                        message.metadata.insert("stopReason".to_owned(), "error".into());
                    }
                    draft.say(line.at(), message);
                }
            }
            Some("user") => user(line, after_boundary.take(), &mut draft)?,
            Some("system") if line.text("subtype") == Some("compact_boundary") => {
                after_boundary = Some(*line)
            }
            Some("system") => system(line, &mut draft),
            Some(_) | None => {}
        }
    }
    Ok(draft)
}

/// The lines that are taken, in order.
fn chosen(lines: &[Line], draft: &mut Draft) -> Vec<usize> {
    let ids = by_id(lines, "uuid");
    let is_said = |line: &Line| matches!(line.text("type"), Some("user" | "assistant" | "system"));
    // A file of nothing else is that of a sidechain itself.
    let has_main = lines.iter().any(|line| is_said(line) && !line.is("isSidechain"));
    let is_side = |line: &Line| has_main && line.is("isSidechain");
    let last = lines.iter().rposition(|line| line.text("uuid").is_some() && is_said(line) && !is_side(line));
    let parent = |index: usize| parent(lines, &ids, index);
    let mut taken: HashSet<usize> =
        last.map(|last| path(last, parent)).unwrap_or_default().into_iter().collect();
    bring_in_what_belongs(lines, &mut taken);
    for (_, line) in lines.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
        match line.text("type") {
            Some("summary" | "custom-title" | "ai-title") => {}
            Some(_) if is_said(line) && is_side(line) => draft.leave_out("messages of sidechains"),
            Some(_) if is_said(line) => draft.leave_out("messages of other branches"),
            Some(other) => draft.leave_out(&format!("`{other}` lines")),
            None => draft.leave_out("lines without a type"),
        }
    }
    for line in taken.iter().map(|index| &lines[*index]).filter(|line| !is_said(line)) {
        draft.leave_out(&format!("`{}` lines", line.text("type").unwrap_or_default()));
    }
    let mut taken: Vec<usize> = taken.into_iter().collect();
    // Lines are only ever added: their order is that in which they were said.
    taken.sort_unstable();
    taken
}

/// What a line hangs on. A compaction begins a new tree, and goes on where the old one ended.
fn parent(lines: &[Line], ids: &HashMap<&str, usize>, index: usize) -> Option<usize> {
    let line = &lines[index];
    let named = |name: &str| line.text(name).and_then(|id| ids.get(id)).copied();
    let is_boundary = line.text("subtype") == Some("compact_boundary") || line.is("isCompactSummary");
    let before =
        || lines[..index].iter().rposition(|line| line.text("uuid").is_some() && !line.is("isSidechain"));
    named("parentUuid").or_else(|| named("logicalParentUuid")).or_else(|| is_boundary.then(before).flatten())
}

/// Other lines of the model's messages that were taken, and the results of their calls.
fn bring_in_what_belongs(lines: &[Line], taken: &mut HashSet<usize>) {
    let messages: HashSet<&str> = taken.iter().filter_map(|index| message_id(&lines[*index])).collect();
    let is_of_them = |line: &Line| message_id(line).is_some_and(|id| messages.contains(id));
    let others = (0..lines.len()).filter(|index| is_of_them(&lines[*index]));
    taken.extend(others);
    let calls: HashSet<&str> =
        taken.iter().flat_map(|index| ids_in(&lines[*index], "tool_use", "id")).collect();
    let answered: HashSet<&str> =
        taken.iter().flat_map(|index| ids_in(&lines[*index], "tool_result", "tool_use_id")).collect();
    let mut open: HashSet<&str> = calls.difference(&answered).copied().collect();
    for (index, line) in lines.iter().enumerate() {
        let brings = ids_in(line, "tool_result", "tool_use_id").filter(|call| open.remove(call)).count();
        if brings > 0 {
            taken.insert(index);
        }
    }
}

/// The ids that blocks of one type have.
fn ids_in<'a>(line: &'a Line, kind: &'a str, id: &'a str) -> impl Iterator<Item = &'a str> {
    let blocks = line.object("message").and_then(|message| message.get("content")).and_then(Value::as_array);
    let of_kind = move |block: &&Value| block.get("type").and_then(Value::as_str) == Some(kind);
    blocks
        .into_iter()
        .flatten()
        .filter(of_kind)
        .filter_map(move |block| block.get(id).and_then(Value::as_str))
}

fn message_id(line: &Line) -> Option<&str> {
    (line.text("type") == Some("assistant")).then(|| line.object("message")?.get("id")?.as_str()).flatten()
}

/// One message of the model, from all of its lines. What it cost stands on each of them.
fn assistant(lines: &[&Line], draft: &mut Draft) -> Message {
    let mut message = Message::default();
    for said in lines.iter().filter_map(|line| line.object("message")) {
        message.parts.extend(draft.parts(said.get("content"), PartRole::Assistant, assistants_block));
        message.metadata.insert("api".to_owned(), "anthropic-messages".into());
        for (name, kept_as) in [("id", "id"), ("model", "model"), ("stop_reason", "stopReason")] {
            if let Some(value) = said.get(name).filter(|value| !value.is_null()) {
                message.metadata.insert(kept_as.to_owned(), value.clone());
            }
        }
        if let Some(usage) = said.get("usage").and_then(Value::as_object) {
            message.usage = Some(TokenUsage {
                input: count(usage, "input_tokens"),
                output: count(usage, "output_tokens"),
                cache_read: count(usage, "cache_read_input_tokens"),
                cache_write: count(usage, "cache_creation_input_tokens"),
                cost: Cost::default(),
            });
        }
    }
    message
}

fn assistants_block(_: &mut Draft, block: &Map<String, Value>) -> Option<Part> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    Some(match text("type")? {
        "text" => with_rest(Part::text(PartRole::Assistant, text("text")?), block, &["text"]),
        "thinking" => with_rest(Part::text(PartRole::Thinking, text("thinking")?), block, &["thinking"]),
        "redacted_thinking" => {
            Part::block(PartRole::Thinking, "redacted_thinking", &Value::Object(block.clone()))
        }
        "tool_use" => {
            let call = Part::tool_call(text("id")?, text("name")?, block.get("input")?);
            with_rest(call, block, &["id", "name", "input"])
        }
        _ => return None,
    })
}

/// What a person said, or what a tool answered; behind a boundary, the summary of what was before it.
fn user(line: &Line, boundary: Option<&Line>, draft: &mut Draft) -> Result<(), Error> {
    let Some(message) = line.object("message") else {
        return Err(invalid(line.number, "it has no message".to_owned()));
    };
    let details = line.value.get("toolUseResult");
    let mut parts = draft.parts(message.get("content"), PartRole::User, users_block);
    if boundary.is_some() || line.is("isCompactSummary") {
        let summary = parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n");
        let about = boundary.and_then(|boundary| boundary.object("compactMetadata")).cloned();
        let about: BTreeMap<String, Value> = about.unwrap_or_default().into_iter().collect();
        draft.compact(line.at(), draft.entries(), summary, about);
        return Ok(());
    }
    if let [part] = parts.as_mut_slice()
        && part.role == PartRole::ToolResult
    {
        *part = draft.with_details(part.clone(), details);
    }
    if line.is("isMeta") {
        parts = parts.into_iter().map(|part| part.with("isMeta", true)).collect();
    }
    draft.say(line.at(), Message { parts, ..Message::default() });
    Ok(())
}

fn users_block(_: &mut Draft, block: &Map<String, Value>) -> Option<Part> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    Some(match text("type")? {
        "text" => with_rest(Part::text(PartRole::User, text("text")?), block, &["text"]),
        "tool_result" => {
            let result = tool_result(text("tool_use_id")?, block.get("content"));
            let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            let result = if failed { result.with(IS_ERROR, true) } else { result };
            with_rest(result, block, &["tool_use_id", "content", "is_error"])
        }
        _ => return None,
    })
}

/// What the program said.
fn system(line: &Line, draft: &mut Draft) {
    let Some(content) = line.text("content") else { return draft.leave_out("`system` lines without a text") };
    let part = Part::text(PartRole::System, content);
    let part = line.text("subtype").map_or(part.clone(), |subtype| part.with("subtype", subtype));
    draft.say(line.at(), Message { parts: vec![part], ..Message::default() });
}

/// What people, else the program, called the conversation last.
fn title(lines: &[Line]) -> Option<String> {
    let ids = by_id(lines, "uuid");
    // Older versions wrote the titles of other conversations into each file.
    let is_of_this = |line: &Line| line.text("leafUuid").is_none_or(|leaf| ids.contains_key(leaf));
    let named = |kind: &str, name: &str| {
        let of_kind = |line: &&Line| line.text("type") == Some(kind) && is_of_this(line);
        lines.iter().rev().filter(of_kind).find_map(|line| line.text(name)).and_then(named_by)
    };
    named("custom-title", "customTitle")
        .or_else(|| named("summary", "summary"))
        .or_else(|| named("ai-title", "aiTitle"))
}

//! pi's session files, as it writes them under `~/.pi/agent/sessions`: a header, then entries that hang on each other by
//! `parentId`. The last entry is where the conversation stands.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::foreign::{Draft, Line, by_id, count, invalid, lines, named_by, path, tool_result, with_rest};
use mainstay_model::error::Error;
use mainstay_model::message::{Cost, IS_ERROR, Message, Part, PartRole, TOOL, TokenUsage};

/// The newest version of the format that is known.
const VERSION: u64 = 3;

/// Reads such a file.
pub(super) fn read(text: &str) -> Result<Draft, Error> {
    let mut draft = Draft::default();
    let mut entries = lines(text, &mut draft)?;
    let Some(at) = entries.iter().position(|line| line.text("type") == Some("session")) else {
        return Err(invalid(1, "the header is missing".to_owned()));
    };
    let header = entries.remove(at);
    // The first version said none.
    let version = header.value.get("version").and_then(Value::as_u64).unwrap_or(1);
    if version > VERSION {
        let reason = format!("it has version {version}, and this program knows {VERSION}");
        return Err(invalid(header.number, reason));
    }
    draft.working_directory = header.text("cwd").filter(|cwd| !cwd.is_empty()).map(str::to_owned);
    let names = entries.iter().rev().filter(|line| line.text("type") == Some("session_info"));
    draft.name = names.filter_map(|line| line.text("name")).find_map(named_by);
    let mut begins = EntryCounts::default();
    for line in chosen(&entries, &mut draft) {
        if let Some(id) = line.text("id") {
            begins.by_id.insert(id, draft.entries());
        }
        let before = draft.entries();
        begins.in_order.push(before);
        take(line, &begins, &mut draft)?;
        if let Some(id) = line.text("id").filter(|_| draft.entries() == before) {
            begins.of_nothing.insert(id);
        }
    }
    entries
        .iter()
        .filter(|line| line.text("type") == Some("label"))
        .for_each(|line| label(line, &begins, &mut draft));
    Ok(draft)
}

/// How many entries of ours there were before each of pi's.
#[derive(Default)]
struct EntryCounts<'a> {
    by_id: HashMap<&'a str, u64>,
    in_order: Vec<u64>,
    /// Those of pi's that none of ours comes of.
    of_nothing: HashSet<&'a str>,
}

impl EntryCounts<'_> {
    /// Before the first that a compaction kept. The first version counted from the header.
    fn kept(&self, compaction: &Line) -> Option<u64> {
        let by_id = compaction.text("firstKeptEntryId").and_then(|id| self.by_id.get(id));
        let index = compaction.value.get("firstKeptEntryIndex").and_then(Value::as_u64);
        let in_order = || self.in_order.get(usize::try_from(index?.checked_sub(1)?).ok()?);
        by_id.or_else(in_order).copied()
    }
}

/// The entries on the way to the last one; all of them where they do not hang on each other.
fn chosen<'a>(entries: &'a [Line], draft: &mut Draft) -> Vec<&'a Line> {
    let ids = by_id(entries, "id");
    let Some(last) = entries.iter().rposition(|line| line.text("id").is_some()) else {
        return entries.iter().collect();
    };
    let parent = |index: usize| entries[index].text("parentId").and_then(|id| ids.get(id)).copied();
    let taken: HashSet<usize> = path(last, parent).into_iter().collect();
    let is_said = |line: &Line| matches!(line.text("type"), Some("message" | "custom_message"));
    let others = entries.iter().enumerate().filter(|(index, line)| !taken.contains(index) && is_said(line));
    others.for_each(|_| draft.leave_out("messages of other branches"));
    entries.iter().enumerate().filter(|(index, _)| taken.contains(index)).map(|(_, line)| line).collect()
}

fn take(line: &Line, begins: &EntryCounts<'_>, draft: &mut Draft) -> Result<(), Error> {
    match line.text("type") {
        Some("message") => {
            let Some(message) = line.object("message") else {
                return Err(invalid(line.number, "it has no message".to_owned()));
            };
            let message = said(message, draft);
            draft.say(line.at(), message);
        }
        Some("custom_message") => {
            let message = custom(&line.value, draft);
            draft.say(line.at(), message);
        }
        Some("branch_summary") => {
            let summary = line.text("summary").unwrap_or_default();
            let part = Part::text(PartRole::System, summary).with("subtype", "branch_summary");
            draft.say(line.at(), Message { parts: vec![part], ..Message::default() });
        }
        Some("compaction") => {
            let summary = line.text("summary").unwrap_or_default().to_owned();
            let about = ["tokensBefore", "details"].into_iter().filter_map(|name| {
                let value = line.value.get(name).filter(|value| !value.is_null())?;
                Some((name.to_owned(), value.clone()))
            });
            let kept = begins.kept(line).unwrap_or(draft.entries());
            draft.compact(line.at(), kept, summary, about.collect());
        }
        Some("session_info" | "label") => {}
        Some(other) => draft.leave_out(&format!("`{other}` entries")),
        None => draft.leave_out("entries without a type"),
    }
    Ok(())
}

/// Gives the first of an entry's our entries the label that people gave it, on whatever branch they did.
fn label(line: &Line, begins: &EntryCounts<'_>, draft: &mut Draft) {
    let target = line.text("targetId").filter(|target| !begins.of_nothing.contains(target));
    match target.and_then(|target| begins.by_id.get(target)) {
        Some(entry) => draft.label(line.at(), *entry, line.text("label").unwrap_or_default()),
        None => draft.leave_out("labels of what did not come along"),
    }
}

/// A message of pi's as its session files and its events have it; without parts where it is of a kind that is not known.
pub fn message(message: &Map<String, Value>) -> Message {
    said(message, &mut Draft::default())
}

fn said(message: &Map<String, Value>, draft: &mut Draft) -> Message {
    let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
    let of = |parts| Message { parts, ..Message::default() };
    match text("role") {
        "user" => {
            of(draft.parts(message.get("content"), PartRole::User, |_, block| texts(PartRole::User, block)))
        }
        "assistant" => assistant(message, draft),
        "toolResult" => {
            let result = tool_result(text("toolCallId"), message.get("content")).with(TOOL, text("toolName"));
            let failed = message.get("isError").and_then(Value::as_bool).unwrap_or_default();
            let result = if failed { result.with(IS_ERROR, true) } else { result };
            of(vec![draft.with_details(result, message.get("details"))])
        }
        "bashExecution" => {
            let ran = format!("$ {}\n{}", text("command"), text("output"));
            let part = Part::text(PartRole::User, ran).with("subtype", "bashExecution");
            of(vec![with_rest(part, message, &["role", "output", "timestamp"])])
        }
        "custom" | "hookMessage" => custom(message, draft),
        "branchSummary" | "compactionSummary" => {
            of(vec![Part::text(PartRole::System, text("summary")).with("subtype", text("role"))])
        }
        other => {
            draft.leave_out(&format!("messages of the role `{other}`"));
            Message::default()
        }
    }
}

fn assistant(message: &Map<String, Value>, draft: &mut Draft) -> Message {
    let mut parts =
        draft.parts(message.get("content"), PartRole::Assistant, |_, block| assistants_block(block));
    if parts.is_empty() {
        // What was cut off before its first word says so all the same.
        parts.push(Part::text(PartRole::Assistant, ""));
    }
    let about = |name: &&str| {
        let value = message.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    };
    let metadata: BTreeMap<String, Value> =
        ["api", "provider", "model", "stopReason", "errorMessage", "responseId"]
            .iter()
            .filter_map(about)
            .collect();
    let usage = message.get("usage").and_then(Value::as_object).map(|usage| TokenUsage {
        input: count(usage, "input"),
        output: count(usage, "output"),
        cache_read: count(usage, "cacheRead"),
        cache_write: count(usage, "cacheWrite"),
        cost: usage
            .get("cost")
            .and_then(|cost| cost.get("total")?.as_f64())
            .map(Cost::of_dollars)
            .unwrap_or_default(),
    });
    Message { parts, metadata, usage }
}

fn assistants_block(block: &Map<String, Value>) -> Option<Part> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    Some(match text("type")? {
        "thinking" => {
            let thoughts = with_rest(
                Part::text(PartRole::Thinking, text("thinking")?),
                block,
                &["thinking", "thinkingSignature"],
            );
            text("thinkingSignature")
                .map_or(thoughts.clone(), |signature| thoughts.with("signature", signature))
        }
        "toolCall" => {
            let call = Part::tool_call(text("id")?, text("name")?, block.get("arguments")?);
            with_rest(call, block, &["id", "name", "arguments"])
        }
        _ => return texts(PartRole::Assistant, block),
    })
}

fn texts(role: PartRole, block: &Map<String, Value>) -> Option<Part> {
    let text = block.get("text").and_then(Value::as_str)?;
    (block.get("type")?.as_str()? == "text").then(|| with_rest(Part::text(role, text), block, &["text"]))
}

/// What an extension had the model be told.
fn custom(message: &Map<String, Value>, draft: &mut Draft) -> Message {
    let parts = draft.parts(message.get("content"), PartRole::User, |_, block| texts(PartRole::User, block));
    let about = |part: Part| {
        let rest = ["customType", "display"].iter().filter_map(|name| Some((*name, message.get(*name)?)));
        rest.fold(part.with("subtype", "custom"), |part, (name, value)| part.with(name, value.clone()))
    };
    let details = message.get("details");
    let parts = parts.into_iter().map(about).map(|part| draft.with_details(part, details)).collect();
    Message { parts, ..Message::default() }
}

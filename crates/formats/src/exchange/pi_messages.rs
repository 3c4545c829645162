//! What entries of a transcript say, as pi has it in its messages. The way back is the reader of pi's session files.
//!
//! What pi has no shape for is said in words: a cell of a REPL, a tool's result that belongs to no call.

use std::collections::BTreeMap;

use mainstay_model::Timestamp;
use mainstay_model::agent::AgentState;
use mainstay_model::entry::{Role, TranscriptEntry};
use mainstay_model::message::{BLOCK, CALL, IS_ERROR, TOOL};
use serde_json::{Map, Value, json};

/// What belongs to a whole message of a model's.
const OF_MESSAGE: [&str; 6] = ["api", "provider", "model", "stopReason", "errorMessage", "responseId"];
/// What says what an entry is, or is written in a place of its own.
const OF_ENTRY: [&str; 9] =
    [BLOCK, CALL, TOOL, IS_ERROR, "signature", "details", "subtype", "customType", "display"];
/// Why a model may have stopped, as pi says it.
const STOPPED: [&str; 5] = ["stop", "length", "toolUse", "error", "aborted"];

/// An entry with all of its text.
pub type EntryText<'a> = (&'a TranscriptEntry, &'a str);

/// An entry of pi's session file, without what ties it to others.
#[derive(Clone, Debug, PartialEq)]
pub struct PiEntry {
    /// What it is of.
    pub kind: Kind,
    /// The fields of the message.
    pub fields: Map<String, Value>,
    /// How many entries of ours it stands for.
    pub entries: u64,
    /// When it was said.
    pub at: Timestamp,
}

/// What an entry of pi's is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A model says it.
    Assistant {
        /// The tools it calls, and waits for: id and name.
        calls: Vec<(String, String)>,
    },
    /// What a tool answered to this call.
    Result {
        /// The call that is answered.
        call: String,
    },
    /// A message of any other kind.
    Other,
}

impl PiEntry {
    /// Creates a message in the words of pi.
    fn message(kind: Kind, mut message: Map<String, Value>, entries: u64, at: Timestamp) -> Self {
        message.insert("timestamp".to_owned(), at.as_millisecond().into());
        let fields = fields(json!({ "type": "message", "message": message }));
        Self { kind, fields, entries, at }
    }

    /// What a person said.
    pub fn user(blocks: Vec<Value>, entries: u64, at: Timestamp) -> Self {
        let message = fields(json!({ "role": "user", "content": blocks }));
        Self::message(Kind::Other, message, entries, at)
    }

    /// What is said of a call that was cut off.
    pub fn interrupted(call: &str, tool: &str, at: Timestamp) -> Self {
        let message = fields(json!({
            "role": "toolResult", "toolCallId": call, "toolName": tool,
            "content": [text_block("interrupted")], "isError": true,
        }));
        Self::message(Kind::Result { call: call.to_owned() }, message, 0, at)
    }

    /// A result whose call is not there, in words.
    pub fn in_words(self) -> Self {
        let message = self.fields.get("message");
        let of = |name: &str| message.and_then(|message| message.get(name)).cloned().unwrap_or_default();
        let tool = of("toolName");
        let mut blocks = vec![text_block(&format!("A result of the tool {}:", tool.as_str().unwrap_or("")))];
        blocks.extend(of("content").as_array().cloned().unwrap_or_default());
        Self::user(blocks, self.entries, self.at)
    }

    /// How many tokens a model had taken, where this is its last word.
    pub fn takes(&mut self, tokens: u64) {
        if let Some(usage) = self.fields.get_mut("message").and_then(|message| message.get_mut("usage")) {
            usage["totalTokens"] = tokens.into();
        }
    }

    /// Whether a model came to its end with it.
    pub fn is_whole(&self) -> bool {
        let stopped = self.fields.get("message").and_then(|message| message.get("stopReason"));
        matches!(self.kind, Kind::Assistant { .. })
            && !matches!(stopped.and_then(Value::as_str), Some("error" | "aborted"))
    }
}

/// What the entries of one message, or of one cell, say to pi. `state` has the model that spoke where an entry does not tell.
pub fn said(group: &[EntryText<'_>], state: Option<&AgentState>) -> Vec<PiEntry> {
    let mut said = Vec::new();
    for run in group.chunk_by(|(one, _), (next, _)| goes_with(one) == goes_with(next)) {
        let Some((first, _)) = run.first() else { continue };
        let at = first.at;
        match goes_with(first) {
            Group::Model => said.push(assistant(run, state, at)),
            Group::Cell => said.push(cell(run, at)),
            Group::Person => said.push(person(run, at)),
            Group::Result => said.extend(run.iter().map(|shown| tool_result(*shown))),
            Group::Program => said.extend(run.iter().map(|shown| program(*shown))),
        }
    }
    said
}

/// What entries become together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Model,
    Cell,
    Person,
    Result,
    Program,
}

fn goes_with(placed: &TranscriptEntry) -> Group {
    match placed.entry.role {
        Role::Assistant | Role::Thinking | Role::ToolCall => Group::Model,
        Role::Input | Role::Output => Group::Cell,
        Role::User => Group::Person,
        Role::ToolResult => Group::Result,
        Role::System | Role::Summary => Group::Program,
    }
}

fn assistant(run: &[EntryText<'_>], state: Option<&AgentState>, at: Timestamp) -> PiEntry {
    let content: Vec<Value> = match run {
        // What was cut off before its first word.
        [(placed, "")] if placed.entry.role == Role::Assistant => Vec::new(),
        run => run.iter().filter_map(|shown| assistants_block(*shown)).collect(),
    };
    let is_call = |block: &&Value| block["type"] == "toolCall";
    let calls: Vec<(String, String)> =
        content.iter().filter(is_call).map(|block| (owned(&block["id"]), owned(&block["name"]))).collect();
    let metadata = run.iter().map(|(placed, _)| &placed.entry.metadata).next();
    let of = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    let stopped = of("stopReason").filter(|why| why.as_str().is_some_and(|why| STOPPED.contains(&why)));
    let default = if calls.is_empty() { "stop" } else { "toolUse" };
    let mut message = fields(json!({
        "role": "assistant",
        "content": content,
        "usage": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
    }));
    for name in OF_MESSAGE {
        message.extend(of(name).map(|value| (name.to_owned(), value.clone())));
    }
    message.insert("stopReason".to_owned(), stopped.cloned().unwrap_or_else(|| default.into()));
    let model = state.and_then(|state| state.model.as_ref());
    let api = model.and_then(|model| model.about.get("api")).and_then(Value::as_str).unwrap_or("unknown");
    let (provider, id) = model.map_or(("unknown", "unknown"), |model| (&model.provider, &model.id));
    for (name, value) in [("api", api), ("provider", provider), ("model", id)] {
        message.entry(name).or_insert_with(|| value.into());
    }
    let cut_off = matches!(message["stopReason"].as_str(), Some("error" | "aborted"));
    // pi itself shows no model what another was cut off in.
    let kind = Kind::Assistant { calls: if cut_off { Vec::new() } else { calls } };
    PiEntry::message(kind, message, run.len() as u64, at)
}

fn assistants_block((placed, text): EntryText<'_>) -> Option<Value> {
    let metadata = &placed.entry.metadata;
    let of = |name: &str| metadata.get(name).cloned().unwrap_or_default();
    let block = match placed.entry.role {
        // Thoughts that a provider hid: only it can read them, in its own format.
        Role::Thinking if metadata.contains_key(BLOCK) => return None,
        Role::Thinking => {
            let mut block = json!({ "type": "thinking", "thinking": text });
            if let Some(signature) = metadata.get("signature") {
                block["thinkingSignature"] = signature.clone();
            }
            block
        }
        Role::ToolCall => {
            let arguments = serde_json::from_str(text).ok().filter(Value::is_object);
            let arguments = arguments.unwrap_or_else(|| json!({}));
            json!({ "type": "toolCall", "id": of(CALL), "name": of(TOOL), "arguments": arguments })
        }
        _ if metadata.contains_key(BLOCK) => return None,
        _ => text_block(text),
    };
    Some(with_rest(block, metadata))
}

fn person(run: &[EntryText<'_>], at: Timestamp) -> PiEntry {
    let metadata = run.first().map(|(placed, _)| &placed.entry.metadata);
    let of = |name: &str| metadata.and_then(|metadata| metadata.get(name)).cloned().unwrap_or_default();
    let entries = run.len() as u64;
    match (of("subtype").as_str(), run) {
        (Some("bashExecution"), [(placed, text)]) => {
            let command = owned(&of("command"));
            let ran = text.strip_prefix(&format!("$ {command}\n")).unwrap_or(text);
            let message = json!({ "role": "bashExecution", "command": command, "output": ran });
            let message = with_rest(message, &placed.entry.metadata);
            PiEntry::message(Kind::Other, fields(message), entries, at)
        }
        (Some("custom"), run) => {
            let mut custom = json!({
                "type": "custom_message", "customType": of("customType"), "display": of("display"),
                "content": run.iter().map(|shown| block(*shown)).collect::<Vec<_>>(),
            });
            if let Some(details) = metadata.and_then(|metadata| metadata.get("details")) {
                custom["details"] = details.clone();
            }
            PiEntry { kind: Kind::Other, fields: fields(custom), entries, at }
        }
        (_, run) => PiEntry::user(run.iter().map(|shown| block(*shown)).collect(), entries, at),
    }
}

fn tool_result((placed, text): EntryText<'_>) -> PiEntry {
    let metadata = &placed.entry.metadata;
    let call = metadata.get(CALL).map(owned).unwrap_or_default();
    let content: Vec<Value> = match metadata.contains_key(BLOCK) {
        true => match serde_json::from_str(text) {
            Ok(Value::Array(blocks)) => blocks.into_iter().map(pis_block).collect(),
            Ok(_) | Err(_) => vec![text_block(text)],
        },
        false if text.is_empty() => Vec::new(),
        false => vec![text_block(text)],
    };
    let mut message = fields(json!({
        "role": "toolResult", "toolCallId": call,
        "toolName": metadata.get(TOOL).map_or("unknown".into(), Value::clone),
        "content": content,
        "isError": metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default(),
    }));
    message.extend(metadata.get("details").map(|details| ("details".to_owned(), details.clone())));
    PiEntry::message(Kind::Result { call }, message, 1, placed.at)
}

/// What a program says in a conversation: pi's own have a shape, others are said as an extension's.
fn program((placed, text): EntryText<'_>) -> PiEntry {
    let subtype = placed.entry.metadata.get("subtype").and_then(Value::as_str);
    let at = placed.at;
    let plain = |value: Value| PiEntry { kind: Kind::Other, fields: fields(value), entries: 1, at };
    match (placed.entry.role, subtype) {
        (Role::Summary, _) => {
            let message = json!({ "role": "compactionSummary", "summary": text, "tokensBefore": 0 });
            // A summary is among the entries of ours, and none of those that another may stand for.
            PiEntry::message(Kind::Other, fields(message), 0, at)
        }
        (_, Some("branch_summary")) => {
            plain(json!({ "type": "branch_summary", "fromId": "root", "summary": text }))
        }
        (_, Some(role @ ("branchSummary" | "compactionSummary"))) => {
            let message = json!({ "role": role, "summary": text, "tokensBefore": 0, "fromId": "root" });
            PiEntry::message(Kind::Other, fields(message), 1, at)
        }
        (_, subtype) => plain(json!({
            "type": "custom_message", "customType": subtype.unwrap_or("system"), "display": true, "content": text,
        })),
    }
}

/// A cell of a REPL, in words.
fn cell(run: &[EntryText<'_>], at: Timestamp) -> PiEntry {
    let told = run.iter().map(|(placed, text)| {
        let language = placed.entry.metadata.get("language").and_then(Value::as_str).unwrap_or_default();
        match placed.entry.role {
            Role::Input => fenced(text, language),
            _ => format!("Output:\n{}", fenced(&placed.entry.shown(text), "")),
        }
    });
    let words = told.collect::<Vec<_>>().join("\n\n");
    PiEntry::user(vec![text_block(&words)], run.len() as u64, at)
}

/// A text between fences that it does not have itself.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// A text or an image.
fn block((placed, text): EntryText<'_>) -> Value {
    let metadata = &placed.entry.metadata;
    match metadata.contains_key(BLOCK).then(|| serde_json::from_str(text)) {
        Some(Ok(whole)) => pis_block(whole),
        Some(Err(_)) | None => with_rest(text_block(text), metadata),
    }
}

/// A block as pi can show it to a model: what is neither text nor image is named.
fn pis_block(block: Value) -> Value {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match block["type"].as_str() {
        Some("text") => block,
        Some("image") if block["data"].is_string() && block["mimeType"].is_string() => block,
        Some("image") => match (text(&block["source"]["data"]), text(&block["source"]["media_type"])) {
            (Some(data), Some(mime)) => json!({ "type": "image", "data": data, "mimeType": mime }),
            (_, _) => text_block("[image]"),
        },
        kind => text_block(&format!("[{}]", kind.unwrap_or("block"))),
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// With what else belongs to an entry, and is said in no place of its own.
fn with_rest(mut block: Value, metadata: &BTreeMap<String, Value>) -> Value {
    for (name, value) in metadata {
        let is_said = OF_MESSAGE.contains(&name.as_str()) || OF_ENTRY.contains(&name.as_str());
        if !is_said && block.get(name).is_none() {
            block[name.as_str()] = value.clone();
        }
    }
    block
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The fields of what is written here as an object.
fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

//! A message that is being said, in pi's events and blocks.

use mainstay_model::live::{PartialMessage, PartialPart};
use mainstay_model::{AgentState, PartRole, Timestamp, WorkEnding};
use serde_json::{Value, json};

/// A message of a model's that has said nothing yet.
pub(super) fn unsaid(state: Option<&AgentState>, at: Timestamp) -> Value {
    let model = state.and_then(|state| state.model.as_ref());
    let api = model.and_then(|model| model.about.get("api")).and_then(Value::as_str);
    let (provider, id) =
        model.map_or(("unknown", "unknown"), |model| (model.provider.as_str(), model.id.as_str()));
    json!({
        "role": "assistant", "content": [], "api": api.unwrap_or("unknown"), "provider": provider, "model": id,
        "usage": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
        "stopReason": "stop", "timestamp": at.as_millisecond(),
    })
}

/// That a message begins.
pub(super) fn begun(message: &Value) -> Value {
    json!({ "type": "message_start", "message": message })
}

/// That a message has ended, and how it reads.
pub(super) fn ended(message: &Value) -> Value {
    json!({ "type": "message_end", "message": message })
}

/// The message as far as it was said.
pub(super) fn so_far(message: &PartialMessage, unsaid: &Value) -> Value {
    with_blocks(message.parts.values(), unsaid)
}

/// The message as far as it was said before it was cut off. A call that was not whole was never made.
pub(super) fn cut_off(message: &PartialMessage, unsaid: &Value, ending: &WorkEnding) -> Value {
    let said = message.parts.values().filter(|part| part.role != PartRole::ToolCall);
    let mut message = with_blocks(said, unsaid);
    let stopped = match ending {
        WorkEnding::Failed { .. } => "error",
        WorkEnding::Done { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => "aborted",
    };
    message["stopReason"] = stopped.into();
    message
}

fn with_blocks<'a>(parts: impl Iterator<Item = &'a PartialPart>, unsaid: &Value) -> Value {
    let mut message = unsaid.clone();
    message["content"] = parts.map(block).collect();
    message
}

/// All that was told of a part up to here.
pub(super) fn told(number: u32, part: &PartialPart) -> Vec<Value> {
    let text = (!part.text.is_empty()).then(|| part_delta(number, part.role, &part.text));
    let end = part.has_ended.then(|| part_end(number, part));
    [part_start(number, part)].into_iter().chain(text).chain(end).collect()
}

/// That a part begins.
pub(super) fn part_start(number: u32, part: &PartialPart) -> Value {
    let mut start = json!({ "type": format!("{}_start", kind_of(part.role)), "contentIndex": number });
    if part.role == PartRole::ToolCall {
        start["toolCall"] = call(part, &json!({}));
    }
    update(start)
}

/// The next text of a part.
pub(super) fn part_delta(number: u32, role: PartRole, text: &str) -> Value {
    update(json!({ "type": format!("{}_delta", kind_of(role)), "contentIndex": number, "delta": text }))
}

/// That a part has ended, and how it reads.
pub(super) fn part_end(number: u32, part: &PartialPart) -> Value {
    let mut end = json!({ "type": format!("{}_end", kind_of(part.role)), "contentIndex": number });
    match part.role {
        PartRole::ToolCall => end["toolCall"] = block(part),
        PartRole::System
        | PartRole::User
        | PartRole::Assistant
        | PartRole::Thinking
        | PartRole::ToolResult => end["content"] = part.text.as_str().into(),
    }
    update(end)
}

fn update(event: Value) -> Value {
    json!({ "type": "message_update", "assistantMessageEvent": event })
}

/// A part as far as it was said. The arguments of a call that is not whole are not known.
fn block(part: &PartialPart) -> Value {
    match part.role {
        PartRole::Thinking => json!({ "type": "thinking", "thinking": part.text }),
        PartRole::ToolCall => {
            let arguments = serde_json::from_str(&part.text).unwrap_or_else(|_| json!({}));
            call(part, &arguments)
        }
        PartRole::System | PartRole::User | PartRole::Assistant | PartRole::ToolResult => {
            json!({ "type": "text", "text": part.text })
        }
    }
}

fn call(part: &PartialPart, arguments: &Value) -> Value {
    let (id, tool) = part.call.as_ref().map_or(("", ""), |call| (&call.call, &call.tool));
    json!({ "type": "toolCall", "id": id, "name": tool, "arguments": arguments })
}

const fn kind_of(role: PartRole) -> &'static str {
    match role {
        PartRole::Thinking => "thinking",
        PartRole::ToolCall => "toolcall",
        PartRole::System | PartRole::User | PartRole::Assistant | PartRole::ToolResult => "text",
    }
}

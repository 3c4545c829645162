//! OpenAI's chat completions, which opencode and qwen-code speak.

use serde_json::{Value, json};

use super::{Move, Offered, Part, Shown, data, list, named, picture_at, text_of};

pub(super) fn offered(request: &Value) -> Vec<Offered> {
    list(&request["tools"]).iter().filter_map(|tool| named(&tool["function"], None, tool)).collect()
}

/// A tool's message has text alone: pictures follow it as the user's.
pub(super) fn result(request: &Value, call: &str) -> Option<Shown> {
    let messages = list(&request["messages"]);
    let at = messages.iter().rposition(|message| message["tool_call_id"] == call)?;
    let behind = messages[at + 1..].iter().take_while(|message| message["role"] == "user");
    let parts = parts(&messages[at]["content"]).into_iter();
    let parts = parts.chain(behind.flat_map(|message| self::parts(&message["content"]))).collect();
    Some(Shown { parts, is_error: None })
}

fn parts(content: &Value) -> Vec<Part> {
    match content.as_str() {
        Some(text) => vec![Part::Text(text.to_owned())],
        None => list(content).iter().map(part).collect(),
    }
}

fn part(item: &Value) -> Part {
    match item["type"].as_str() {
        Some("image_url") => picture_at(&item["image_url"]["url"]),
        _ => Part::Text(text_of(&item["text"])),
    }
}

pub(super) fn events(next: &Move) -> String {
    let (delta, reason) = match next {
        Move::Call { id, tool, arguments } => {
            let call = json!({ "index": 0, "id": id, "type": "function", "function": { "name": tool.name, "arguments": arguments.to_string() } });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
        Move::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    let chunk = |delta: Value, reason: Option<&str>| {
        let mut chunk = json!({ "id": "reply", "created": 1, "object": "chat.completion.chunk", "model": "m",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
        if reason.is_some() {
            chunk["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 });
        }
        data(&chunk)
    };
    chunk(delta, None) + &chunk(json!({}), Some(reason)) + "data: [DONE]\n\n"
}

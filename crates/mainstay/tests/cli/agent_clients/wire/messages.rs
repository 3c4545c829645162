//! Anthropic's Messages, which Claude Code speaks.

use serde_json::{Value, json};

use super::{Move, Offered, Part, Shown, event, list, named, text_of};

pub(super) fn offered(request: &Value) -> Vec<Offered> {
    list(&request["tools"]).iter().filter_map(|tool| named(tool, None, tool)).collect()
}

pub(super) fn result(request: &Value, call: &str) -> Option<Shown> {
    let mut blocks = list(&request["messages"]).iter().flat_map(|message| list(&message["content"]));
    let block = blocks.rfind(|block| block["tool_use_id"] == call)?;
    let content = &block["content"];
    let parts = match content.as_str() {
        Some(text) => vec![Part::Text(text.to_owned())],
        None => list(content).iter().map(part).collect(),
    };
    Some(Shown { parts, is_error: Some(block["is_error"] == true) })
}

fn part(block: &Value) -> Part {
    match block["type"].as_str() {
        Some("image") => {
            let source = &block["source"];
            Part::Picture(text_of(&source["media_type"]), text_of(&source["data"]).len())
        }
        // A tool that a search has found: its definition stands here.
        Some("tool_reference") => Part::Text(text_of(&block["tool_name"])),
        _ => Part::Text(text_of(&block["text"])),
    }
}

pub(super) fn events(next: &Move) -> String {
    let (block, delta, reason) = match next {
        Move::Call { id, tool, arguments } => (
            json!({ "type": "tool_use", "id": id, "name": tool.name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
            "tool_use",
        ),
        Move::Say(text) => {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }), "end_turn")
        }
    };
    let usage = json!({ "input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    let message = json!({ "id": "message", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage });
    [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 10 } }),
        json!({ "type": "message_stop" }),
    ]
    .iter()
    .map(event)
    .collect()
}

//! OpenAI's Responses, which codex speaks: tools of an MCP server stand in a namespace of their own.

use serde_json::{Value, json};

use super::{Move, Offered, Part, Shown, event, list, named, picture_at, text_of};

pub(super) fn offered(request: &Value) -> Vec<Offered> {
    let of_one = |tool: &Value| match tool["type"].as_str() {
        Some("namespace") => {
            let inner = list(&tool["tools"]).iter();
            inner.filter_map(|inner| named(inner, tool["name"].as_str(), inner)).collect()
        }
        _ => named(tool, None, tool).into_iter().collect::<Vec<_>>(),
    };
    list(&request["tools"]).iter().flat_map(of_one).collect()
}

pub(super) fn result(request: &Value, call: &str) -> Option<Shown> {
    let is_it = |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call;
    let output = &list(&request["input"]).iter().rfind(is_it)?["output"];
    let parts = match output.as_str() {
        Some(text) => vec![Part::Text(text.to_owned())],
        None => list(output).iter().map(part).collect(),
    };
    Some(Shown { parts, is_error: None })
}

fn part(item: &Value) -> Part {
    match item["type"].as_str() {
        Some("input_image") => picture_at(&item["image_url"]),
        _ => Part::Text(text_of(&item["text"])),
    }
}

pub(super) fn events(next: &Move) -> String {
    let item = match next {
        Move::Call { id, tool, arguments } => {
            let mut item = json!({ "type": "function_call", "id": format!("item-{id}"), "call_id": id, "name": tool.name, "arguments": arguments.to_string() });
            if let Some(namespace) = &tool.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
        Move::Say(text) => {
            json!({ "type": "message", "id": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
        }
    };
    let usage = json!({ "input_tokens": 100, "input_tokens_details": null, "output_tokens": 10, "output_tokens_details": null, "total_tokens": 110 });
    [
        json!({ "type": "response.created", "response": { "id": "response" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "response", "usage": usage } }),
    ]
    .iter()
    .map(event)
    .collect()
}

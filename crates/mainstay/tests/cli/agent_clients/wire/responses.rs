//! OpenAI's Responses, which codex speaks: tools of an MCP server stand in a namespace of their own. What a model finds, and what it runs as a
//! script, is called in ways of their own.

use serde_json::{Value, json};

use super::{Move, Offered, Part, Shown, event, list, named, picture_at, text_of};

/// The tool that looks for others.
const SEARCH: &str = "tool_search";
/// The tool that takes a script, as it is.
const SCRIPT: &str = "exec";

pub(super) fn offered(request: &Value) -> Vec<Offered> {
    let of_one = |tool: &Value| match tool["type"].as_str() {
        Some("namespace") => {
            let inner = list(&tool["tools"]).iter();
            inner.filter_map(|inner| named(inner, tool["name"].as_str(), inner)).collect()
        }
        // It has no name.
        Some(SEARCH) => {
            vec![Offered { namespace: None, name: SEARCH.to_owned(), bytes: tool.to_string().len() }]
        }
        _ => named(tool, None, tool).into_iter().collect::<Vec<_>>(),
    };
    let in_input = list(&request["input"]).iter().filter(|item| item["type"] == "additional_tools");
    let tools = list(&request["tools"]).iter().chain(in_input.flat_map(|item| list(&item["tools"])));
    tools.flat_map(of_one).collect()
}

pub(super) fn result(request: &Value, call: &str) -> Option<Shown> {
    let is_it = |item: &&Value| {
        let kind = item["type"].as_str().unwrap_or_default();
        item["call_id"] == call && kind.ends_with("_output")
    };
    let item = list(&request["input"]).iter().rfind(is_it)?;
    let output = &item["output"];
    let parts = match output.as_str() {
        Some(text) => vec![Part::Text(text.to_owned())],
        None if item["type"] == "tool_search_output" => vec![Part::Text(item["tools"].to_string())],
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
        Move::Call { id, tool, arguments } if tool.name == SEARCH => {
            json!({ "type": "tool_search_call", "id": format!("item-{id}"), "call_id": id, "execution": "client", "status": "completed", "arguments": arguments })
        }
        Move::Call { id, tool, arguments } if tool.name == SCRIPT => {
            json!({ "type": "custom_tool_call", "id": format!("item-{id}"), "call_id": id, "name": SCRIPT, "namespace": tool.namespace, "input": arguments })
        }
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

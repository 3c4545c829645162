//! Google's `streamGenerateContent`, which the Gemini CLI speaks.

use serde_json::{Value, json};

use super::{Move, Offered, Part, Shown, data, list, named, text_of};

pub(super) fn offered(request: &Value) -> Vec<Offered> {
    let declared = list(&request["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    declared.filter_map(|tool| named(tool, None, tool)).collect()
}

/// The result of the newest call: the CLI gives calls ids of its own.
pub(super) fn result(request: &Value) -> Option<Shown> {
    let answered =
        |content: &&Value| list(&content["parts"]).iter().any(|part| !part["functionResponse"].is_null());
    let content = list(&request["contents"]).iter().rfind(answered)?;
    let mut shown = Shown::default();
    for part in list(&content["parts"]) {
        if let Some(data) = part["inlineData"]["data"].as_str() {
            shown.parts.push(Part::Picture(text_of(&part["inlineData"]["mimeType"]), data.len()));
        } else if !part["functionResponse"].is_null() {
            let response = &part["functionResponse"]["response"];
            let error = response["error"].as_str();
            shown.is_error = Some(error.is_some());
            let text = error.or(response["output"].as_str());
            shown.parts.push(Part::Text(text.map_or_else(|| response.to_string(), str::to_owned)));
        } else {
            shown.parts.push(Part::Text(text_of(&part["text"])));
        }
    }
    Some(shown)
}

pub(super) fn events(next: &Move) -> String {
    let part = match next {
        // Without a signature the CLI adds one of its own.
        Move::Call { tool, arguments, .. } => {
            json!({ "functionCall": { "name": tool.name, "args": arguments }, "thoughtSignature": "c2lnbg==" })
        }
        Move::Say(text) => json!({ "text": text }),
    };
    let usage = json!({ "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110 });
    data(&json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" }],
        "usageMetadata": usage, "modelVersion": "m", "responseId": "reply",
    }))
}

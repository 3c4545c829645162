//! Asks, as pi's clients know them.

use mainstay_model::Ask;
use serde_json::{Value, json};

/// An ask as a dialog of an extension: what an answer must be says which.
pub(in super::super) fn ui_request(ask: &Ask) -> Value {
    let Ask { ask, question, deadline, .. } = ask;
    let (title, message) = question.prompt.split_once('\n').unwrap_or((question.prompt.as_str(), ""));
    let schema = &question.schema;
    let (method, more) = match (schema.get("enum"), schema["type"].as_str(), schema.get("default")) {
        (Some(options), ..) => ("select", ("options", options.clone())),
        (None, Some("boolean"), _) => ("confirm", ("message", message.into())),
        (None, Some("string"), Some(prefill)) => ("editor", ("prefill", prefill.clone())),
        (None, Some("string"), None) => ("input", ("placeholder", message.into())),
        (None, ..) => ("interview", ("schema", schema.clone())),
    };
    let mut event =
        json!({ "type": "extension_ui_request", "requestId": ask, "method": method, "title": title });
    event[more.0] = more.1;
    if let Some(deadline) = deadline {
        event["timeout"] = deadline.limit_ms.into();
    }
    event
}

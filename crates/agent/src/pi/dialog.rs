//! The dialogs of pi's extensions as asks, and the answers as pi takes them.

use mainstay_model::{AskId, Question};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::rpc::{ExtensionRequest, dialog_answer};

/// A dialog that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialog {
    id: String,
    is_confirmation: bool,
}

/// A dialog, and what is asked in it.
pub(crate) struct OpenDialog {
    pub(crate) ask: AskId,
    pub(crate) dialog: Dialog,
    pub(crate) question: Question,
    pub(crate) timeout_ms: u64,
}

impl OpenDialog {
    /// What an extension asks, and how long it waits where it does not say; none where it asks nothing, or under a name that is none of
    /// pi's.
    pub(crate) fn of(request: &ExtensionRequest, waits_ms: u64) -> Option<Self> {
        let schema = match request.method.as_str() {
            "select" => json!({ "type": "string", "enum": request.options }),
            "confirm" => json!({ "type": "boolean" }),
            "input" => json!({ "type": "string" }),
            "editor" => match &request.prefill {
                Some(prefill) => json!({ "type": "string", "default": prefill }),
                None => json!({ "type": "string" }),
            },
            _ => return None,
        };
        let ask = AskId::from_uuid(Uuid::try_parse(&request.id).ok()?);
        let parts = [Some(&request.title), Some(&request.message), request.placeholder.as_ref()];
        let said: Vec<&str> = parts.into_iter().flatten().map(|part| part.trim()).collect();
        let said: Vec<&str> = said.into_iter().filter(|part| !part.is_empty()).collect();
        let prompt = if said.is_empty() { request.method.clone() } else { said.join("\n") };
        let dialog = Dialog { id: request.id.clone(), is_confirmation: request.method == "confirm" };
        let question = Question { schema, ..Question::text(prompt) };
        Some(Self { ask, dialog, question, timeout_ms: request.timeout.unwrap_or(waits_ms) })
    }
}

impl Dialog {
    /// The line that ends it with an answer.
    pub(crate) fn answered(&self, value: &Value) -> String {
        let answer = match (self.is_confirmation, value) {
            (true, value) => ("confirmed", json!(value.as_bool().unwrap_or_default())),
            (false, Value::String(text)) => ("value", json!(text)),
            (false, value) => ("value", json!(value.to_string())),
        };
        dialog_answer(&self.id, Map::from_iter([(answer.0.to_owned(), answer.1)]))
    }

    /// The line that ends it without one.
    pub(crate) fn cancelled(&self) -> String {
        cancelled(&self.id)
    }
}

/// The line that ends the dialog with this id without an answer.
pub(crate) fn cancelled(id: &str) -> String {
    dialog_answer(id, Map::from_iter([("cancelled".to_owned(), Value::Bool(true))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_waits_as_long_as_its_extension_says_and_else_as_the_settings_say() {
        let waits = |timeout: Value| {
            let request = json!({
                "id": "00000000-0000-0000-0000-000000000001", "method": "input", "title": "t", "timeout": timeout,
            });
            let request: ExtensionRequest = serde_json::from_value(request).unwrap();
            OpenDialog::of(&request, 45_000).unwrap().timeout_ms
        };
        assert_eq!([waits(json!(10)), waits(json!(null))], [10, 45_000]);
    }
}

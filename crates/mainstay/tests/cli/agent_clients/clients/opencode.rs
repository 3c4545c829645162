//! opencode, a client for many models.

use serde_json::json;

use super::{Client, Place, SERVER, Turn, mainstay};

pub(crate) struct Opencode;

impl Client for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn variable(&self) -> &'static str {
        "MAINSTAY_TEST_OPENCODE"
    }

    fn configure(&self, place: &Place) {
        let model = json!({
            "name": "m", "attachment": true, "tool_call": true, "limit": { "context": 200_000, "output": 8000 },
            "modalities": { "input": ["text", "image"], "output": ["text"] },
        });
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "local", "models": { "m": model },
            "options": { "baseURL": format!("{}/v1", place.model), "apiKey": "hidden" },
        });
        let server = json!({ "type": "local", "command": [mainstay(), "mcp"], "environment": place.environment, "enabled": true });
        let settings = json!({
            "autoupdate": false, "share": "disabled", "model": "local/m", "small_model": "local/m",
            "provider": { "local": provider }, "mcp": { SERVER: server },
        });
        place.write_json(".config/opencode/opencode.json", &settings);
    }

    fn arguments(&self, _: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        let mut arguments = vec!["run"];
        if turn == Turn::Resumed {
            arguments.push("--continue");
        }
        arguments.push(prompt);
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn environment(&self, _: &Place) -> Vec<(&'static str, String)> {
        ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"]
            .map(|variable| (variable, "1".to_owned()))
            .into()
    }
}

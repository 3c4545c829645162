//! qwen-code.

use serde_json::json;

use super::{Client, Deferral, Place, SERVER, Turn, mainstay};

pub(crate) struct Qwen;

impl Client for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn variable(&self) -> &'static str {
        "MAINSTAY_TEST_QWEN"
    }

    fn configure(&self, place: &Place) {
        let server = json!({ "command": mainstay(), "args": ["mcp"], "env": place.environment });
        let settings = json!({
            "security": { "auth": { "selectedType": "openai" } }, "general": { "enableAutoUpdate": false },
            "model": { "name": "m", "generationConfig": { "modalities": { "image": true } } },
            "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
            "mcpServers": { SERVER: server },
        });
        place.write_json(".qwen/settings.json", &settings);
    }

    fn arguments(&self, _: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        let mut arguments = vec!["--yolo", "--auth-type", "openai"];
        if turn == Turn::Resumed {
            arguments.push("--continue");
        }
        arguments.extend(["-p", prompt]);
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![
            ("OPENAI_BASE_URL", format!("{}/v1", place.model)),
            ("OPENAI_API_KEY", "hidden".to_owned()),
            ("OPENAI_MODEL", "m".to_owned()),
        ]
    }

    fn deferral(&self) -> Deferral {
        Deferral::Bridged("tool_search", "tool_call")
    }
}

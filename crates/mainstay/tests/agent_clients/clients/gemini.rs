//! The Gemini CLI: Google's.

use serde_json::json;

use super::{Client, Place, SERVER, Turn, mainstay};

pub(crate) struct Gemini;

impl Client for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn variable(&self) -> &'static str {
        "MAINSTAY_TEST_GEMINI"
    }

    fn configure(&self, place: &Place) {
        let server = json!({ "command": mainstay(), "args": ["mcp"], "env": place.environment });
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
            "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
            "mcpServers": { SERVER: server },
        });
        place.write_json(".gemini/settings.json", &settings);
    }

    fn arguments(&self, _: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        // A folder that is not trusted starts no servers; without `--yolo` no tool is offered.
        let mut arguments = vec!["--yolo", "--skip-trust", "-m", "gemini-2.5-pro"];
        if turn == Turn::Resumed {
            arguments.extend(["--resume", "latest"]);
        }
        arguments.extend(["-p", prompt]);
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![("GOOGLE_GEMINI_BASE_URL", place.model.clone()), ("GEMINI_API_KEY", "hidden".to_owned())]
    }
}

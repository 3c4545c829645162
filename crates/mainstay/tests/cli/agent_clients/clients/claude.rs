//! Claude Code, the client of Anthropic.

use serde_json::json;

use super::{Client, Deferral, Place, SERVER, Turn, servers};

pub(crate) struct Claude;

const SERVERS: &str = "servers.json";

impl Client for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn variable(&self) -> &'static str {
        "MAINSTAY_TEST_CLAUDE"
    }

    fn configure(&self, place: &Place) {
        place.write_json(SERVERS, &json!({ "mcpServers": servers(place) }));
    }

    fn arguments(&self, place: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["-p", prompt, "--output-format", "stream-json", "--verbose"].map(str::to_owned).into();
        arguments.extend(["--strict-mcp-config", "--allowedTools"].map(str::to_owned));
        arguments.push(format!("mcp__{SERVER}"));
        arguments.extend(["--mcp-config".to_owned(), place.file(SERVERS).display().to_string()]);
        if turn == Turn::Resumed {
            arguments.push("--continue".to_owned());
        }
        arguments
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![
            ("ANTHROPIC_BASE_URL", place.model.clone()),
            ("ANTHROPIC_API_KEY", "hidden".to_owned()),
            ("CLAUDE_CONFIG_DIR", place.file(".claude").display().to_string()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    }

    fn deferral(&self) -> Deferral {
        Deferral::Searched("ToolSearch")
    }
}

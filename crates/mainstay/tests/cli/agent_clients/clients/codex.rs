//! codex: OpenAI's. How its model reaches the tools of a server depends on the model: one that codex does not know is offered all of them, GPT-5.5
//! searches for them, and GPT-6 calls them from JavaScript.

use serde_json::json;

use super::{Client, Deferral, Place, SERVER, Turn, mainstay};

pub(crate) static CODEX: Codex = Codex { name: "codex", model: "m", deferral: Deferral::None };
pub(crate) static CODEX_GPT_5: Codex =
    Codex { name: "codex_gpt_5", model: "gpt-5.5", deferral: Deferral::Found("tool_search") };
pub(crate) static CODEX_GPT_6: Codex =
    Codex { name: "codex_gpt_6", model: "gpt-6.1-sol", deferral: Deferral::Scripted("exec") };

/// codex with a model.
pub(crate) struct Codex {
    name: &'static str,
    model: &'static str,
    deferral: Deferral,
}

impl Client for Codex {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        "MAINSTAY_TEST_CODEX"
    }

    fn configure(&self, place: &Place) {
        // A string of JSON is one of TOML too.
        let environment =
            place.environment.iter().map(|(name, value)| format!("{name} = {}\n", json!(value)));
        let settings = format!(
            r#"model = "{}"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "{}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.{SERVER}]
command = {}
args = ["mcp"]
# `codex exec` cancels what it would have to ask a person for.
default_tools_approval_mode = "approve"
[mcp_servers.{SERVER}.env]
{}"#,
            self.model,
            place.model,
            json!(mainstay()),
            environment.collect::<String>()
        );
        place.write(".codex/config.toml", &settings);
    }

    fn arguments(&self, _: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        let mut arguments = vec!["exec", "--skip-git-repo-check"];
        if turn == Turn::Resumed {
            arguments.extend(["resume", "--last"]);
        }
        arguments.push(prompt);
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![("CODEX_HOME", place.file(".codex").display().to_string()), ("MODEL_KEY", "hidden".to_owned())]
    }

    fn deferral(&self) -> Deferral {
        self.deferral
    }
}

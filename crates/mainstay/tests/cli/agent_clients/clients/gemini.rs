//! The Gemini CLI, which is Google's, and qwen-code, which was made from it: they are configured and called alike.

use serde_json::{Value, json};

use super::{Client, Deferral, Place, Turn, servers};

pub(crate) static GEMINI: Gemini = Gemini {
    name: "gemini",
    variable: "MAINSTAY_TEST_GEMINI",
    folder: ".gemini",
    authentication: "gemini-api-key",
    model: || json!({}),
    // A folder that is not trusted starts no servers.
    arguments: &["--skip-trust", "-m", "gemini-2.5-pro"],
    resumes: &["--resume", "latest"],
    environment: |model| {
        vec![("GOOGLE_GEMINI_BASE_URL", model.to_owned()), ("GEMINI_API_KEY", "hidden".to_owned())]
    },
    deferral: Deferral::None,
};

pub(crate) static QWEN: Gemini = Gemini {
    name: "qwen",
    variable: "MAINSTAY_TEST_QWEN",
    folder: ".qwen",
    authentication: "openai",
    model: || json!({ "name": "m", "generationConfig": { "modalities": { "image": true } } }),
    arguments: &["--auth-type", "openai"],
    resumes: &["--continue"],
    environment: |model| {
        vec![
            ("OPENAI_BASE_URL", format!("{model}/v1")),
            ("OPENAI_API_KEY", "hidden".to_owned()),
            ("OPENAI_MODEL", "m".to_owned()),
        ]
    },
    deferral: Deferral::Bridged("tool_search", "tool_call"),
};

/// One of the two.
pub(crate) struct Gemini {
    name: &'static str,
    variable: &'static str,
    /// Where its settings are, in its user's home.
    folder: &'static str,
    /// How it proves to its model who it is.
    authentication: &'static str,
    /// What its settings say of the model.
    model: fn() -> Value,
    /// What it is given with each prompt.
    arguments: &'static [&'static str],
    /// What it is given to go on with the newest conversation.
    resumes: &'static [&'static str],
    /// What it finds in its environment, by the address of the model.
    environment: fn(&str) -> Vec<(&'static str, String)>,
    deferral: Deferral,
}

impl Client for Gemini {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn configure(&self, place: &Place) {
        let settings = json!({
            "security": { "auth": { "selectedType": self.authentication } },
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
            "model": (self.model)(),
            "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
            "mcpServers": servers(place),
        });
        place.write_json(&format!("{}/settings.json", self.folder), &settings);
    }

    fn arguments(&self, _: &Place, turn: Turn, prompt: &str) -> Vec<String> {
        let resumes = if turn == Turn::Resumed { self.resumes } else { &[] };
        // Without `--yolo` no tool is offered.
        let arguments = [&["--yolo"], self.arguments, resumes, &["-p", prompt]].concat();
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        (self.environment)(&place.model)
    }

    fn deferral(&self) -> Deferral {
        self.deferral
    }
}

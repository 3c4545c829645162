//! Guidance: what people are asked where somebody has an agent pause. Source: ARCP draft 01, 10.5.

use serde_json::json;

use crate::ask::Question;

/// The title of the schema of such a question.
const TITLE: &str = "guidance";
/// What is asked where whoever has the agent pause says nothing else.
const PROMPT: &str = "The agent pauses. How is it to go on?";

impl Question {
    /// How a paused agent is to go on. The answer is said to the agent; an empty one lets it go on as it was.
    pub fn guidance(prompt: Option<&str>) -> Self {
        let prompt = prompt.map(str::trim).filter(|prompt| !prompt.is_empty()).unwrap_or(PROMPT);
        Self { schema: json!({ "title": TITLE, "type": "string" }), ..Self::text(prompt) }
    }

    /// Whether it asks how a paused agent is to go on.
    pub fn is_guidance(&self) -> bool {
        self.schema["title"] == TITLE
    }
}

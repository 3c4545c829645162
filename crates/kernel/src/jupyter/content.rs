//! What messages say, as far as it matters here. What a kernel leaves out is taken as its default, since many do.

use std::collections::BTreeMap;

use mainstay_model::Question;
use mainstay_model::ask::InputRead;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The content of a `stream` message.
#[derive(Debug, Deserialize)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) text: String,
}

/// The content of `display_data`, `update_display_data` and `execute_result`.
#[derive(Debug, Deserialize)]
pub(super) struct DisplayData {
    #[serde(default)]
    pub(super) data: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) metadata: Map<String, Value>,
    #[serde(default)]
    pub(super) transient: Transient,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Transient {
    pub(super) display_id: Option<String>,
}

/// The content of a `status` message.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) execution_state: String,
}

/// The content of a `clear_output` message.
#[derive(Debug, Deserialize)]
pub(super) struct ClearOutput {
    #[serde(default)]
    pub(super) wait: bool,
}

/// The content of a `comm_info_reply` message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommInfoReply {
    pub(super) comms: BTreeMap<String, CommInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommInfo {
    pub(super) target_name: String,
}

/// The content of an `input_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct InputRequest {
    #[serde(default)]
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) password: bool,
}

/// What marks the prompt of a helper that asks for a part of the input, and stands in front of the part's name.
const READ: char = '\u{4}';
/// What is asked where code says nothing.
const UNSAID: &str = "Input";
const UNSAID_REST: &str = "the code reads all of its input";

impl InputRequest {
    /// What a helper reads for code that reads its input without `input`; none where code asks by itself.
    fn helper_read(&self) -> Option<InputRead> {
        match self.prompt.strip_prefix(READ)? {
            "line" => Some(InputRead::Line),
            "lines" => Some(InputRead::Lines),
            "rest" => Some(InputRead::Rest),
            _ => None,
        }
    }

    /// The question that it comes to, where code has begun to print a line.
    pub(super) fn question(self, begun: Option<String>) -> Question {
        let read = self.helper_read();
        let unsaid = if read == Some(InputRead::Rest) { UNSAID_REST } else { UNSAID };
        let said = Some(self.prompt).filter(|prompt| read.is_none() && !prompt.trim().is_empty());
        let prompt = said.or(begun).unwrap_or_else(|| unsaid.to_owned());
        let mut schema = json!({ "type": "string", "title": read.map_or("a line of the input", InputRead::title_with_bytes) });
        if self.password {
            schema["writeOnly"] = true.into();
        }
        Question { schema, ..Question::text(prompt) }
    }
}

/// The content of an `execute_reply` message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExecuteReply {
    pub(super) status: String,
    pub(super) ename: Option<String>,
    pub(super) evalue: Option<String>,
    pub(super) traceback: Vec<String>,
    pub(super) payload: Vec<Payload>,
}

/// What a kernel wants its front end to do.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    #[serde(default)]
    pub(super) source: String,
    /// Of `ask_exit`: whether the kernel stays all the same. Who calls `exit(4)` of IPython says so, and means an exit code.
    #[serde(default)]
    pub(super) keepkernel: Value,
    #[serde(default)]
    pub(super) data: BTreeMap<String, Value>,
    /// What Mainstay's own helper tells of the code.
    #[serde(default)]
    pub(super) report: Value,
}

/// The content of a `complete_reply` message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompleteReply {
    pub(super) matches: Vec<String>,
    pub(super) cursor_start: usize,
    pub(super) metadata: CompletionMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionMetadata {
    /// What IPython says of its matches.
    #[serde(rename = "_jupyter_types_experimental")]
    pub(super) types: Vec<MatchType>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatchType {
    pub(super) text: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) signature: Option<String>,
}

/// The content of an `inspect_reply` message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InspectReply {
    pub(super) found: bool,
    pub(super) data: BTreeMap<String, Value>,
}

/// The content of an `is_complete_reply` message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IsCompleteReply {
    pub(super) status: String,
    pub(super) indent: String,
}

/// The content of a `kernel_info_reply` message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KernelInfo {
    pub(super) implementation: String,
    pub(super) implementation_version: String,
    pub(super) language_info: LanguageInfo,
    pub(super) supported_features: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LanguageInfo {
    pub(super) name: String,
    pub(super) version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(prompt: &str, password: bool, begun: Option<&str>) -> (String, Option<InputRead>, bool) {
        let request = InputRequest { prompt: prompt.to_owned(), password };
        let question = request.question(begun.map(str::to_owned));
        let (read, is_secret) = (question.input_read(), question.is_secret());
        (question.prompt, read, is_secret)
    }

    #[test]
    fn code_that_asks_reads_a_line_and_a_helper_what_it_says() {
        for (asked, expected) in [
            (question("Name? ", false, Some("begun")), ("Name? ", InputRead::Line, false)),
            (question(" ", false, Some("begun")), ("begun", InputRead::Line, false)),
            (question("Key: ", true, None), ("Key: ", InputRead::Line, true)),
            (question("\u{4}line", false, None), ("Input", InputRead::Line, false)),
            (question("\u{4}lines", false, Some("begun")), ("begun", InputRead::Lines, false)),
            (question("\u{4}rest", false, None), (UNSAID_REST, InputRead::Rest, false)),
            (question("\u{4}", false, None), ("\u{4}", InputRead::Line, false)),
        ] {
            assert_eq!((asked.0.as_str(), asked.1, asked.2), (expected.0, Some(expected.1), expected.2));
        }
    }
}

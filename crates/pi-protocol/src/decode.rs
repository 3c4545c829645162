//! From a frame to a command: what is wrong with it is said in pi-server's words, all of it at once. Source: protocols/pi.md, "Limits",
//! "Error strings". Unknown fields are ignored.

use mainstay_model::agent::Setting;
use mainstay_model::{CommandId, IdempotencyKey, Prompt, Version};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::command::{AbortTarget, Body, HistoryQuery, PiCommand, Read, Streaming, images, thinking};

/// Characters of an id, a key, a request and a session's id.
pub(super) const NAME: usize = 256;
/// Characters of a prompt.
pub(super) const PROMPT: usize = 200_000;
/// Characters of a line for a shell.
pub(super) const SHELL: usize = 20_000;
/// Characters of a path.
pub(super) const PATH: usize = 4096;
/// Commands that one may depend on.
pub(super) const DEPENDENCIES: usize = 32;
/// Entries of a history at most.
pub(super) const HISTORY: u64 = 500;
/// How the server's own ids begin.
pub(super) const RESERVED: &str = "anon:";

/// What is wrong with a command, and what is known of it all the same, for the answer.
#[derive(Debug, PartialEq)]
pub(super) struct Invalid {
    pub(super) id: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) errors: String,
}

/// Decodes a frame into a command.
pub(super) fn decode(frame: &Value) -> Result<PiCommand, Invalid> {
    let nothing = Map::new();
    let fields = match frame {
        Value::Object(fields) => fields,
        Value::Array(_) => &nothing,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let errors = "root: Command must be an object".to_owned();
            return Err(Invalid { id: None, kind: None, errors });
        }
    };
    let mut check = Check { fields, errors: Vec::new() };
    let command = check.command();
    let said = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    match command {
        Some(command) if check.errors.is_empty() => Ok(command),
        Some(_) | None => {
            Err(Invalid { id: said("id"), kind: said("type"), errors: check.errors.join("; ") })
        }
    }
}

/// A fingerprint of what a command says: its fields in order, without what only names it.
fn fingerprint(fields: &Map<String, Value>) -> String {
    let said: std::collections::BTreeMap<&String, String> = fields
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "id" | "idempotencyKey"))
        .map(|(name, value)| (name, sorted(value).to_string()))
        .collect();
    let digest = Sha256::digest(serde_json::to_vec(&said).unwrap_or_default());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same value with the fields of its objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

struct Check<'a> {
    fields: &'a Map<String, Value>,
    errors: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, field: &str, message: impl std::fmt::Display) {
        self.errors.push(format!("{field}: {message}"));
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A text that must be there and not be blank.
    fn is_blank(&self, name: &str) -> bool {
        self.text(name).is_none_or(|text| text.trim().is_empty())
    }

    fn command(&mut self) -> Option<PiCommand> {
        let kind = self.text("type").filter(|kind| !kind.is_empty()).map(str::to_owned);
        if kind.is_none() {
            self.wrong("type", "Command must have a string 'type' field");
        }
        let id = self.id();
        let key = self.key();
        let depends_on = self.dependencies();
        let if_version = self.version();
        let of = kind.as_deref().map(Scope::of);
        if let (Some(Scope::Unknown), Some(kind)) = (of, &kind) {
            self.wrong("type", format!("Unknown command type '{kind}'"));
        }
        let session = self.session(of, kind.as_deref());
        if self.has("ifSessionVersion")
            && !matches!(of, Some(Scope::Session))
            && kind.as_deref() != Some("delete_session")
        {
            self.wrong("ifSessionVersion", "Only supported for session-targeted commands");
        }
        let kind = kind?;
        let body = self.body(&kind)?;
        let fingerprint = fingerprint(self.fields);
        Some(PiCommand { id, kind, depends_on, if_version, key, session, body, fingerprint })
    }

    fn id(&mut self) -> Option<CommandId> {
        if !self.has("id") {
            return None;
        }
        if self.is_blank("id") {
            self.wrong("id", "Must be a non-empty string if provided");
            return None;
        }
        let id = self.text("id").unwrap_or_default().to_owned();
        if id.chars().count() > NAME {
            self.wrong("id", format!("Too long (max {NAME} chars)"));
        } else if id.starts_with(RESERVED) {
            self.wrong("id", format!("Cannot use reserved prefix '{RESERVED}'"));
        }
        let named = CommandId::new(&id).ok();
        if named.is_none() && self.errors.is_empty() {
            self.wrong("id", no_name(&id));
        }
        named
    }

    fn key(&mut self) -> Option<IdempotencyKey> {
        if !self.has("idempotencyKey") {
            return None;
        }
        if self.is_blank("idempotencyKey") {
            self.wrong("idempotencyKey", "Must be a non-empty string if provided");
            return None;
        }
        let key = self.text("idempotencyKey").unwrap_or_default().to_owned();
        if key.chars().count() > NAME {
            self.wrong("idempotencyKey", format!("Too long (max {NAME} chars)"));
            return None;
        }
        let named = IdempotencyKey::new(&key).ok();
        if named.is_none() {
            self.wrong("idempotencyKey", no_name(&key));
        }
        named
    }

    fn dependencies(&mut self) -> Vec<CommandId> {
        let Some(given) = self.fields.get("dependsOn") else { return Vec::new() };
        let Value::Array(given) = given else {
            self.wrong("dependsOn", "Must be an array of command IDs");
            return Vec::new();
        };
        if given.len() > DEPENDENCIES {
            self.wrong("dependsOn", format!("Too many dependencies (max {DEPENDENCIES})"));
        }
        let mut ids = Vec::new();
        for (index, dependency) in given.iter().enumerate() {
            let named = dependency.as_str().filter(|name| !name.trim().is_empty());
            match named.and_then(|name| CommandId::new(name).ok()) {
                Some(id) => ids.push(id),
                None => self.wrong(&format!("dependsOn[{index}]"), "Must be a non-empty command ID string"),
            }
        }
        if !given.is_empty() && self.text("id").is_none() {
            self.wrong("id", "Required when dependsOn is provided");
        }
        ids
    }

    fn version(&mut self) -> Option<Version> {
        let given = self.fields.get("ifSessionVersion")?;
        let version = given.as_u64().map(Version);
        if version.is_none() {
            self.wrong("ifSessionVersion", "Must be a non-negative integer");
        }
        version
    }

    fn session(&mut self, of: Option<Scope>, kind: Option<&str>) -> Option<String> {
        if of == Some(Scope::Session) && self.is_blank("sessionId") {
            self.wrong("sessionId", "Session commands must have a non-empty string 'sessionId'");
        }
        if matches!(kind, Some("delete_session" | "switch_session")) && self.is_blank("sessionId") {
            self.wrong("sessionId", "Required non-empty string");
        }
        let is_given_one = matches!(kind, Some("create_session" | "load_session"));
        if is_given_one && self.has("sessionId") && self.is_blank("sessionId") {
            self.wrong("sessionId", "Must be a non-empty string if provided");
        }
        let session = self.text("sessionId")?.to_owned();
        let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if is_given_one && !session.trim().is_empty() {
            if session.chars().count() > NAME {
                self.wrong("sessionId", format!("Too long (max {NAME} chars)"));
            } else if !session.chars().all(is_known) {
                self.wrong(
                    "sessionId",
                    "Must contain only alphanumeric characters, dots, underscores, and dashes",
                );
            }
        }
        Some(session)
    }

    fn body(&mut self, kind: &str) -> Option<Body> {
        Some(match kind {
            "list_sessions" => Body::ListSessions,
            "create_session" => {
                Body::CreateSession { cwd: self.optional_text("cwd", "Must be a string if provided") }
            }
            "delete_session" => Body::DeleteSession,
            "switch_session" => {
                let after = self.fields.get("afterSeq");
                if after.is_some_and(|after| !after.is_u64()) {
                    self.wrong("afterSeq", "Must be a non-negative integer");
                }
                let is_cumulative = self.fields.get("cumulative");
                if is_cumulative.is_some_and(|is_cumulative| !is_cumulative.is_boolean()) {
                    self.wrong("cumulative", "Must be a boolean");
                }
                Body::SwitchSession {
                    after: after.and_then(Value::as_u64),
                    is_cumulative: is_cumulative.and_then(Value::as_bool).unwrap_or_default(),
                }
            }
            "get_metrics" => Body::GetMetrics,
            "health_check" => Body::HealthCheck,
            "get_startup_recovery" => Body::GetStartupRecovery,
            "get_command_history" => Body::GetCommandHistory(self.history()),
            "list_stored_sessions" => Body::ListStoredSessions,
            "load_session" => Body::LoadSession { path: self.path("sessionPath")? },
            "prompt" => {
                let streaming = match self.text("streamingBehavior") {
                    Some("steer") => Some(Streaming::Steer),
                    Some("followUp") => Some(Streaming::FollowUp),
                    Some(_) => {
                        self.wrong("streamingBehavior", "Must be 'steer' or 'followUp'");
                        None
                    }
                    None => None,
                };
                Body::Prompt { prompt: self.prompt()?, streaming }
            }
            "steer" => Body::Steer(self.prompt()?),
            "follow_up" => Body::FollowUp(self.prompt()?),
            "abort" => Body::Abort(AbortTarget::Turn),
            "abort_compaction" => Body::Abort(AbortTarget::Compaction),
            "abort_retry" => Body::Abort(AbortTarget::Retry),
            "abort_bash" => Body::Abort(AbortTarget::Bash),
            "get_state" => Body::Read(Read::State),
            "get_messages" => Body::Read(Read::Messages),
            "get_available_models" => Body::Read(Read::AvailableModels),
            "get_commands" => Body::Read(Read::Commands),
            "get_skills" => Body::Read(Read::Skills),
            "get_tools" => Body::Read(Read::Tools),
            "list_session_files" => Body::Read(Read::SessionFiles),
            "get_session_stats" => Body::Read(Read::Stats),
            "get_fork_messages" => Body::Read(Read::ForkMessages),
            "get_tree" => Body::Read(Read::Tree),
            "get_last_assistant_text" => Body::Read(Read::LastAssistantText),
            "get_context_usage" => Body::Read(Read::ContextUsage),
            "set_model" => {
                let (provider, id) = (self.required("provider"), self.required("modelId"));
                Body::Set(Setting::Model { provider: provider?, id: id? })
            }
            "cycle_model" => {
                let direction = self.fields.get("direction");
                let is_backward = direction.and_then(Value::as_str) == Some("backward");
                if direction
                    .is_some_and(|direction| !matches!(direction.as_str(), Some("forward" | "backward")))
                {
                    self.wrong("direction", "Must be 'forward' or 'backward'");
                }
                Body::Set(Setting::NextModel { is_backward })
            }
            "set_thinking_level" => {
                let level = self.text("level").and_then(thinking);
                if level.is_none() {
                    self.wrong("level", "Must be one of: off, minimal, low, medium, high, xhigh");
                }
                Body::Set(Setting::Thinking { level: level? })
            }
            "cycle_thinking_level" => Body::Set(Setting::NextThinking),
            "set_auto_compaction" => Body::Set(Setting::AutoCompaction { enabled: self.flag("enabled")? }),
            "set_auto_retry" => Body::Set(Setting::AutoRetry { enabled: self.flag("enabled")? }),
            "compact" => Body::Compact {
                instructions: self.optional_text("customInstructions", "Must be a string if provided"),
            },
            "bash" => {
                let line = self.required("command")?;
                if line.chars().count() > SHELL {
                    self.wrong("command", format!("Too long (max {SHELL} chars)"));
                }
                let is_private = self.fields.get("excludeFromContext").and_then(Value::as_bool);
                Body::Bash { line, is_private: is_private.unwrap_or_default() }
            }
            "set_session_name" => {
                let name = self.required("name")?;
                if name.chars().count() > NAME {
                    self.wrong("name", format!("Too long (max {NAME} chars)"));
                } else if name.chars().any(char::is_control) {
                    self.wrong("name", "Must not contain control characters");
                }
                Body::SetSessionName { name }
            }
            "export_html" => {
                Body::ExportHtml { path: self.optional_text("outputPath", "Must be a string if provided") }
            }
            "new_session" => Body::NewSession,
            "switch_session_file" => Body::SwitchSessionFile { path: self.path("sessionPath")? },
            "fork" => Body::Fork { entry: self.required("entryId")? },
            "navigate_tree" => {
                let target = self.required("targetId")?;
                Body::NavigateTree { target, label: self.navigation_label() }
            }
            "extension_ui_response" => self.answer()?,
            _ => return None,
        })
    }

    fn required(&mut self, name: &str) -> Option<String> {
        let text = self.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        if text.is_none() {
            self.wrong(name, "Required string");
        }
        text
    }

    fn optional_text(&mut self, name: &str, otherwise: &str) -> Option<String> {
        let given = self.fields.get(name)?;
        let text = given.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(name, otherwise);
        }
        text
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = self.fields.get(name).and_then(Value::as_bool);
        if flag.is_none() {
            self.wrong(name, "Required boolean");
        }
        flag
    }

    fn prompt(&mut self) -> Option<Prompt> {
        let text = self.required("message")?;
        if text.chars().count() > PROMPT {
            self.wrong("message", format!("Too long (max {PROMPT} chars)"));
        }
        let images = images(self.fields.get("images"));
        if images.is_none() {
            self.wrong("images", "Must be an array of images with 'data' and 'mimeType'");
        }
        Some(Prompt { text, images: images? })
    }

    fn path(&mut self, name: &str) -> Option<String> {
        let path = self.required(name)?;
        if path.chars().count() > PATH {
            self.wrong(name, format!("{name} too long (max {PATH} chars)"));
        } else if path.contains("..") || path.starts_with('~') || path.contains('\0') {
            self.wrong(name, format!("{name} contains potentially dangerous path components"));
        }
        Some(path)
    }

    fn history(&mut self) -> HistoryQuery {
        for name in ["sessionIdFilter", "commandId"] {
            if self.has(name) && self.is_blank(name) {
                self.wrong(name, "Must be a non-empty string if provided");
            }
        }
        if self.text("commandId").is_some_and(|id| id.chars().count() > NAME) {
            self.wrong("commandId", format!("Too long (max {NAME} chars)"));
        }
        let mut moment = |name: &str| {
            let given = self.fields.get(name)?;
            let moment = given.as_u64();
            if moment.is_none() {
                self.wrong(name, "Must be a non-negative integer timestamp");
            }
            moment
        };
        let (from, to) = (moment("fromTimestamp"), moment("toTimestamp"));
        if matches!((from, to), (Some(from), Some(to)) if from > to) {
            self.wrong("fromTimestamp", "Must be less than or equal to toTimestamp");
        }
        let limit = self.fields.get("limit");
        match limit.map(|limit| (limit.as_i64(), limit.as_u64())) {
            Some((None, None)) => self.wrong("limit", "Must be an integer if provided"),
            Some((_, limit)) if !limit.is_some_and(|limit| (1..=HISTORY).contains(&limit)) => {
                self.wrong("limit", format!("Must be between 1 and {HISTORY}"));
            }
            Some(_) | None => {}
        }
        let text = |name: &str| self.text(name).map(str::to_owned);
        let (session, command) = (text("sessionIdFilter"), text("commandId"));
        HistoryQuery { session, command, from, to, limit: limit.and_then(Value::as_u64) }
    }

    fn navigation_label(&mut self) -> Option<String> {
        let options = self.fields.get("options")?;
        let Value::Object(options) = options else {
            self.wrong("options", "Must be an object if provided");
            return None;
        };
        for name in ["summarize", "replaceInstructions"] {
            if options.get(name).is_some_and(|value| !value.is_boolean()) {
                self.wrong(&format!("options.{name}"), "Must be a boolean if provided");
            }
        }
        for name in ["customInstructions", "label"] {
            if options.get(name).is_some_and(|value| !value.is_string()) {
                self.wrong(&format!("options.{name}"), "Must be a string if provided");
            }
        }
        options.get("label").and_then(Value::as_str).map(str::to_owned)
    }

    fn answer(&mut self) -> Option<Body> {
        const METHODS: [&str; 6] = ["select", "confirm", "input", "editor", "interview", "cancelled"];
        let request = self.required("requestId");
        if let Some(request) = &request {
            if request.chars().count() > NAME {
                self.wrong("requestId", format!("Too long (max {NAME} chars)"));
            }
            let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
            if !request.chars().all(is_known) {
                let wanted =
                    "Must contain only alphanumeric characters, colons, dots, underscores, and dashes";
                self.wrong("requestId", wanted);
            }
        }
        let response = self.fields.get("response").filter(|response| response.is_object()).cloned();
        match &response {
            None => self.wrong("response", "Required object"),
            Some(response) => {
                let method = response.get("method").and_then(Value::as_str);
                if !method.is_some_and(|method| METHODS.contains(&method)) {
                    self.wrong("response.method", format!("Must be one of: {}", METHODS.join(", ")));
                }
            }
        }
        Some(Body::Answer { request: request?, response: response? })
    }
}

/// Why what upstream would take as the name of a command is none.
fn no_name(text: &str) -> String {
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "Must not contain white space or control characters".to_owned()
    } else {
        format!("Too long (max {} bytes)", CommandId::MAX_BYTES)
    }
}

/// What a kind of command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Server,
    Session,
    Unknown,
}

impl Scope {
    fn of(kind: &str) -> Self {
        match kind {
            "list_sessions"
            | "create_session"
            | "delete_session"
            | "switch_session"
            | "get_metrics"
            | "health_check"
            | "get_startup_recovery"
            | "get_command_history"
            | "list_stored_sessions"
            | "load_session" => Self::Server,
            "extension_ui_response"
            | "get_available_models"
            | "get_commands"
            | "get_skills"
            | "get_tools"
            | "list_session_files"
            | "prompt"
            | "steer"
            | "follow_up"
            | "abort"
            | "get_state"
            | "get_messages"
            | "set_model"
            | "cycle_model"
            | "set_thinking_level"
            | "cycle_thinking_level"
            | "compact"
            | "abort_compaction"
            | "set_auto_compaction"
            | "set_auto_retry"
            | "abort_retry"
            | "bash"
            | "abort_bash"
            | "get_session_stats"
            | "set_session_name"
            | "export_html"
            | "new_session"
            | "switch_session_file"
            | "fork"
            | "get_fork_messages"
            | "get_tree"
            | "navigate_tree"
            | "get_last_assistant_text"
            | "get_context_usage" => Self::Session,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuzz_invariants;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn refusal(frame: Value) -> String {
        decode(&frame).unwrap_err().errors
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_in_the_words_of_upstream() {
        let long = "x".repeat(257);
        let refused = [
            json!(null),
            json!("list_sessions"),
            json!([]),
            json!({}),
            json!({ "type": "dance" }),
            json!({ "id": 7, "type": "prompt" }),
            json!({ "id": "anon:1", "type": "get_state", "sessionId": "s" }),
            json!({ "id": long, "idempotencyKey": " ", "type": "list_sessions" }),
            json!({ "id": "é".repeat(200), "idempotencyKey": "é".repeat(200), "type": "list_sessions" }),
            json!({ "id": "a b", "type": "list_sessions" }),
            json!({ "type": "abort", "sessionId": "s", "dependsOn": ["a", ""] }),
            json!({ "type": "list_sessions", "ifSessionVersion": 1.5 }),
            json!({ "type": "set_thinking_level", "sessionId": "s", "level": "vast" }),
            json!({ "type": "extension_ui_response", "sessionId": "s", "requestId": "a b", "response": {} }),
            json!({ "type": "get_command_history", "limit": 501, "fromTimestamp": 5, "toTimestamp": 4 }),
            json!({ "type": "load_session", "sessionPath": "/a/../b.jsonl" }),
            json!({ "type": "create_session", "sessionId": "a b", "cwd": 3 }),
            json!({ "type": "set_session_name", "sessionId": "s", "name": "a\nb" }),
        ];
        insta::assert_snapshot!(refused.map(refusal).join("\n"), @"
        root: Command must be an object
        root: Command must be an object
        type: Command must have a string 'type' field
        type: Command must have a string 'type' field
        type: Unknown command type 'dance'
        id: Must be a non-empty string if provided; sessionId: Session commands must have a non-empty string 'sessionId'; message: Required string
        id: Cannot use reserved prefix 'anon:'
        id: Too long (max 256 chars); idempotencyKey: Must be a non-empty string if provided
        id: Too long (max 256 bytes); idempotencyKey: Too long (max 256 bytes)
        id: Must not contain white space or control characters
        dependsOn[1]: Must be a non-empty command ID string; id: Required when dependsOn is provided
        ifSessionVersion: Must be a non-negative integer; ifSessionVersion: Only supported for session-targeted commands
        level: Must be one of: off, minimal, low, medium, high, xhigh
        requestId: Must contain only alphanumeric characters, colons, dots, underscores, and dashes; response.method: Must be one of: select, confirm, input, editor, interview, cancelled
        fromTimestamp: Must be less than or equal to toTimestamp; limit: Must be between 1 and 500
        sessionPath: sessionPath contains potentially dangerous path components
        sessionId: Must contain only alphanumeric characters, dots, underscores, and dashes; cwd: Must be a string if provided
        name: Must not contain control characters
        ");
    }

    #[test]
    fn what_upstream_refused_and_pi_knows_is_taken() {
        for level in ["off", "minimal", "none", "xhigh"] {
            let frame = json!({ "type": "set_thinking_level", "sessionId": "a.b", "level": level });
            assert!(decode(&frame).is_ok(), "{level}");
        }
    }

    #[test]
    fn what_only_names_a_command_does_not_change_what_it_says() {
        let said = |frame: Value| decode(&frame).unwrap().fingerprint;
        let plain = said(json!({ "type": "abort", "sessionId": "s", "x": { "b": 1, "a": 2 } }));
        let named = said(
            json!({ "x": { "a": 2, "b": 1 }, "id": "1", "idempotencyKey": "k", "sessionId": "s", "type": "abort" }),
        );
        assert_eq!(plain, named);
        assert_ne!(plain, said(json!({ "type": "abort", "sessionId": "t" })));
    }

    proptest! {
        #[test]
        fn what_is_promised_of_every_frame_holds(
            kind in prop_oneof![Just("prompt"), Just("bash"), Just("fork"), Just("get_command_history"),
                Just("extension_ui_response"), Just("navigate_tree"), Just("create_session"), Just("x")],
            fields in proptest::collection::btree_map(
                prop_oneof![Just("id"), Just("sessionId"), Just("message"), Just("dependsOn"), Just("limit"),
                    Just("options"), Just("response"), Just("requestId"), Just("images"), Just("entryId")],
                prop_oneof![Just(json!(null)), Just(json!("a")), Just(json!(3)), Just(json!([{}])), Just(json!({ "method": 1 })),
                    Just(json!("é".repeat(256))), Just(json!("a".repeat(257)))],
                0..6,
            ),
        ) {
            let mut frame: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            frame.insert("type".to_owned(), json!(kind));
            fuzz_invariants::check(&Value::Object(frame));
        }
    }
}

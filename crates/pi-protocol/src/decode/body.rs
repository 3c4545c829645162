//! What a command of each type says besides its header.

use mainstay_model::Prompt;
use mainstay_model::agent::{Setting, ThinkingLevel};
use serde_json::Value;

use super::{Check, HISTORY, NAME, PROMPT, SHELL};
use crate::command::{AbortTarget, Body, HistoryQuery, Read, Streaming, images, thinking};

impl Check<'_> {
    pub(super) fn body(&mut self, kind: &str) -> Option<Body> {
        Some(match kind {
            "list_sessions" => Body::ListSessions,
            "create_session" => {
                Body::CreateSession { cwd: self.optional_text("cwd", "Must be a string if provided") }
            }
            "delete_session" => Body::DeleteSession,
            "switch_session" => self.switch_session(),
            "get_metrics" => Body::GetMetrics,
            "health_check" => Body::HealthCheck,
            "get_startup_recovery" => Body::GetStartupRecovery,
            "get_command_history" => Body::GetCommandHistory(self.history()),
            "list_stored_sessions" => Body::ListStoredSessions,
            "load_session" => Body::LoadSession { path: self.path("sessionPath")? },
            "prompt" => {
                let streaming = self.streaming();
                Body::Prompt { prompt: self.prompt()?, streaming }
            }
            "steer" => Body::Steer(self.prompt()?),
            "follow_up" => Body::FollowUp(self.prompt()?),
            "abort" => Body::Abort(AbortTarget::Turn),
            "abort_compaction" => Body::Abort(AbortTarget::Compaction),
            "abort_retry" => Body::Abort(AbortTarget::Retry),
            "abort_bash" => Body::Abort(AbortTarget::Bash),
            "set_model" => {
                let (provider, id) = (self.required("provider"), self.required("modelId"));
                Body::Set(Setting::Model { provider: provider?, id: id? })
            }
            "cycle_model" => Body::Set(Setting::NextModel { is_backward: self.is_backward() }),
            "set_thinking_level" => Body::Set(Setting::Thinking { level: self.thinking_level()? }),
            "cycle_thinking_level" => Body::Set(Setting::NextThinking),
            "set_auto_compaction" => Body::Set(Setting::AutoCompaction { enabled: self.flag("enabled")? }),
            "set_auto_retry" => Body::Set(Setting::AutoRetry { enabled: self.flag("enabled")? }),
            "compact" => Body::Compact {
                instructions: self.optional_text("customInstructions", "Must be a string if provided"),
            },
            "bash" => self.bash()?,
            "set_session_name" => Body::SetSessionName { name: self.session_name()? },
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
            kind => Body::Read(read_of(kind)?),
        })
    }

    fn switch_session(&mut self) -> Body {
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

    fn streaming(&mut self) -> Option<Streaming> {
        match self.text("streamingBehavior")? {
            "steer" => Some(Streaming::Steer),
            "followUp" => Some(Streaming::FollowUp),
            _ => {
                self.wrong("streamingBehavior", "Must be 'steer' or 'followUp'");
                None
            }
        }
    }

    fn is_backward(&mut self) -> bool {
        let direction = self.fields.get("direction");
        let is_backward = direction.and_then(Value::as_str) == Some("backward");
        if direction.is_some_and(|direction| !matches!(direction.as_str(), Some("forward" | "backward"))) {
            self.wrong("direction", "Must be 'forward' or 'backward'");
        }
        is_backward
    }

    fn thinking_level(&mut self) -> Option<ThinkingLevel> {
        let level = self.text("level").and_then(thinking);
        if level.is_none() {
            self.wrong("level", "Must be one of: off, minimal, low, medium, high, xhigh");
        }
        level
    }

    fn bash(&mut self) -> Option<Body> {
        let line = self.required("command")?;
        if line.chars().count() > SHELL {
            self.wrong("command", format!("Too long (max {SHELL} chars)"));
        }
        let is_private = self.fields.get("excludeFromContext").and_then(Value::as_bool);
        Some(Body::Bash { line, is_private: is_private.unwrap_or_default() })
    }

    fn session_name(&mut self) -> Option<String> {
        let name = self.required("name")?;
        if name.chars().count() > NAME {
            self.wrong("name", format!("Too long (max {NAME} chars)"));
        } else if name.chars().any(char::is_control) {
            self.wrong("name", "Must not contain control characters");
        }
        Some(name)
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

/// Returns what a command of this type reads; none where it reads nothing of a session.
fn read_of(kind: &str) -> Option<Read> {
    Some(match kind {
        "get_state" => Read::State,
        "get_messages" => Read::Messages,
        "get_available_models" => Read::AvailableModels,
        "get_commands" => Read::Commands,
        "get_skills" => Read::Skills,
        "get_tools" => Read::Tools,
        "list_session_files" => Read::SessionFiles,
        "get_session_stats" => Read::Stats,
        "get_fork_messages" => Read::ForkMessages,
        "get_tree" => Read::Tree,
        "get_last_assistant_text" => Read::LastAssistantText,
        "get_context_usage" => Read::ContextUsage,
        _ => return None,
    })
}

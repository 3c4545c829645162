//! What every command may say: its id, its key, what it depends on, and the session that it is for.

use mainstay_model::{CommandId, IdempotencyKey, Version};
use serde_json::Value;

use super::scope::Scope;
use super::{Check, DEPENDENCIES, NAME, RESERVED};

impl Check<'_> {
    pub(super) fn id(&mut self) -> Option<CommandId> {
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

    pub(super) fn key(&mut self) -> Option<IdempotencyKey> {
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

    pub(super) fn dependencies(&mut self) -> Vec<CommandId> {
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

    pub(super) fn version(&mut self) -> Option<Version> {
        let given = self.fields.get("ifSessionVersion")?;
        let version = given.as_u64().map(Version);
        if version.is_none() {
            self.wrong("ifSessionVersion", "Must be a non-negative integer");
        }
        version
    }

    pub(super) fn session(&mut self, of: Option<Scope>, kind: Option<&str>) -> Option<String> {
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
}

/// Why what upstream would take as the name of a command is none.
fn no_name(text: &str) -> String {
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "Must not contain white space or control characters".to_owned()
    } else {
        format!("Too long (max {} bytes)", CommandId::MAX_BYTES)
    }
}

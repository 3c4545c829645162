//! From a frame to a command: what is wrong with it is said in pi-server's words, all of it at once. Source: protocols/pi.md, "Limits",
//! "Error strings". Unknown fields are ignored.

mod body;
mod fields;
mod header;
mod scope;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use self::scope::Scope;
use super::command::PiCommand;

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
}

#[cfg(test)]
mod tests;

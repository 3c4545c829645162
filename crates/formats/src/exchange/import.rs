//! Reading session files, whoever wrote them: what a file is, is told by what is in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::foreign::Conversation;
use super::{FORMAT, Header, Imported, claude_code, pi};
use mainstay_model::Timestamp;
use mainstay_model::command::CreateSession;
use mainstay_model::error::Error;
use mainstay_model::project::ProjectChoice;

/// What wrote a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// A session of Mainstay, as JSON lines.
    Mainstay,
    /// A conversation of Claude Code.
    ClaudeCode,
    /// A conversation of pi.
    Pi,
}

impl ImportFormat {
    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Mainstay => "Mainstay",
            Self::ClaudeCode => "Claude Code",
            Self::Pi => "pi",
        }
    }
}

/// A session file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// The contents of the file.
    pub imported: Imported,
    /// The program that wrote the file.
    pub format: ImportFormat,
    /// What did not come along, and how often.
    pub left_out: BTreeMap<String, u64>,
}

impl SessionFile {
    /// How many entries come of it.
    pub fn entries(&self) -> u64 {
        self.imported.items.iter().map(super::Item::entries).sum()
    }

    /// The session that it becomes, in the folder that it was of where no other is named.
    pub fn creation(&self, working_directory: Option<String>, name: Option<String>) -> CreateSession {
        let Header { kind, working_directory: ran_in, project, .. } = self.imported.header.clone();
        CreateSession {
            kind,
            working_directory: working_directory.unwrap_or(ran_in),
            project: ProjectChoice::exactly(project),
            arguments: Vec::new(),
            name,
            alias: None,
        }
    }
}

/// How many lines are looked at to tell what a file is.
const LOOKED_AT: usize = 64;

/// Reads a session file. What others wrote gets no moment after `now`.
///
/// # Errors
/// [`Error::ImportInvalid`] with the line that is not as it should be.
pub fn read_session_file(text: &str, now: Timestamp) -> Result<SessionFile, Error> {
    let (format, conversation) = match recognised(text) {
        ImportFormat::Mainstay => {
            let imported = super::read(text)?;
            return Ok(SessionFile { imported, format: ImportFormat::Mainstay, left_out: BTreeMap::new() });
        }
        format @ ImportFormat::ClaudeCode => (format, claude_code::read(text)?),
        format @ ImportFormat::Pi => (format, pi::read(text)?),
    };
    let Conversation { header, items, left_out } = conversation.finish(text, now)?;
    let imported = Imported { header, items, hash: mainstay_model::ObjectHash::of(text.as_bytes()) };
    Ok(SessionFile { imported, format, left_out })
}

/// The text of a session file. A last line may be cut off anywhere.
///
/// # Errors
/// [`Error::ImportInvalid`] where something else is no UTF-8.
pub fn session_file_text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).or_else(|error| {
        let damage = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        if bytes[damage..].contains(&b'\n') {
            let line = bytes[..damage].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            return Err(Error::ImportInvalid { line, reason: "it is no UTF-8".to_owned() });
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

/// What wrote this; ours, and so refused by our reader, where nothing tells.
fn recognised(text: &str) -> ImportFormat {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(LOOKED_AT);
    for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line.get("format").and_then(Value::as_str) == Some(FORMAT) {
            return ImportFormat::Mainstay;
        }
        let has = |name: &str| line.get(name).is_some_and(Value::is_string);
        match line.get("type").and_then(Value::as_str) {
            Some("session") if has("id") && has("timestamp") => return ImportFormat::Pi,
            Some(_) if has("sessionId") || has("leafUuid") => return ImportFormat::ClaudeCode,
            Some(_) | None => {}
        }
    }
    ImportFormat::Mainstay
}

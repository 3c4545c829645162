//! Entries of transcripts as clients see them.

use mainstay_model::{Role, SessionId, SessionKind, Timestamp, TranscriptEntry, Validity};
use serde::{Deserialize, Serialize};

/// An entry of a transcript, and how far it still holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    /// The entry, and where it stands.
    #[serde(flatten)]
    pub placed: TranscriptEntry,
    /// How far it still holds; none of what is no cell's, and where nothing could change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
    /// What it is called in the session whose transcript was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// What an entry of a transcript is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelView {
    /// Its index in the transcript.
    pub index: u64,
    /// The text of the label.
    pub label: String,
    /// When the label was set.
    pub at: Timestamp,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundView {
    /// The session it came to be in.
    pub session: SessionId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// What people call the session.
    pub name: String,
    /// What does its work.
    pub kind: SessionKind,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The entry's index in the session's transcript; none where that has it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What part it plays.
    pub role: Role,
    /// When it came to be.
    pub at: Timestamp,
    /// What was found, and what is around it, on one line.
    pub snippet: String,
    /// How far it still holds; none of what is no cell's, where nothing could change, and of idle sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

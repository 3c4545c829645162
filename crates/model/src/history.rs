//! The history of what people submitted at prompts, each principal's own. Source: seed 004, "HistoryEntry".
//!
//! It stands beside sessions and belongs to none: it has what was typed, commands of the prompt included, and says nothing of
//! what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::entry::Content;
use crate::id::SessionId;

/// The place of a line in the history. Later ones have higher numbers, and none is given twice.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct LineNumber(pub u64);

impl fmt::Display for LineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A line to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewLine {
    /// The client's name for it: sent again under it, it is kept once.
    pub id: Uuid,
    /// When it was submitted.
    pub at: Timestamp,
    /// The folder that its session runs in; none where that is not known, which makes it count to every folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The session it was submitted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The line, or the lines of a block.
    pub text: String,
}

/// A line that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryLine {
    /// The number of the line in the history.
    pub number: LineNumber,
    /// When it was submitted.
    pub at: Timestamp,
    /// The folder that its session runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The session it was submitted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The text of the line, or its beginning.
    pub content: Content,
}

/// How far a history reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryExtent {
    /// How many lines it has.
    pub lines: u64,
    /// The oldest of them; 0 where there is none.
    pub oldest: LineNumber,
}

/// Lines of a history, and how far it reached when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// The lines, newest first.
    pub lines: Vec<HistoryLine>,
    /// How far all of it reaches.
    pub extent: HistoryExtent,
}

//! Export and import of sessions.

use crate::view::SessionView;
use mainstay_formats::exchange::{ExportCursor, Header, ImportFormat, Item};
use mainstay_model::CommandId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

operations! {
    /// A part of a session's export.
    "session/export" ExportSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Where the part begins; the first one where it does not say.
        #[serde(default)]
        cursor: ExportCursor,
    } -> Exported;

    /// Creates a session with the cells of an exported one, and has its values once it is ready; or with an agent's conversation,
    /// as Claude Code or pi keeps it.
    "session/import" ImportSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The file, as `session/export` and the format of its lines have it, or as Claude Code or pi wrote it.
        file: String,
        /// The folder its code runs in, absolute; by default the one it ran in.
        #[serde(default)]
        working_directory: Option<String>,
        /// What people call it; by default as before, numbered where a session is called so.
        #[serde(default)]
        name: Option<String>,
    } -> Imported;
}

/// A part of a session's export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// What the file begins with.
    pub header: Header,
    /// The items of the export, in order.
    pub items: Vec<Item>,
    /// Where the next part begins; none behind the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ExportCursor>,
}

/// A session that was read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The session that the import created.
    #[serde(flatten)]
    pub session: SessionView,
    /// What wrote the file: `mainstay`, `claude-code` or `pi`.
    pub format: ImportFormat,
    /// How many entries came of it.
    pub entries: u64,
    /// What did not come along, and how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

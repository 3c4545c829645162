//! The history of a principal's own prompt.

use mainstay_model::{HistoryPage, LineNumber, NewLine};
use serde::{Deserialize, Serialize};

operations! {
    /// Keeps lines of the principal's own history, those over 10 KiB as objects.
    "history/add" AddHistory {
        /// The lines, oldest first; one that is sent again under its id is kept once.
        lines: Vec<NewLine>,
    } -> HistoryAdded;

    /// Lines of the principal's own history, newest first.
    "history/list" ListHistory {
        /// Only those of this folder, and those of no folder.
        #[serde(default)]
        folder: Option<String>,
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
        /// Only those in which each of these stands; of an object only the beginning is looked at.
        #[serde(default)]
        words: Vec<String>,
        /// Return only lines older than this one.
        #[serde(default)]
        before: Option<LineNumber>,
        /// Return only lines newer than this one.
        #[serde(default)]
        after: Option<LineNumber>,
        /// At most so many, at most 1000; a page of large lines ends earlier.
        #[serde(default)]
        limit: Option<usize>,
    } -> HistoryPage;

    /// All that a line says.
    "history/get" GetHistory {
        /// The number of the line.
        number: LineNumber,
    } -> HistoryText;

    /// Removes lines of the principal's own history: all, where nothing says which.
    "history/remove" RemoveHistory {
        /// Remove only the line of this number.
        #[serde(default)]
        number: Option<LineNumber>,
        /// Only those of this folder, and those of no folder.
        #[serde(default)]
        folder: Option<String>,
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
    } -> HistoryRemoved;
}

/// Lines that are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryAdded {
    /// Their places, in the order in which they came.
    pub numbers: Vec<LineNumber>,
}

/// A line of the prompt's history, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryText {
    /// The text of the line.
    pub text: String,
}

/// Lines that are kept no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryRemoved {
    /// How many lines were removed.
    pub removed: u64,
}

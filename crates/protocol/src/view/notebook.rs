//! What came of running a notebook.

use mainstay_model::SessionId;
use serde::{Deserialize, Serialize};

use super::eval::EvalView;

/// What came of a file's cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookView {
    /// The session in which the cells ran.
    pub session: SessionId,
    /// Whether all ran to their end.
    pub success: bool,
    /// Those that ran, or had before.
    pub cells: Vec<CellView>,
    /// The numbers of those that did not, since one before them failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<usize>,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellView {
    /// Its number, from 1; Markdown counts.
    pub cell: usize,
    /// The line of the file that it begins in.
    pub line: u32,
    /// Whether it had run to its end before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran_before: bool,
    /// What came of it.
    pub eval: EvalView,
}

//! What came of a merge.

use serde::{Deserialize, Serialize};

use super::error::ErrorView;
use super::eval::EvalView;

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeView {
    /// Whether all of it ran to its end.
    pub success: bool,
    /// What ran, in order; where it was not all, the last one stopped the merge.
    pub ran: Vec<BroughtView>,
    /// Why the input behind them could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedView>,
    /// The indices of the inputs that were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<u64>,
}

/// An input that was brought, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroughtView {
    /// Its index in the other transcript.
    pub index: u64,
    /// What came of it.
    pub eval: EvalView,
}

/// An input that could not be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedView {
    /// Its index in the other transcript.
    pub index: u64,
    /// The error with which it was refused.
    pub error: ErrorView,
}

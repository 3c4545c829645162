//! What came of a merge.

use mainstay_engine::{Client, MergeStop, Merged, MergedInput};
use mainstay_model::{Error, SessionId};
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

impl MergeView {
    /// The view of a merge into this session; what the code printed is read from the log.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn load(client: &Client, session: SessionId, merged: Merged) -> Result<Self, Error> {
        let Merged { mut applied, stopped, left } = merged;
        let success = stopped.is_none();
        let refused = match stopped {
            None => None,
            Some(MergeStop::Ended(brought)) => {
                applied.push(brought);
                None
            }
            Some(MergeStop::Refused { index, error }) => Some(RefusedView { index, error: error.into() }),
        };
        let mut ran = Vec::with_capacity(applied.len());
        for MergedInput { index, command, outcome } in applied {
            let eval = EvalView::load(client, session, command, outcome).await?;
            ran.push(BroughtView { index, eval });
        }
        Ok(Self { success, ran, refused, not_run: left })
    }
}

//! How far an export has come.

use mainstay_model::Seq;
use serde::{Deserialize, Serialize};

/// How far an export has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportCursor {
    /// How many segments of the transcript are behind it.
    pub segment: usize,
    /// The last event of the present one that was looked at; none before the first.
    #[serde(default)]
    pub after: Option<Seq>,
    /// How many entries are behind it.
    #[serde(default)]
    pub entries: u64,
}

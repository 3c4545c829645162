//! A session among those it is related to.

use mainstay_model::SessionId;
use serde::{Deserialize, Serialize};

use super::session::SessionView;

/// A session among those it is related to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelativeView {
    /// The session that is related.
    #[serde(flatten)]
    pub session: SessionView,
    /// How many entries its transcript has.
    pub entries: u64,
    /// What of them was merged, by the sessions in which it came to be; a fork has what its parent had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedEntries>,
}

/// Entries that were merged into a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedEntries {
    /// The session in which they came to be.
    pub session: SessionId,
    /// How many they are.
    pub entries: u64,
}

//! A session in numbers.

use mainstay_model::store::SessionStatistics;
use serde::{Deserialize, Serialize};

use super::session::SessionView;

/// A session in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsView {
    /// The session that the figures describe.
    pub session: SessionView,
    /// How many entries its transcript has, those of other sessions included.
    pub transcript: u64,
    /// What is stored of it.
    #[serde(flatten)]
    pub stored: SessionStatistics,
}

//! When a command must have ended.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// When a command must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// The time of the deadline.
    pub at: Timestamp,
    /// How long that is after its acceptance, in milliseconds.
    pub limit_ms: u64,
}

impl Deadline {
    /// So long after now.
    pub fn after(now: Timestamp, limit_ms: u64) -> Self {
        let span = jiff::SignedDuration::from_millis(i64::try_from(limit_ms).unwrap_or(i64::MAX));
        Self { at: now.checked_add(span).unwrap_or(Timestamp::MAX), limit_ms }
    }
}

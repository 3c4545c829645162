//! When a command must have ended.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::grant::Grants;

/// When a command must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// The time of the deadline.
    pub at: Timestamp,
    /// How long that is after its acceptance, in milliseconds.
    pub limit_ms: u64,
}

/// When a command must have ended: at its deadline, or at the end of its grant.
pub(crate) fn ends_by(deadline: Option<Deadline>, grants: Option<&Grants>) -> Option<Timestamp> {
    let expires_at = grants.and_then(Grants::expires_at);
    deadline.map(|deadline| deadline.at).into_iter().chain(expires_at).min()
}

impl Deadline {
    /// So long after now.
    pub fn after(now: Timestamp, limit_ms: u64) -> Self {
        let span = jiff::SignedDuration::from_millis(i64::try_from(limit_ms).unwrap_or(i64::MAX));
        Self { at: now.checked_add(span).unwrap_or(Timestamp::MAX), limit_ms }
    }
}

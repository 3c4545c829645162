//! The present moment in the precision of the log.

use mainstay_model::Timestamp;

/// The present moment, as exact as the log keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

//! Ids that are new each time.

use mainstay_arcp_protocol::ids::ulid_text;
use uuid::Uuid;

/// A new id, as a ULID is written. Those of one daemon sort by time.
pub(crate) fn new_ulid() -> String {
    ulid_text(Uuid::now_v7().as_u128())
}

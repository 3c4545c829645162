//! Messages that are no events of jobs, in their envelopes.

use mainstay_arcp_protocol::b::{Envelope, Message};
use mainstay_arcp_protocol::ids::ulid_text;
use uuid::Uuid;

/// A message that is no event of a job.
pub(super) fn envelope(session: Option<&str>, message: Message) -> Envelope {
    Envelope {
        id: ulid_text(Uuid::now_v7().as_u128()),
        session_id: session.map(str::to_owned),
        trace_id: None,
        job_id: None,
        event_seq: None,
        message,
    }
}

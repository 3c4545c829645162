//! Dialect B: draft-arcp-1.1, with the details of draft-arcp-02. Protocol version 1.1.

mod errors;
mod handshake;
mod outcome;
mod peculiarities;
mod requests;
mod session;
mod submissions;
mod teller;

use futures::Stream;
use mainstay_arcp_protocol::DialectError;
use mainstay_arcp_protocol::b::{Envelope, Message};
use mainstay_arcp_protocol::ids::ulid_text;
use uuid::Uuid;

use crate::connection::{End, Peer};
use crate::frames::{Incoming, Outbox};

/// Serves a connection whose first frame is of this dialect.
pub(crate) async fn serve(
    peer: Peer,
    incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
    first: &str,
) -> End {
    match handshake::open(&peer, &outbox, first).await {
        Some(opened) => session::serve(peer, opened, incoming, outbox).await,
        None => End::Refused,
    }
}

/// What a client is told whose first frame is of neither dialect.
pub(crate) fn refusal_of_frame(error: &DialectError) -> String {
    envelope(None, Message::SessionError(errors::of_first_frame(error))).encode()
}

/// A message that is no event of a job.
fn envelope(session: Option<&str>, message: Message) -> Envelope {
    Envelope {
        id: ulid_text(Uuid::now_v7().as_u128()),
        session_id: session.map(str::to_owned),
        trace_id: None,
        job_id: None,
        event_seq: None,
        message,
    }
}

//! Dialect B: draft-arcp-1.1, with the details of draft-arcp-02. Protocol version 1.1.

mod errors;
mod frame;
mod handshake;
mod joins;
mod outcome;
mod peculiarities;
mod pending;
mod requests;
mod session;
mod submissions;
mod teller;

use futures::Stream;
use mainstay_arcp_protocol::DialectError;
use mainstay_arcp_protocol::b::Message;
use mainstay_engine::Client;
use mainstay_model::Error;

use self::frame::envelope;
use self::handshake::Opened;
use crate::connection::{End, Peer};
use crate::frames::{Incoming, Outbox};
use crate::stored_session::StoredSession;

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

/// Tells what a session was told behind a number, and nothing else.
pub(crate) async fn replay(peer: Peer, client: Client, stored: StoredSession, after: u64, outbox: Outbox) {
    session::replay(peer, Opened::to_be_replayed(client, stored, after), outbox).await;
}

/// What a client is told that looks up a session which is not there.
pub(crate) fn refusal_of_lookup(session: &str) -> String {
    envelope(None, Message::SessionError(errors::no_session(session))).encode()
}

/// What a client is told whose session cannot be had.
pub(crate) fn refusal(error: &Error) -> String {
    envelope(None, Message::SessionError(errors::payload(error))).encode()
}

/// What a client is told whose first frame is of neither dialect.
pub(crate) fn refusal_of_frame(error: &DialectError) -> String {
    envelope(None, Message::SessionError(errors::of_first_frame(error))).encode()
}

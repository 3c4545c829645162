//! A connection, whatever carries it: the first frame chooses the dialect, which serves the rest.

use futures::{Stream, StreamExt};
use mainstay_arcp_protocol::Dialect;
use tokio::time::timeout;

use crate::frames::{Incoming, Outbox};
use crate::peer::{End, Peer};
use crate::{a, b};

/// Serves a connection until one of the two goes.
pub(crate) async fn serve(
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
) -> End {
    // A client that opens nothing costs no more than its connection.
    let first = timeout(peer.settings.handshake(), first_frame(&mut incoming)).await;
    let first = match first {
        Ok(Some(Incoming::Text(text))) => text,
        Ok(Some(Incoming::Binary(_) | Incoming::TooLarge | Incoming::Alive)) | Err(_) => return End::Refused,
        Ok(Some(Incoming::Ended) | None) => return End::Gone,
    };
    match Dialect::of_first_frame(&first) {
        Ok(Dialect::B) => b::serve(peer, incoming, outbox, &first).await,
        Ok(Dialect::A) => a::serve(peer, incoming, outbox, &first).await,
        Err(error) => {
            outbox.send(b::refusal_of_frame(&error)).await;
            End::Refused
        }
    }
}

/// The first frame that the client itself sends.
async fn first_frame(incoming: &mut (impl Stream<Item = Incoming> + Unpin)) -> Option<Incoming> {
    loop {
        match incoming.next().await? {
            Incoming::Alive => {}
            frame => return Some(frame),
        }
    }
}

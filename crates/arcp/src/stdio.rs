//! ARCP as lines: what `mainstay arcp` carries between its own input and output and the daemon's socket. An envelope is a line.

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use crate::attach::Purpose;
use crate::connection::{Peer, serve};
use crate::frames::{Incoming, Outbox};
use crate::lookup::{replay, sessions};

/// Serves a connection until the client goes, or has what it wanted.
pub(crate) async fn serve_stream(
    (read, write): (impl AsyncRead + Send + Unpin, impl AsyncWrite + Send + Unpin + 'static),
    peer: Peer,
    purpose: Purpose,
) {
    let limit = peer.daemon.engine.limits().message_bytes;
    let (outbox, mut leaving) = Outbox::new(peer.settings.patience());
    let mut lines = FramedWrite::new(write, LinesCodec::new());
    let writer = tokio::spawn(async move {
        while let Some(frame) = leaving.recv().await {
            if lines.send(frame).await.is_err() {
                return;
            }
        }
    });
    match purpose {
        Purpose::Serve => {
            let frames = FramedRead::new(read, LinesCodec::new_with_max_length(limit));
            let incoming = frames.filter_map(|line| {
                std::future::ready(match line {
                    Ok(line) if line.trim().is_empty() => None,
                    Ok(line) => Some(Incoming::Text(line)),
                    Err(LinesCodecError::MaxLineLengthExceeded) => Some(Incoming::TooLarge),
                    Err(LinesCodecError::Io(_)) => None,
                })
            });
            serve(peer, Box::pin(incoming), outbox).await;
        }
        Purpose::Replay { session, after } => replay(peer, &session, after, outbox).await,
        Purpose::Sessions => sessions(&peer, outbox).await,
    }
    writer.await.ok();
}

//! ARCP as lines: what `mainstay arcp` carries between its own input and output and the daemon's socket. An envelope is a line.

use futures::{SinkExt, Stream, StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use crate::attach::Purpose;
use crate::connection::serve;
use crate::frames::{Incoming, Outbox};
use crate::lookup::{replay, sessions};
use crate::peer::Peer;

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
            if lines.send(frame.text).await.is_err() {
                return;
            }
        }
    });
    match purpose {
        Purpose::Serve => {
            let incoming = frames_of(FramedRead::new(read, LinesCodec::new_with_max_length(limit)));
            serve(peer, Box::pin(incoming), outbox).await;
        }
        Purpose::Replay { session, after } => replay(peer, &session, after, outbox).await,
        Purpose::Sessions => sessions(&peer, outbox).await,
    }
    writer.await.ok();
}

/// The frames that lines are. A line that is too long is one that is refused, and the lines behind it are read on. Whoever sends no more may still
/// read.
fn frames_of(lines: FramedRead<impl AsyncRead + Unpin, LinesCodec>) -> impl Stream<Item = Incoming> {
    let frames = stream::unfold((lines, false), |(mut lines, mut is_behind_error)| async move {
        loop {
            match lines.next().await {
                Some(Ok(line)) if line.trim().is_empty() => {}
                Some(Ok(line)) => return Some((Incoming::Text(line), (lines, false))),
                Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                    return Some((Incoming::TooLarge, (lines, true)));
                }
                // The reader says once after an error that it has ended.
                None if is_behind_error => is_behind_error = false,
                Some(Err(LinesCodecError::Io(_))) | None => return None,
            }
        }
    });
    frames.chain(stream::iter([Incoming::Ended])).chain(stream::pending())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
        let text = format!("one\n\n{}\ntwo\n", "x".repeat(100));
        let lines = FramedRead::new(text.as_bytes(), LinesCodec::new_with_max_length(10));
        let frames: Vec<_> = Box::pin(frames_of(lines)).take(4).collect().await;
        let [Incoming::Text(one), Incoming::TooLarge, Incoming::Text(two), Incoming::Ended] = &frames[..]
        else {
            panic!("{frames:?}")
        };
        assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
    }
}

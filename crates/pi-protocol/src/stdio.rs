//! The protocol as lines: what `mainstay pi` carries between its own input and output and the daemon's socket. Lines end at LF alone.

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use super::connection::{End, Incoming, Peer, outbox, serve};
use super::daemon::PiDaemon;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::local_socket::ClientContext;

/// Serves the protocol over a stream until the client goes, or its credentials have expired.
pub async fn serve_stream(
    read: impl AsyncRead + Send + Unpin,
    write: impl AsyncWrite + Send + Unpin + 'static,
    daemon: PiDaemon,
    admission: impl Into<Admission>,
    context: ClientContext,
) {
    let (admission, limit) = (admission.into(), daemon.engine.limits().message_bytes);
    let ClientContext { working_directory, environment, .. } = context;
    let client =
        daemon.engine.attach(admission.access.clone(), "pi").as_connection().with_environment(environment);
    let folder = working_directory.unwrap_or_else(|| "/".to_owned());
    let (frames, mut leaving) = outbox();
    let mut lines = FramedWrite::new(write, LinesCodec::new());
    let writer = tokio::spawn(async move {
        while let Some(frame) = leaving.recv().await {
            if lines.send(frame).await.is_err() {
                return;
            }
        }
    });
    let frames_in = FramedRead::new(read, Frames { lines: LinesCodec::new_with_max_length(limit), limit });
    let incoming = frames_in.filter_map(|frame| std::future::ready(frame.ok()));
    // Whatever ended it, the end of the stream says so.
    let (End::Gone | End::ShutDown | End::Slow | End::Expired) =
        serve(daemon, Peer { client, folder, admission, reads_on: true }, Box::pin(incoming), frames).await;
    writer.await.ok();
}

/// Lines as frames. One that cannot be read is a frame too: the next may be sound.
struct Frames {
    lines: LinesCodec,
    limit: usize,
}

impl Decoder for Frames {
    type Item = Incoming;
    type Error = std::io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Incoming>, std::io::Error> {
        let line = self.lines.decode(bytes);
        self.frame(line)
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> Result<Option<Incoming>, std::io::Error> {
        let line = self.lines.decode_eof(bytes);
        self.frame(line)
    }
}

impl Frames {
    fn frame(
        &self,
        line: Result<Option<String>, LinesCodecError>,
    ) -> Result<Option<Incoming>, std::io::Error> {
        match line {
            Ok(Some(line)) if line.trim().is_empty() => Ok(Some(Incoming::Nothing)),
            Ok(line) => Ok(line.map(Incoming::Frame)),
            Err(LinesCodecError::MaxLineLengthExceeded) => {
                Ok(Some(Incoming::TooLarge(self.limit.saturating_add(1))))
            }
            Err(LinesCodecError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                Ok(Some(Incoming::NoText))
            }
            Err(LinesCodecError::Io(error)) => Err(error),
        }
    }
}

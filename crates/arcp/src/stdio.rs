//! ARCP as lines: what `mainstay arcp` carries between its own input and output and the daemon's socket. An envelope is a line.

use futures::{SinkExt, StreamExt};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_model::Access;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use crate::connection::{Attached, Peer, serve};
use crate::frames::{Incoming, Outbox};
use crate::settings::Settings;

/// Serves the protocol over a stream until the client goes.
pub(crate) async fn serve_stream(
    read: impl AsyncRead + Send + Unpin,
    write: impl AsyncWrite + Send + Unpin + 'static,
    daemon: Daemon,
    settings: Settings,
    access: Access,
    context: ClientContext,
) {
    let limit = daemon.engine.limits().message_bytes;
    let (outbox, mut leaving) = Outbox::new();
    let mut lines = FramedWrite::new(write, LinesCodec::new());
    let writer = tokio::spawn(async move {
        while let Some(frame) = leaving.recv().await {
            if lines.send(frame).await.is_err() {
                return;
            }
        }
    });
    let frames = FramedRead::new(read, LinesCodec::new_with_max_length(limit));
    let incoming = frames.filter_map(move |line| {
        std::future::ready(match line {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(Incoming::Text(line)),
            Err(LinesCodecError::MaxLineLengthExceeded) => Some(Incoming::TooLarge),
            Err(LinesCodecError::Io(_)) => None,
        })
    });
    let ClientContext { working_directory, environment, .. } = context;
    let attached = Attached { access, folder: working_directory, environment };
    serve(Peer { daemon, settings, attached: Some(attached) }, Box::pin(incoming), outbox).await;
    writer.await.ok();
}

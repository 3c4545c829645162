//! The socket of the daemon of this user.

use std::io::{Cursor, ErrorKind};
use std::path::Path;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_model::Error;
use mainstay_protocol::json_rpc::{Incoming, Method, Outgoing, Version, line};
use mainstay_protocol::operations::Attached;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, Chain};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::sleep;
use tokio_util::codec::{FramedParts, FramedRead, FramedWrite, LinesCodec};

/// The time between two attempts to connect to a daemon that takes no connection now.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// A connection that speaks another protocol from here on.
pub type Stream = (Chain<Cursor<Vec<u8>>, OwnedReadHalf>, OwnedWriteHalf);

/// Opens a connection that speaks another protocol from here on, which `attach` names. Also says which daemon answered.
///
/// # Errors
/// [`Error::DaemonNotRunning`], [`Error::Unauthorized`], [`Error::TooManyConnections`].
pub async fn attach<M: Method<Answer = Attached>>(
    socket: &Path,
    attach: M,
) -> Result<(Stream, Attached), Error> {
    let (read, write) = reach(socket).await?.into_split();
    let (mut incoming, mut outgoing) =
        (FramedRead::new(read, LinesCodec::new()), FramedWrite::new(write, LinesCodec::new()));
    let text = line(&Outgoing::Request { jsonrpc: Version::Two, id: 0, method: M::NAME, params: attach })?;
    // Where nothing can be written any more, what the daemon said last is still to be read.
    outgoing.send(text).await.ok();
    let answer = incoming.next().await.and_then(Result::ok).ok_or(Error::DaemonNotRunning)?;
    let unreadable = |error: serde_json::Error| Error::BadRequest { reason: error.to_string() };
    match serde_json::from_str::<Incoming>(&answer).map_err(unreadable)? {
        Incoming { error: Some(failure), .. } => Err(failure.into()),
        Incoming { error: None, result, .. } => {
            let result = result.as_deref().map_or("null", RawValue::get);
            let attached = serde_json::from_str(result).map_err(unreadable)?;
            // What the daemon said next may have been read already.
            let FramedParts { io, read_buf, .. } = incoming.into_parts();
            let stream = (AsyncReadExt::chain(Cursor::new(read_buf.to_vec()), io), outgoing.into_inner());
            Ok((stream, attached))
        }
    }
}

/// Connects to a daemon of this user: another's would be shown the token.
pub(crate) async fn reach(socket: &Path) -> Result<UnixStream, Error> {
    let stream = loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => break stream,
            // It has as many clients waiting as the system lets wait: it is there, and whoever connects says how long it may take.
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(BETWEEN_ATTEMPTS).await,
            Err(_) => return Err(Error::DaemonNotRunning),
        }
    };
    let listener = stream.peer_cred().map_err(|_| Error::DaemonNotRunning)?;
    if listener.uid() == rustix::process::geteuid().as_raw() {
        Ok(stream)
    } else {
        Err(Error::DaemonNotRunning)
    }
}

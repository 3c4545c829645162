//! Frames of the runner protocol on a stream: the length in four bytes, then JSON.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use mainstay_model::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use crate::messages::{Hello, Welcome, decode, encode};

/// The largest frame that either side takes, in bytes. A worker's largest frame fits in with what is said around it.
const MAX_FRAME_BYTES: usize = 128 * 1024 * 1024;

/// Frames that come in.
pub(crate) struct Incoming(FramedRead<OwnedReadHalf, LengthDelimitedCodec>);

/// Frames that go out.
pub(crate) struct Outgoing(FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>);

/// Both halves of a stream.
pub(crate) fn framed(stream: UnixStream) -> (Incoming, Outgoing) {
    let (read, write) = stream.into_split();
    let codec = || LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec();
    (Incoming(FramedRead::new(read, codec())), Outgoing(FramedWrite::new(write, codec())))
}

impl Incoming {
    /// The next message; none at the end of the stream.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the stream fails or the message is not understood.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        match self.0.next().await {
            Some(Ok(frame)) => decode(&frame).map(Some),
            Some(Err(error)) => Err(failed(&error)),
            None => Ok(None),
        }
    }
}

impl Outgoing {
    /// Sends a message.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the stream fails.
    pub(crate) async fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        self.send_frame(encode(message)?).await
    }

    /// Sends a message that is encoded already.
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    pub(crate) async fn send_frame(&mut self, frame: Bytes) -> Result<(), Error> {
        self.0.send(frame).await.map_err(|error| failed(&error))
    }
}

/// Connects to a shim's socket; none where no process listens there any more.
///
/// # Errors
/// [`Error::WorkerFailed`] where it cannot be told.
pub(crate) async fn connect(socket: &Path) -> Result<Option<UnixStream>, Error> {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    match UnixStream::connect(socket).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ConnectionRefused | NotFound) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// Says hello, and waits for the answer at most so long.
///
/// # Errors
/// [`Error::WorkerFailed`] where none comes.
pub(crate) async fn greet(
    stream: UnixStream,
    hello: &Hello,
    limit: Duration,
) -> Result<(Incoming, Outgoing, Welcome), Error> {
    let (mut incoming, mut outgoing) = framed(stream);
    let greeted = async {
        outgoing.send(hello).await?;
        incoming.next::<Welcome>().await
    };
    let silent = |what: &str| Error::WorkerFailed { reason: format!("the session's shim {what}") };
    match tokio::time::timeout(limit, greeted).await {
        Ok(Ok(Some(welcome))) => Ok((incoming, outgoing, welcome)),
        Ok(Ok(None)) => Err(silent("ended before it answered")),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(silent(&format!("has not answered within {} ms", limit.as_millis()))),
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::WorkerFailed { reason: format!("the connection between daemon and shim failed: {error}") }
}

//! What passes over a connection, whatever carries it: frames in, frames out.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Frames that wait for a slow client. Then whoever tells it waits too: what there is to tell is in the log meanwhile.
const OUTBOX: usize = 64;

/// What the client sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A frame of text.
    Text(String),
    /// A frame of bytes.
    Binary(Vec<u8>),
    /// A frame that is larger than may be.
    TooLarge,
    /// What the client's transport says without the client: it has what was sent before.
    Alive,
    /// The client sends nothing more, and still reads.
    Ended,
}

/// What is sent to a client at once: a frame of text, and the frames of bytes that belong to it. Nothing comes between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    pub(crate) bytes: Vec<Vec<u8>>,
}

impl Outgoing {
    /// How many bytes the frames have together.
    pub(crate) fn size(&self) -> usize {
        self.text.len() + self.bytes.iter().map(Vec::len).sum::<usize>()
    }
}

impl From<String> for Outgoing {
    fn from(text: String) -> Self {
        Self { text, bytes: Vec::new() }
    }
}

/// The frames that are sent to a client. They leave in order.
#[derive(Clone)]
pub(crate) struct Outbox {
    frames: mpsc::Sender<Outgoing>,
    /// Whether the transport has frames of bytes.
    pub(crate) carries_bytes: bool,
    /// How long a frame waits for a client that does not read.
    patience: Duration,
    /// Cancelled once a frame has waited so long.
    pub(crate) is_stuck: CancellationToken,
}

impl Outbox {
    /// An outbox, and what leaves it.
    pub(crate) fn new(patience: Duration) -> (Self, mpsc::Receiver<Outgoing>) {
        let (frames, leaving) = mpsc::channel(OUTBOX);
        (Self { frames, carries_bytes: false, patience, is_stuck: CancellationToken::new() }, leaving)
    }

    /// The same of a transport that has frames of bytes.
    pub(crate) fn carrying_bytes(self) -> Self {
        Self { carries_bytes: true, ..self }
    }

    /// Waits until nobody reads it any more.
    pub(crate) async fn closed(&self) {
        self.frames.closed().await;
    }

    /// Sends a frame. It waits while the client does not read; where the client is gone, it is dropped.
    pub(crate) async fn send(&self, frame: impl Into<Outgoing>) {
        if tokio::time::timeout(self.patience, self.frames.send(frame.into())).await.is_err() {
            self.is_stuck.cancel();
        }
    }
}

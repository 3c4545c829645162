//! What passes over a connection, whatever carries it: frames in, frames out.

use tokio::sync::mpsc;

/// Frames that wait for a slow client. Then whoever tells it waits too: what there is to tell is in the log meanwhile.
const OUTBOX: usize = 64;

/// What the client sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A frame of text.
    Text(String),
    /// A frame of bytes.
    Binary,
    /// A frame that is larger than may be.
    TooLarge,
}

/// The frames that are sent to a client. They leave in order.
#[derive(Clone)]
pub(crate) struct Outbox(mpsc::Sender<String>);

impl Outbox {
    /// An outbox, and what leaves it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (frames, leaving) = mpsc::channel(OUTBOX);
        (Self(frames), leaving)
    }

    /// Sends a frame. It waits while the client does not read; where the client is gone, it is dropped.
    pub(crate) async fn send(&self, frame: String) {
        self.0.send(frame).await.ok();
    }
}

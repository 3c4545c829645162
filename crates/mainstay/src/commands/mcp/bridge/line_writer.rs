//! Lines on their way out. What waits is kept in order, and sending can be given up at any point without losing or repeating any of it.

use std::collections::VecDeque;
use std::future::pending;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Nothing can be written any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

/// Where lines go out.
pub(super) struct LineWriter {
    waiting: VecDeque<String>,
    bytes: usize,
    /// None once it is closed.
    sender: Option<mpsc::Sender<String>>,
    /// Whether it closes once nothing waits.
    is_ending: bool,
    writer: JoinHandle<()>,
}

impl LineWriter {
    /// Writes to this, one line after the other.
    pub(super) fn new(mut out: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, mut lines) = mpsc::channel::<String>(1);
        let writer = tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                if out.write_all(line.as_bytes()).await.is_err() || out.flush().await.is_err() {
                    return;
                }
            }
            // The other side may have closed it before.
            out.shutdown().await.ok();
        });
        Self { waiting: VecDeque::new(), bytes: 0, sender: Some(sender), is_ending: false, writer }
    }

    /// Adds a line behind all others.
    pub(super) fn put(&mut self, line: String) {
        self.bytes += line.len();
        self.waiting.push_back(line);
    }

    /// How much waits, in bytes.
    pub(super) fn waiting(&self) -> usize {
        self.bytes
    }

    /// Sends the next line; waits for ever where there is none.
    pub(super) async fn send_next(&mut self) -> Result<(), Closed> {
        if self.waiting.is_empty() {
            if self.is_ending {
                self.sender = None;
            }
            return pending().await;
        }
        let Some(sender) = &self.sender else { return pending().await };
        let place = sender.reserve().await.map_err(|_| Closed)?;
        if let Some(line) = self.waiting.pop_front() {
            self.bytes -= line.len();
            place.send(line);
        }
        Ok(())
    }

    /// Ends it once all that waits is sent.
    pub(super) fn close(&mut self) {
        self.is_ending = true;
    }

    /// Gives up what waits.
    pub(super) fn abandon(&mut self) {
        (self.sender, self.bytes) = (None, 0);
        self.waiting.clear();
    }

    /// Sends all that waits, and ends it.
    pub(super) async fn finish(mut self) {
        while !self.waiting.is_empty() && self.sender.is_some() && self.send_next().await.is_ok() {}
        self.sender = None;
        // A writer that panicked has written what it could.
        self.writer.await.ok();
    }
}

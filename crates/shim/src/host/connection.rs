//! The connection of the daemon that the shim obeys.

use std::time::Duration;

use bytes::Bytes;
use mainstay_model::{Error, NoticeNumber};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::retained::Retained;
use crate::messages::{ToShim, WINDOW, encode};
use crate::stream::{Incoming, Outgoing};

/// A daemon that the shim obeys. Dropping it closes the connection once what was sent is written.
pub(super) struct Connection {
    incoming: Incoming,
    /// Frames on their way out. There are never many: notices are told within a window, answers one for each question.
    frames: mpsc::UnboundedSender<Bytes>,
    writer: JoinHandle<()>,
    /// The last notice that was told.
    told: NoticeNumber,
    /// The last notice that the daemon has taken in.
    consumed: NoticeNumber,
}

impl Connection {
    /// A daemon that has the notices up to this one.
    pub(super) fn new(incoming: Incoming, outgoing: Outgoing, told: NoticeNumber) -> Self {
        let (frames, outbox) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(outgoing, outbox));
        Self { incoming, frames, writer, told, consumed: told }
    }

    /// Who answers questions tells it here.
    pub(super) fn answers(&self) -> Answers {
        Answers(self.frames.clone())
    }

    pub(super) fn send(&self, message: &impl Serialize) {
        self.answers().send(message);
    }

    /// Tells the notices that it has room for.
    pub(super) fn tell(&mut self, retained: &Retained) {
        while self.told.0 < self.consumed.0 + WINDOW
            && let Some(frame) = retained.get(self.told.next())
        {
            self.told = self.told.next();
            self.frames.send(frame.clone()).ok();
        }
    }

    /// The daemon has taken in the notices up to this one.
    pub(super) fn has_consumed(&mut self, up_to: NoticeNumber) {
        self.consumed = self.consumed.max(up_to).min(self.told);
    }

    /// The last notice that the daemon was told.
    pub(super) const fn told(&self) -> NoticeNumber {
        self.told
    }

    /// Closes the connection, and waits until the daemon has what was sent, at most so long.
    pub(super) async fn close(self, limit: Duration) {
        let Self { frames, writer, .. } = self;
        drop(frames);
        let aborted = writer.abort_handle();
        if tokio::time::timeout(limit, writer).await.is_err() {
            aborted.abort();
        }
    }

    /// The next message; none where the daemon is gone.
    pub(super) async fn next(&mut self) -> Option<ToShim> {
        match self.incoming.next().await {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, "the daemon is let go");
                None
            }
        }
    }
}

/// Where what is told to one daemon goes.
#[derive(Clone)]
pub(super) struct Answers(mpsc::UnboundedSender<Bytes>);

impl Answers {
    pub(super) fn send(&self, message: &impl Serialize) {
        match encode(message) {
            // The daemon may be gone.
            Ok(frame) => drop(self.0.send(frame)),
            Err(error) => tracing::error!(%error, "something cannot be told"),
        }
    }
}

async fn write(mut outgoing: Outgoing, mut outbox: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(frame) = outbox.recv().await {
        let sent: Result<(), Error> = outgoing.send_frame(frame).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a daemon hears no more");
            return;
        }
    }
}

//! What a kernel publishes, taken as it comes: what it has no room for any more it drops, without a word.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use zeromq::{SocketRecv, SubSocket, ZmqMessage};

/// How many bytes wait to be read at most.
const ROOM: u32 = 64 * 1024 * 1024;
/// What a message takes besides its bytes, about.
const OVERHEAD: usize = 256;

/// Messages that were taken and not yet read.
pub(super) struct Published {
    waiting: mpsc::UnboundedReceiver<Waiting>,
    taking: AbortHandle,
}

struct Waiting {
    frames: ZmqMessage,
    _room: OwnedSemaphorePermit,
}

impl Published {
    /// Takes what comes to a socket from now on.
    pub(super) fn of(socket: SubSocket) -> Self {
        let (taken, waiting) = mpsc::unbounded_channel();
        Self { waiting, taking: tokio::spawn(take(socket, taken)).abort_handle() }
    }

    /// The next; none once the kernel is gone.
    pub(super) async fn next(&mut self) -> Option<ZmqMessage> {
        self.waiting.recv().await.map(|waiting| waiting.frames)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.taking.abort();
    }
}

async fn take(mut socket: SubSocket, taken: mpsc::UnboundedSender<Waiting>) {
    let room = Arc::new(Semaphore::new(ROOM as usize));
    while let Ok(frames) = socket.recv().await {
        let bytes = frames.iter().map(|frame| frame.len()).sum::<usize>() + OVERHEAD;
        // One that is larger than all of the room has it for itself.
        let wanted = u32::try_from(bytes).unwrap_or(ROOM).min(ROOM);
        let Ok(room) = Arc::clone(&room).acquire_many_owned(wanted).await else { return };
        if taken.send(Waiting { frames, _room: room }).is_err() {
            return;
        }
    }
}

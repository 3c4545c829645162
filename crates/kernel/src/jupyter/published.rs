//! What a kernel publishes, taken as it comes: what it has no room for any more it drops, without a word.
//!
//! One thread takes it for all kernels and does nothing else, however busy the daemon is.

use std::sync::{Arc, OnceLock};

use mainstay_model::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;
use zeromq::{Socket, SocketRecv, SubSocket, ZmqMessage};

use super::sockets::{Pauses, connected, failed};

/// How many bytes wait to be read at most.
const ROOM: u32 = 64 * 1024 * 1024;
/// What a message takes besides its bytes, about.
const OVERHEAD: usize = 256;

/// Messages that were taken and not yet read.
pub(super) struct Published {
    waiting: mpsc::UnboundedReceiver<Waiting>,
    _taking: AbortOnDropHandle<()>,
}

struct Waiting {
    frames: ZmqMessage,
    _room: OwnedSemaphorePermit,
}

impl Published {
    /// Connects to where a kernel publishes, and takes what comes from then on.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the endpoint is none, or no thread is to be had.
    pub(super) async fn at(endpoint: String) -> Result<Self, Error> {
        let runtime = runtime()?;
        // A socket belongs to the thread on which it is connected.
        let connecting = AbortOnDropHandle::new(runtime.spawn(async move { subscribe(&endpoint).await }));
        let socket = connecting.await.map_err(|error| failed(&error.to_string()))??;
        let (taken, waiting) = mpsc::unbounded_channel();
        Ok(Self { waiting, _taking: AbortOnDropHandle::new(runtime.spawn(take(socket, taken))) })
    }

    /// The next; none once the kernel is gone.
    pub(super) async fn next(&mut self) -> Option<ZmqMessage> {
        self.waiting.recv().await.map(|waiting| waiting.frames)
    }
}

/// The thread that takes what kernels publish.
fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("published")
        .enable_all()
        .build()
        .map_err(|error| failed(&format!("no thread is to be had: {error}")))?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

async fn subscribe(endpoint: &str) -> Result<SubSocket, Error> {
    let mut pauses = Pauses::new();
    loop {
        let mut socket = connected(endpoint, SubSocket::new).await?;
        match socket.subscribe("").await {
            Ok(()) => return Ok(socket),
            // A kernel that comes up may drop a connection that it has taken.
            Err(error) => tracing::debug!(%error, endpoint, "a kernel has dropped a connection"),
        }
        pauses.pause().await;
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

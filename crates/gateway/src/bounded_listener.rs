//! Connections as they come: how many are served at once, and what becomes of those beyond.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How long to leave a listener alone after it failed, as it does while no file can be opened.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// What connections come in by.
pub(crate) trait Listener {
    /// The type of an accepted connection.
    type Stream;

    /// Accepts the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Says why the connection ends. It fits into the buffer of a new connection, so nobody is waited for.
    fn refuse(stream: &Self::Stream, said: &[u8]);
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn refuse(stream: &TcpStream, said: &[u8]) {
        // A client that is gone already needs no answer.
        stream.try_write(said).ok();
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn refuse(stream: &UnixStream, said: &[u8]) {
        // A client that is gone already needs no answer.
        stream.try_write(said).ok();
    }
}

/// A listener, and the places for who comes in by it.
pub(crate) struct BoundedListener<L> {
    listener: L,
    limit: usize,
    places: Arc<Semaphore>,
    /// What who finds no place is told.
    full: Vec<u8>,
}

impl<L: Listener> BoundedListener<L> {
    /// With so many places.
    pub(crate) fn new(listener: L, limit: usize, full: Vec<u8>) -> Self {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { listener, limit, places, full }
    }

    /// The next connection, and the place that it has until it ends; none once the daemon stops.
    pub(crate) async fn next(&self, stop: &CancellationToken) -> Option<(L::Stream, OwnedSemaphorePermit)> {
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return None,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(AFTER_FAILURE).await;
                    continue;
                }
            };
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Some((stream, place));
            }
            tracing::warn!(limit = self.limit, "a connection is refused: as many as may be are open");
            L::refuse(&stream, &self.full);
        }
    }
}

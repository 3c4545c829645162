//! What is heard at once and kept nowhere. It says nothing that an event does not say in the end.

use std::sync::Arc;

use mainstay_model::Live;
use tokio::sync::broadcast;

/// How many pieces of one session are kept for who is slow to listen; the events have what they miss.
pub(super) const KEPT: usize = 1024;

/// One who listens to a session.
pub(crate) struct Listener(pub(super) broadcast::Receiver<Arc<Live>>);

impl Listener {
    /// The next piece; waits for it. Who is slow misses some. None once the daemon goes down.
    pub(crate) async fn next(&mut self) -> Option<Arc<Live>> {
        loop {
            match self.0.recv().await {
                Ok(live) => return Some(live),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

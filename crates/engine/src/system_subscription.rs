//! What happens in all sessions, for the daemon itself: nobody is attached by it.

use std::sync::Arc;

use mainstay_model::{Error, Event, EventFilter, Notice, SessionId, WrittenFile};

use crate::engine::Engine;
use crate::hub::{Cursor, Subscription};
use crate::session::Request;

/// What happens from some moment on.
pub struct SystemSubscription(Subscription);

impl Engine {
    /// Follows what the filter lets through, from now on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn subscribe_system(&self, filter: EventFilter) -> Result<SystemSubscription, Error> {
        let after = self.shared.log.last_position().await?;
        Ok(SystemSubscription(self.follow(Cursor::Log { after }, filter)))
    }

    /// Tells a session that files were written, which its project may be made of.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`], [`Error::DaemonStopping`].
    pub async fn files_written(&self, session: SessionId, files: Vec<WrittenFile>) -> Result<(), Error> {
        self.buffers_saved(session, files.iter().map(|file| file.path.clone()).collect()).await;
        let notice = Notice::Written { files };
        let handle = self.handle(session).await?;
        let ending = handle.ending();
        let hears = handle.send(Request::Hear { notice }).await;
        if hears { Ok(()) } else { Err(self.gone(&ending)) }
    }
}

impl SystemSubscription {
    /// Waits for the next event.
    ///
    /// # Errors
    /// [`Error::DaemonStopping`], [`Error::StoreFailed`].
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        self.0.next().await
    }
}

//! Putting changed sources of a session's project into the worker that runs. Nobody commands it: that the files changed is a fact, and so is
//! what came of them in the worker.

use mainstay_model::{Error, Notice, SessionId};

use crate::engine::Engine;
use crate::session::Request;

impl Engine {
    /// Has a session's worker run these files' code as they are now, and tells the session what came of it. Says whether the session knows of
    /// the change now: not where its kernel exchanges no code.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::InvalidTransition`] where there is no worker that could, [`Error::Timeout`],
    /// [`Error::WorkerFailed`], [`Error::StoreFailed`], [`Error::DaemonStopping`].
    pub async fn swap_sources(&self, session: SessionId, files: Vec<String>) -> Result<bool, Error> {
        let swapped = self.request(session, |reply| Request::Swap { files, reply }).await??;
        let Some(swap) = swapped else { return Ok(false) };
        let handle = self.handle(session).await?;
        let ending = handle.ending();
        let hears = handle.send(Request::Hear { notice: Notice::Swapped { swap } }).await;
        if hears { Ok(true) } else { Err(self.gone(&ending)) }
    }
}

//! Putting changed sources of a session's project into the worker that runs. Nobody commands it: that the files changed is a fact, and so is
//! what came of them in the worker.

use mainstay_model::{Error, Notice, SessionId, Swap};

use crate::engine::Engine;
use crate::session::Request;

impl Engine {
    /// Has a session's worker run these files' code as they are now, and tells the session what came of it. Gives that; none where its
    /// kernel exchanges no code, and the session knows nothing of the change.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::InvalidTransition`] where there is no worker that could, [`Error::Timeout`],
    /// [`Error::WorkerFailed`], [`Error::StoreFailed`], [`Error::DaemonStopping`].
    pub async fn swap_sources(&self, session: SessionId, files: Vec<String>) -> Result<Option<Swap>, Error> {
        self.buffers_saved(session, files.clone()).await;
        let swapped = self.request(session, |reply| Request::Swap { files, reply }).await??;
        let Some(swap) = swapped else { return Ok(None) };
        let handle = self.handle(session).await?;
        let ending = handle.ending();
        let hears = handle.send(Request::Hear { notice: Notice::Swapped { swap: swap.clone() } }).await;
        if hears { Ok(Some(swap)) } else { Err(self.gone(&ending)) }
    }
}

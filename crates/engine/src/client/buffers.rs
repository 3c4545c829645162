//! The unsaved texts of a client: who may run code in a session may send them.

use mainstay_model::{BufferRun, Error, SessionId, UnsavedBuffer};

use super::Client;
use crate::mirror::NewBuffer;

impl Client {
    /// Runs the tests that reach what an unsaved text has otherwise than the saved file, beside the session.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`], [`Error::NotOffered`], [`Error::NotOfKind`], [`Error::BufferOutdated`],
    /// [`Error::MirrorUnavailable`], [`Error::KernelUnavailable`], [`Error::WorkerFailed`], [`Error::Timeout`], and what is wrong with the text's form.
    pub async fn put_buffer(&self, session: SessionId, buffer: NewBuffer) -> Result<BufferRun, Error> {
        self.must_drive(session).await?;
        self.engine.put_buffer(session, buffer).await
    }

    /// Throws an unsaved text away, where it is there.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`].
    pub async fn discard_buffer(&self, session: SessionId, path: String) -> Result<(), Error> {
        self.must_drive(session).await?;
        self.engine.discard_buffer(session, path).await;
        Ok(())
    }

    /// The unsaved texts of a session.
    ///
    /// # Errors
    /// As [`Client::discard_buffer`].
    pub async fn buffers(&self, session: SessionId) -> Result<Vec<UnsavedBuffer>, Error> {
        self.must_drive(session).await?;
        Ok(self.engine.buffers(session).await)
    }
}

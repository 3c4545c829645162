//! The connections that a client may resume after it lost them, or the daemon.

use mainstay_log::ResumableConnection;
use mainstay_model::{Error, Timestamp};

use super::Client;
use crate::Engine;

impl Client {
    /// Stores a connection of this client's principal, so that it can be resumed.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn store_connection(&self, connection: ResumableConnection) -> Result<(), Error> {
        let principal = self.access.principal.clone();
        self.engine.shared.log.store_connection(ResumableConnection { principal, ..connection }).await
    }

    /// The stored connection of this id; none where it is another principal's.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn stored_connection(&self, id: &str) -> Result<Option<ResumableConnection>, Error> {
        let found = self.engine.shared.log.connection(id).await?;
        Ok(found.filter(|connection| connection.principal == self.access.principal))
    }

    /// The stored connections of this client's principal over a protocol, the newest first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn stored_connections(&self, protocol: &str) -> Result<Vec<ResumableConnection>, Error> {
        self.engine.shared.log.connections(&self.access.principal, protocol).await
    }
}

impl Engine {
    /// Removes the stored connections that can no longer be resumed at this moment; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn remove_expired_connections(&self, now: Timestamp) -> Result<u64, Error> {
        self.shared.log.remove_expired_connections(now).await
    }
}

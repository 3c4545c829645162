//! Connections that clients may resume: what a protocol must know again once a client comes back, also under another daemon.

use async_trait::async_trait;
use mainstay_model::{Error, Principal, Timestamp};
use serde_json::Value;

/// Stores connections that clients may resume.
#[async_trait]
pub trait ResumableConnections: Send + Sync + 'static {
    /// Stores a connection, in the place of what was stored under its id.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn store_connection(&self, connection: ResumableConnection) -> Result<(), Error>;

    /// The connection of this id, also one that has expired and was not removed yet.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn connection(&self, id: &str) -> Result<Option<ResumableConnection>, Error>;

    /// The connections of a principal over a protocol, the newest first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn connections(
        &self,
        principal: &Principal,
        protocol: &str,
    ) -> Result<Vec<ResumableConnection>, Error>;

    /// Removes the connections that expired before this moment; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_expired_connections(&self, before: Timestamp) -> Result<u64, Error>;
}

/// A connection that its client may resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumableConnection {
    /// The name of the connection, which no other has.
    pub id: String,
    /// The principal for whom the client acts.
    pub principal: Principal,
    /// The protocol that the connection speaks.
    pub protocol: String,
    /// When the connection was opened first.
    pub opened_at: Timestamp,
    /// When the client may no longer resume it.
    pub expires_at: Timestamp,
    /// What the protocol must know again. It holds no secret but as a hash.
    pub state: Value,
}

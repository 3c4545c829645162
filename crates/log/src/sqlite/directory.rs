//! Listing and finding sessions in the database.

use async_trait::async_trait;
use mainstay_model::{Error, Session, SessionId};

use super::{SqliteLog, queries};
use crate::{Directory, SessionFilter};

#[async_trait]
impl Directory for SqliteLog {
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.readers.run(move |connection| queries::sessions(connection, &filter)).await
    }

    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.readers.run(move |connection| queries::count_sessions(connection, &filter)).await
    }

    async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error> {
        let reference = reference.to_owned();
        self.readers.run(move |connection| queries::resolve(connection, &reference)).await
    }
}

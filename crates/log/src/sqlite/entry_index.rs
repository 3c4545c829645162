//! Reading entries, and making those that are missing first.

use async_trait::async_trait;
use mainstay_model::{Error, Session, SessionId, TranscriptEntry};

use super::{SqliteLog, entries, search};
use crate::{EntryFilter, EntryIndex};

#[async_trait]
impl EntryIndex for SqliteLog {
    async fn own_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| entries::own(connection, session, from, limit)).await
    }

    async fn count_own_entries(&self, session: SessionId) -> Result<u64, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| entries::count(connection, session)).await
    }

    async fn search(&self, filter: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| search::search(connection, &filter)).await
    }
}

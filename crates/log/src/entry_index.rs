//! The transcripts of sessions: their entries by number, and by the words in them.

use async_trait::async_trait;
use mainstay_model::search::Words;
use mainstay_model::{Error, Role, Session, SessionId, Timestamp, TranscriptEntry};

use crate::SessionFilter;

/// Gives the entries of transcripts.
#[async_trait]
pub trait EntryIndex: Send + Sync + 'static {
    /// A session's own entries from the one with this number on, in order, at most `limit`: of all that it had when this was
    /// asked. Each is verified against its hash.
    ///
    /// # Errors
    /// [`Error::EntryDamaged`], [`Error::StoreFailed`]; a session that does not exist has none.
    async fn own_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error>;

    /// How many entries of its own a session has.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn count_own_entries(&self, session: SessionId) -> Result<u64, Error>;

    /// The entries that match, each wherever it came to be, with its session; the best first. Each is verified against its
    /// hash.
    ///
    /// # Errors
    /// [`Error::EntryDamaged`], [`Error::StoreFailed`].
    async fn search(&self, filter: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error>;
}

/// Chooses the entries to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFilter {
    /// What must be in them.
    pub words: Words,
    /// Only those with one of these roles; with any where there is none.
    pub roles: Vec<Role>,
    /// Only those of these sessions; the filter's limit does not matter.
    pub sessions: SessionFilter,
    /// Only those that came to be then or later.
    pub since: Option<Timestamp>,
    /// Only those that came to be before.
    pub until: Option<Timestamp>,
    /// Not the first so many.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

//! Reading the transcripts of sessions from the engine's log.

use mainstay_model::transcript::slice;
use mainstay_model::{Error, Segment, Session, SessionId, TranscriptEntry};

use super::Engine;
use crate::entries::{entries_of, segments_of, text_of};

impl Engine {
    /// The entries of a session's transcript from the one with this index on, in order, at most `limit`.
    pub(crate) async fn entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        let session = self.stored(session).await?;
        let segments = self.segments_of(&session).await?;
        self.entries_of(&slice(&segments, from..from.saturating_add(limit as u64))).await
    }

    /// All that an entry says.
    pub(crate) async fn text_of(&self, placed: &TranscriptEntry) -> Result<String, Error> {
        text_of(self.shared.log.as_ref(), placed).await
    }

    /// The entries that these stand for.
    pub(crate) async fn entries_of(&self, segments: &[Segment]) -> Result<Vec<TranscriptEntry>, Error> {
        entries_of(self.shared.log.as_ref(), segments).await
    }

    /// What a session's transcript consists of now.
    pub(crate) async fn segments_of(&self, session: &Session) -> Result<Vec<Segment>, Error> {
        segments_of(self.shared.log.as_ref(), session).await
    }
}

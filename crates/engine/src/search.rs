//! Search over what sessions said.

use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Error, Session, SessionState, TranscriptEntry, Validity};

use crate::client::Client;

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The session it came to be in; where that was deleted, one that has it in its transcript.
    pub session: Session,
    /// Its index in that session's transcript; none where the transcript does not have it.
    pub index: Option<u64>,
    /// The entry that was found.
    pub placed: TranscriptEntry,
    /// What was found, and what is around it, on one line.
    pub snippet: String,
    /// How far it still holds; none of what is no cell's, where nothing could change, and of idle sessions.
    pub validity: Option<Validity>,
}

impl Client {
    /// The entries that match, of sessions that may be seen; the best first.
    ///
    /// # Errors
    /// [`Error::EntryDamaged`], [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    pub async fn search(&self, filter: EntryFilter) -> Result<Vec<SearchHit>, Error> {
        let sessions: SessionFilter = self.seen(filter.sessions);
        let words = filter.words.clone();
        let hits = self.engine().shared.log.search(EntryFilter { sessions, ..filter }).await?;
        // Of an idle one all events would have to be read for it.
        let is_in_use = |session: &Session| session.state() != SessionState::Uninitialized;
        let in_use: Vec<_> =
            hits.iter().filter(|(session, _)| is_in_use(session)).map(|(_, placed)| placed.clone()).collect();
        let mut validities = self.validities_of_entries(&in_use).await?.into_iter();
        let mut found = Vec::with_capacity(hits.len());
        for (session, placed) in hits {
            let validity = if is_in_use(&session) { validities.next().flatten() } else { None };
            let snippet = self.snippet(&words, &placed).await?;
            let index = session.transcript.index_of(session.id, placed.session, placed.number);
            found.push(SearchHit { session, index, placed, snippet, validity });
        }
        Ok(found)
    }

    async fn snippet(&self, words: &Words, placed: &TranscriptEntry) -> Result<String, Error> {
        self.engine().text_of(placed).await.map(|text| words.snippet(&placed.entry.shown(&text)))
    }
}

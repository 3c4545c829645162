//! Labels of entries: which entry is meant, and what the entries of a transcript are called.

use mainstay_model::command;
use mainstay_model::transcript::{slice, total};
use mainstay_model::{Error, Label, Origin, SessionCommand, SessionId, TranscriptEntry};

use crate::client::Client;

impl Client {
    /// The command that gives the entry with this index a label, or takes it off.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::InvalidArgument`] where there is no such entry,
    /// [`Error::StoreFailed`].
    pub async fn labeling(
        &self,
        session: SessionId,
        index: u64,
        label: Option<String>,
    ) -> Result<SessionCommand, Error> {
        let session = self.visible_session(session).await?;
        let segments = self.engine().segments_of(&session).await?;
        match slice(&segments, index..index.saturating_add(1)).as_slice() {
            [segment, ..] => {
                let entry = Origin { session: segment.session, number: segment.from };
                Ok(SessionCommand::Label(command::Label { index, entry, label }))
            }
            [] => {
                let all = total(&segments);
                let reason = format!("it has {all} entries, and number {} is meant", index.saturating_add(1));
                Err(Error::InvalidArgument { argument: "entry".to_owned(), reason })
            }
        }
    }

    /// What entries of a session's transcript are called, each with its index there, in order.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn labels(&self, session: SessionId) -> Result<Vec<(u64, Label)>, Error> {
        let session = self.visible_session(session).await?;
        let segments = self.engine().segments_of(&session).await?;
        Ok(session
            .labels
            .placed(&segments)
            .into_iter()
            .map(|(index, label)| (index, label.clone()))
            .collect())
    }

    /// What each of these entries is called in a session.
    ///
    /// # Errors
    /// As [`Client::labels`].
    pub async fn labels_of(
        &self,
        session: SessionId,
        entries: &[TranscriptEntry],
    ) -> Result<Vec<Option<String>>, Error> {
        let labels = self.visible_session(session).await?.labels;
        let label = |placed: &TranscriptEntry| Some(labels.of(placed.session, placed.number)?.text.clone());
        Ok(entries.iter().map(label).collect())
    }
}

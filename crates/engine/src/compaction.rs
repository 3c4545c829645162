//! Compaction: which entries a summary stands for. They end where a whole unit does; what it stands for stays readable.

use mainstay_model::command;
use mainstay_model::transcript::{context, slice, total};
use mainstay_model::{Error, SessionCommand, SessionId, TranscriptEntry};

use crate::client::Client;
use crate::units::whole_beginning_of;

impl Client {
    /// The command that has a summary stand for the entries before the one with the index `before`. Where a call would lose its
    /// result, it stands for fewer.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::InvalidArgument`] where there are no such entries,
    /// [`Error::EntryDamaged`], [`Error::StoreFailed`].
    pub async fn compaction(
        &self,
        session: SessionId,
        before: u64,
        summary: String,
    ) -> Result<SessionCommand, Error> {
        let session = self.visible_session(session).await?;
        let segments = self.engine().segments_of(&session).await?;
        let all = total(&segments);
        let invalid = |reason| Error::InvalidArgument { argument: "before".to_owned(), reason };
        if before > all {
            return Err(invalid(format!("it has {all} entries, and {before} of them are meant")));
        }
        let entries = whole_beginning_of(self.engine().shared.log.as_ref(), &segments, before).await?;
        if entries == 0 {
            return Err(invalid("there is no whole entry before it".to_owned()));
        }
        let asked = (entries != before).then_some(before);
        Ok(SessionCommand::Compact(command::Compact { covers: slice(&segments, 0..entries), asked, summary }))
    }

    /// What an agent is shown of a session: the newest summary, then what it does not stand for.
    ///
    /// # Errors
    /// As [`Client::entries`].
    pub async fn context(&self, session: SessionId) -> Result<Vec<TranscriptEntry>, Error> {
        let entries = self.entries(session, 0, usize::MAX).await?;
        Ok(context(&entries).into_iter().cloned().collect())
    }
}

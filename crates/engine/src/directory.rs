//! The directory of sessions as it changes: which come, and which go.

use mainstay_model::{CommandId, Error, EventBody, EventFilter, EventKind, Principal, SessionId};

use crate::engine::Engine;
use crate::hub::{Cursor, Subscription};

/// Follows the directory. It tells that sessions are there, whoever may see them: that is for those to ask who pass it on.
pub struct Directory(Subscription);

/// A session has come, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryChange {
    /// Which.
    pub session: SessionId,
    /// Whether it is there now.
    pub is_there: bool,
    /// On whose behalf.
    pub principal: Principal,
    /// By which command; none where that is not known.
    pub command: Option<CommandId>,
}

impl Engine {
    /// Follows the directory from now on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn directory(&self) -> Result<Directory, Error> {
        let after = self.shared.log.last_position().await?;
        let kinds = ["sessionCreated", "sessionDeleted"].map(str::parse::<EventKind>);
        let kinds = kinds.into_iter().collect::<Result<_, _>>()?;
        let filter = EventFilter { kinds, ..EventFilter::default() };
        Ok(Directory(self.follow(Cursor::Log { after }, filter)))
    }
}

impl Directory {
    /// The next change; waits for it.
    ///
    /// # Errors
    /// [`Error::DaemonStopping`], [`Error::StoreFailed`].
    pub async fn next(&mut self) -> Result<DirectoryChange, Error> {
        let event = self.0.next().await?;
        Ok(DirectoryChange {
            session: event.session,
            is_there: !matches!(event.body, EventBody::SessionDeleted),
            principal: event.metadata.source.principal(),
            command: event.metadata.correlation.clone(),
        })
    }
}

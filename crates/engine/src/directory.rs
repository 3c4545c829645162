//! The directory of sessions as it changes: which come, and which go.

use mainstay_model::{CommandId, Error, EventBody, EventFilter, EventKind, Principal, SessionId};

use crate::engine::Engine;
use crate::hub::{Cursor, Subscription};

/// Follows the directory. It tells that sessions are there, whoever may see them: that is for those to ask who pass it on.
pub struct Directory(Subscription);

/// What became of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// It was unloaded; this was its alias.
    Unloaded(Option<String>),
    /// It was loaded again.
    Loaded,
}

/// A session has come, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryChange {
    /// Which.
    pub session: SessionId,
    /// What became of it.
    pub change: Presence,
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
        let kinds = ["sessionCreated", "sessionDeleted", "sessionUnloaded", "sessionLoaded"];
        let kinds = kinds.map(str::parse::<EventKind>);
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
            change: match &event.body {
                EventBody::SessionDeleted => Presence::Deleted,
                EventBody::SessionUnloaded { alias } => Presence::Unloaded(alias.clone()),
                EventBody::SessionLoaded { .. } => Presence::Loaded,
                _ => Presence::Created,
            },
            principal: event.metadata.source.principal(),
            command: event.metadata.correlation.clone(),
        })
    }
}

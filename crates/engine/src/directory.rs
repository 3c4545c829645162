//! The directory of sessions as it changes: which come, and which go.

use mainstay_model::{CommandId, Error, EventBody, EventFilter, EventKind, Principal, SessionId};

use crate::engine::Engine;
use crate::hub::{Cursor, Subscription};

/// Follows the directory. It tells that sessions are there, whoever may see them: that is for those to ask who pass it on.
pub struct Directory(Subscription);

/// How the directory has changed by a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryChangeKind {
    /// The session was created, whether empty, forked or imported.
    Created,
    /// The session was deleted for good.
    Deleted,
    /// The session was unloaded; this was its alias.
    Unloaded(Option<String>),
    /// The session was loaded again after it had been unloaded.
    Loaded,
}

/// A session has come, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryChange {
    /// The session that has come or gone.
    pub session: SessionId,
    /// What has become of it.
    pub kind: DirectoryChangeKind,
    /// The principal on whose behalf that was done.
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
            kind: match &event.body {
                EventBody::SessionDeleted => DirectoryChangeKind::Deleted,
                EventBody::SessionUnloaded { alias } => DirectoryChangeKind::Unloaded(alias.clone()),
                EventBody::SessionLoaded { .. } => DirectoryChangeKind::Loaded,
                _ => DirectoryChangeKind::Created,
            },
            principal: event.metadata.source.principal(),
            command: event.metadata.correlation.clone(),
        })
    }
}

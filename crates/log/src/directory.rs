//! The directory of sessions: listing them, counting them, finding one by what a person writes.

use async_trait::async_trait;
use mainstay_model::{Access, Error, Principal, Session, SessionId, SessionKind};

/// Lists sessions, and finds them by name, alias or folder.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// The sessions that match, most recently active first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error>;

    /// How many sessions match, whatever the filter's limit.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error>;

    /// The sessions whose id, end of id (four hexadecimal digits or more) or name is `reference`.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error>;
}

/// Chooses the sessions to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Return only the session with this id.
    pub id: Option<SessionId>,
    /// Only those that run in this folder.
    pub working_directory: Option<String>,
    /// Only those that run in this folder or below it, or are for a project that lies there.
    pub within: Option<String>,
    /// Only those of this name.
    pub name: Option<String>,
    /// Only what its creator calls this.
    pub alias: Option<String>,
    /// Only those that belong to this principal.
    pub owner: Option<Principal>,
    /// Only those whose work this does.
    pub kind: Option<SessionKind>,
    /// Only those that were forked off this one.
    pub forked_from: Option<SessionId>,
    /// Only those that are not idle.
    pub live: bool,
    /// Only those in which an ask waits for an answer.
    pub asks: bool,
    /// Only those in which a command waits for its turn.
    pub waits: bool,
    /// Only those with tasks that their jobs gave to others and that have not ended.
    pub delegates: bool,
    /// Only those that are loaded.
    pub loaded: bool,
    /// Those that were deleted too.
    pub with_deleted: bool,
    /// Only those that this principal sees.
    pub seen_by: Option<Access>,
    /// At most so many; all where absent.
    pub limit: Option<usize>,
}

//! The lines that principals typed.

use async_trait::async_trait;
use mainstay_model::{Error, HistoryPage, LineNumber, NewLine, Principal, SessionId};

/// Stores the lines of principals' histories.
#[async_trait]
pub trait PromptHistory: Send + Sync + 'static {
    /// Keeps a line of a principal's history, large ones as objects; one that is there already under the same id is kept once.
    /// Of all the principal's lines at most `keep` stay, the newest ones.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn add_history(
        &self,
        principal: &Principal,
        line: NewLine,
        keep: Option<u64>,
    ) -> Result<LineNumber, Error>;

    /// The lines of a principal's history that match, newest first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error>;

    /// Removes the lines that match, whatever the filter's limit; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error>;
}

/// Which lines of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only those of this principal.
    pub principal: Principal,
    /// Return only the line of this number.
    pub number: Option<LineNumber>,
    /// Only those of this folder, and those of which no folder is known.
    pub folder: Option<String>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those in which each of these stands, in small or capital letters; of an object only the beginning is looked at.
    pub words: Vec<String>,
    /// Return only lines older than this one.
    pub before: Option<LineNumber>,
    /// Return only lines newer than this one.
    pub after: Option<LineNumber>,
    /// At most so many; all where absent.
    pub limit: Option<usize>,
}

impl HistoryFilter {
    /// All lines of a principal.
    pub fn of(principal: Principal) -> Self {
        Self {
            principal,
            number: None,
            folder: None,
            session: None,
            words: Vec::new(),
            before: None,
            after: None,
            limit: None,
        }
    }
}

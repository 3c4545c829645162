//! The upkeep of a store: collections of what deleted sessions left, backups, and numbers.

use std::path::PathBuf;

use async_trait::async_trait;
use mainstay_model::{Error, SessionId, Timestamp};

use mainstay_model::store::{Collected, Collection, Manifest, SessionStatistics, StoreStatistics};

/// Keeps a store in order.
#[async_trait]
pub trait Maintenance: Send + Sync + 'static {
    /// Removes some of what deleted sessions have left and no other refers to: their events but for the last, entries, outcomes,
    /// and the objects of those. Gives what it removed, and where to go on; nothing more where that is all. It may end at any
    /// step, and another may begin anew.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error>;

    /// Writes a backup of all that is there now into a folder that is empty or not there, while all else goes on. It is whole once
    /// this has ended well; else nothing is left of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the folder is not empty, [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    async fn backup(&self, folder: PathBuf, now: Timestamp) -> Result<Manifest, Error>;

    /// What is stored, in numbers. It looks at every object and counts every event.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn statistics(&self) -> Result<StoreStatistics, Error>;

    /// What is stored of a session, in numbers.
    ///
    /// # Errors
    /// [`Error::StoreFailed`]; one that does not exist has nothing.
    async fn session_statistics(&self, session: SessionId) -> Result<SessionStatistics, Error>;
}

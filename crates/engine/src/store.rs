//! The store as a whole: collections of what deleted sessions left, backups, and numbers.

use std::path::PathBuf;

use mainstay_model::store::{Collected, Collection, Manifest, SessionStatistics, StoreStatistics};
use mainstay_model::{Error, Session, SessionId};

use crate::client::Client;
use crate::clock::now;

/// A session in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The session that the figures describe.
    pub session: Session,
    /// How many entries its transcript has, those of other sessions included.
    pub transcript: u64,
    /// What is stored of it.
    pub stored: SessionStatistics,
}

impl Client {
    /// Removes some of what deleted sessions have left and no other refers to. Gives what it removed, and where to go on; nothing
    /// more where that is all.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for who may not do everything, [`Error::StoreFailed`].
    pub async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error> {
        self.require_all("collect what deleted sessions left")?;
        let collected = self.engine().shared.log.collect(from).await?;
        if collected.1.is_none() {
            self.forget_the_gone().await?;
        }
        Ok(collected)
    }

    /// Has those who start runners remove what they keep of sessions that are gone.
    async fn forget_the_gone(&self) -> Result<(), Error> {
        let shared = &self.engine().shared;
        for factory in &shared.factories {
            for session in factory.kept().await {
                if shared.log.session(session).await?.is_none_or(|session| session.deleted_at.is_some()) {
                    factory.forget(session).await;
                }
            }
        }
        for session in shared.environments.kept() {
            if shared.log.session(session).await?.is_none_or(|session| session.deleted_at.is_some()) {
                shared.environments.forget(session);
            }
        }
        for session in shared.measurements.kept() {
            if shared.log.session(session).await?.is_none_or(|session| session.deleted_at.is_some()) {
                shared.measurements.forget(session);
            }
        }
        Ok(())
    }

    /// Writes a backup of all that is stored now into a folder that is empty or not there.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for who may not do everything, [`Error::InvalidArgument`] where the folder is not empty or no absolute
    /// path, [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    pub async fn back_up(&self, folder: PathBuf) -> Result<Manifest, Error> {
        self.require_all("back up what is stored")?;
        if !folder.is_absolute() {
            let reason = format!("`{}` is no absolute path", folder.display());
            return Err(Error::InvalidArgument { argument: "folder".to_owned(), reason });
        }
        self.engine().shared.log.backup(folder, now()).await
    }

    /// What is stored, in numbers.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for who may not do everything, [`Error::StoreFailed`].
    pub async fn store_statistics(&self) -> Result<StoreStatistics, Error> {
        self.require_all("see what the store holds")?;
        self.engine().shared.log.statistics().await
    }

    /// A session in numbers.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn statistics(&self, session: SessionId) -> Result<Statistics, Error> {
        let session = self.visible_session(session).await?;
        let stored = self.engine().shared.log.session_statistics(session.id).await?;
        let transcript = session.transcript.len(stored.entries);
        Ok(Statistics { session, transcript, stored })
    }
}

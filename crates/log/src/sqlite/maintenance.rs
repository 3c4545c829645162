//! Collections, backups and numbers of the database.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::{Error, SessionId, Timestamp};
use tokio::task::spawn_blocking;

use super::failure::failed;
use super::{SqliteLog, backup, collect, statistics};
use crate::Maintenance;
use mainstay_model::store::{Collected, Collection, Manifest, SessionStatistics, StoreStatistics};

#[async_trait]
impl Maintenance for SqliteLog {
    async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error> {
        match from {
            Collection::Sessions { after } => {
                // Else entries would be made of what is left of a cell.
                self.transcribe_silently().await?;
                self.writer.submit(0, move |statements| collect::sessions(statements, after)).await
            }
            Collection::Outcomes { after } => {
                self.writer.submit(0, move |statements| collect::outcomes(statements, after.as_ref())).await
            }
            Collection::Files { shelf } => {
                let objects = Arc::clone(&self.objects);
                self.readers.run(move |connection| collect::files(connection, &objects, shelf)).await
            }
        }
    }

    async fn backup(&self, folder: PathBuf, now: Timestamp) -> Result<Manifest, Error> {
        let (database, objects) = (self.database.clone(), Arc::clone(&self.objects));
        let made = spawn_blocking(move || backup::make(&database, &objects, &folder, now));
        made.await.map_err(failed)?
    }

    async fn statistics(&self) -> Result<StoreStatistics, Error> {
        self.transcribe_silently().await?;
        self.readers.run(statistics::store).await
    }

    async fn session_statistics(&self, session: SessionId) -> Result<SessionStatistics, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| statistics::session(connection, session)).await
    }
}

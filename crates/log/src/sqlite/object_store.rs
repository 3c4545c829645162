//! Putting objects into the database or the folder beside it, and reading them.

use async_trait::async_trait;
use mainstay_model::Error;

use super::{SqliteLog, objects};
use crate::{ObjectHash, Objects};

#[async_trait]
impl Objects for SqliteLog {
    async fn put_object(&self, bytes: Vec<u8>) -> Result<ObjectHash, Error> {
        let row = self.objects.keep(bytes).await?;
        let hash = row.hash.clone();
        self.writer.submit(row.bytes(), move |statements| row.store(statements)).await?;
        Ok(hash)
    }

    async fn object(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
        let wanted = hash.clone();
        match self.readers.run(move |connection| objects::find(connection, &wanted)).await? {
            Some(inline) => objects::verified(hash, inline),
            None => self.objects.read(hash).await,
        }
    }
}

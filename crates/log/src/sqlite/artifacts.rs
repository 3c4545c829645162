//! Keeping and reading artifacts.

use async_trait::async_trait;
use mainstay_model::{Error, ObjectHash, Principal, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::failed;
use super::objects::release;
use super::rows::{count, integer};
use super::statements::Statements;
use super::{SqliteLog, objects};
use crate::{Artifact, Artifacts, NewArtifact};

/// How many artifacts one step removes.
const STEP: i64 = 512;

const COLUMNS: &str = "id, principal, media_type, sha256, created_at, expires_at, object, size";

#[async_trait]
impl Artifacts for SqliteLog {
    async fn put_artifact(
        &self,
        artifact: NewArtifact,
        bytes: Vec<u8>,
        limit: u64,
    ) -> Result<Artifact, Error> {
        let size = bytes.len() as u64;
        let row = self.objects.keep(bytes).await?;
        let id = artifact.id.clone();
        let new = Artifact { stored: artifact, object: row.hash.clone(), size };
        let stored = self
            .writer
            .submit(row.bytes(), move |statements| {
                let stored = bytes_of(statements, &new.stored.principal)?;
                if stored.saturating_add(size) > limit {
                    return Ok(Err(stored));
                }
                row.store(statements)?;
                if !insert(statements, &new)? {
                    // Another of this id is there, which may have other content.
                    release(statements, row.hash.as_str())?;
                }
                Ok(Ok(()))
            })
            .await?;
        stored.map_err(|stored| Error::ArtifactsTooLarge { stored, limit })?;
        self.artifact(&id).await?.ok_or_else(|| failed("the artifact is gone"))
    }

    async fn artifact(&self, id: &str) -> Result<Option<Artifact>, Error> {
        let id = id.to_owned();
        self.readers.run(move |connection| find(connection, &id)).await
    }

    async fn release_artifact(&self, id: &str) -> Result<bool, Error> {
        let id = id.to_owned();
        self.writer
            .submit(0, move |statements| {
                let object: Option<String> = statements
                    .get("DELETE FROM artifact WHERE id = ?1 RETURNING object")?
                    .query_row([&id], |row| row.get(0))
                    .optional()?;
                if let Some(object) = &object {
                    objects::release(statements, object)?;
                }
                Ok(object.is_some())
            })
            .await
    }

    async fn remove_expired_artifacts(&self, before: Timestamp) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let step = self.writer.submit(0, move |statements| Ok(remove_some(statements, before)?)).await?;
            removed += step;
            if step < STEP.unsigned_abs() {
                return Ok(removed);
            }
        }
    }
}

/// How many bytes the artifacts of a principal have together.
fn bytes_of(statements: &mut Statements<'_>, principal: &Principal) -> rusqlite::Result<u64> {
    statements
        .get("SELECT coalesce(sum(size), 0) FROM artifact WHERE principal = ?1")?
        .query_row([principal.as_str()], |row| count(row, 0))
}

fn insert(statements: &mut Statements<'_>, artifact: &Artifact) -> rusqlite::Result<bool> {
    let Artifact { stored, object, size } = artifact;
    let added = statements
        .get(
            "INSERT INTO artifact (id, principal, media_type, sha256, created_at, expires_at, object, size)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            stored.id,
            stored.principal.as_str(),
            stored.media_type,
            stored.sha256,
            stored.created_at.as_microsecond(),
            stored.expires_at.as_microsecond(),
            object.as_str(),
            integer(*size)
        ])?;
    Ok(added > 0)
}

fn remove_some(statements: &mut Statements<'_>, before: Timestamp) -> rusqlite::Result<u64> {
    let expired: Vec<(String, String)> = statements
        .get("SELECT id, object FROM artifact WHERE expires_at < ?1 LIMIT ?2")?
        .query_map(params![before.as_microsecond(), STEP], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (id, object) in &expired {
        statements.get("DELETE FROM artifact WHERE id = ?1")?.execute([id])?;
        release(statements, object)?;
    }
    Ok(expired.len() as u64)
}

fn find(connection: &Connection, id: &str) -> Result<Option<Artifact>, Error> {
    let found = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM artifact WHERE id = ?1"))
        .and_then(|mut select| select.query_row([id], |row| Ok(decode(row))).optional())
        .map_err(failed)?;
    found.transpose()
}

fn decode(row: &Row<'_>) -> Result<Artifact, Error> {
    let text = |column| row.get::<_, String>(column).map_err(failed);
    let moment = |column| {
        let microseconds = row.get::<_, i64>(column).map_err(failed)?;
        Timestamp::from_microsecond(microseconds).map_err(failed)
    };
    Ok(Artifact {
        stored: NewArtifact {
            id: text(0)?,
            principal: Principal::new(text(1)?)?,
            media_type: text(2)?,
            sha256: text(3)?,
            created_at: moment(4)?,
            expires_at: moment(5)?,
        },
        object: ObjectHash::from_stored(text(6)?),
        size: count(row, 7).map_err(failed)?,
    })
}

//! Keeping and reading the connections that clients may resume.

use async_trait::async_trait;
use mainstay_model::{Error, Principal, Timestamp};
use rusqlite::{Row, ToSql, params};

use super::SqliteLog;
use super::failure::failed;
use super::queries::collect;
use crate::{ResumableConnection, ResumableConnections};

const COLUMNS: &str =
    "SELECT id, principal, protocol, opened_at, expires_at, state FROM resumable_connection";

#[async_trait]
impl ResumableConnections for SqliteLog {
    async fn store_connection(&self, connection: ResumableConnection) -> Result<(), Error> {
        let state = connection.state.to_string();
        self.writer
            .submit(state.len(), move |statements| {
                let ResumableConnection { id, principal, protocol, opened_at, expires_at, state: _ } =
                    &connection;
                statements
                    .get(
                        "INSERT INTO resumable_connection (id, principal, protocol, opened_at, expires_at, state)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                         ON CONFLICT (id) DO UPDATE SET
                             principal = ?2, protocol = ?3, opened_at = ?4, expires_at = ?5, state = ?6",
                    )?
                    .execute(params![
                        id,
                        principal.as_str(),
                        protocol,
                        opened_at.as_microsecond(),
                        expires_at.as_microsecond(),
                        state
                    ])?;
                Ok(())
            })
            .await
    }

    async fn connection(&self, id: &str) -> Result<Option<ResumableConnection>, Error> {
        let found = self.read("WHERE id = ?1", vec![id.to_owned()]).await?;
        Ok(found.into_iter().next())
    }

    async fn connections(
        &self,
        principal: &Principal,
        protocol: &str,
    ) -> Result<Vec<ResumableConnection>, Error> {
        let values = vec![principal.as_str().to_owned(), protocol.to_owned()];
        self.read("WHERE principal = ?1 AND protocol = ?2 ORDER BY opened_at DESC, id", values).await
    }

    async fn remove_expired_connections(&self, before: Timestamp) -> Result<u64, Error> {
        self.writer
            .submit(0, move |statements| {
                let removed = statements
                    .get("DELETE FROM resumable_connection WHERE expires_at < ?1")?
                    .execute([before.as_microsecond()])?;
                Ok(removed as u64)
            })
            .await
    }
}

impl SqliteLog {
    async fn read(&self, chosen: &str, values: Vec<String>) -> Result<Vec<ResumableConnection>, Error> {
        let sql = format!("{COLUMNS} {chosen}");
        let read = move |connection: &rusqlite::Connection| {
            let values = values.iter().map(|value| value as &dyn ToSql);
            collect(connection, &sql, rusqlite::params_from_iter(values), decode)
        };
        self.readers.run(read).await
    }
}

fn decode(row: &Row<'_>) -> Result<ResumableConnection, Error> {
    let text = |column| row.get::<_, String>(column).map_err(failed);
    let moment = |column| {
        let microseconds = row.get::<_, i64>(column).map_err(failed)?;
        Timestamp::from_microsecond(microseconds).map_err(failed)
    };
    Ok(ResumableConnection {
        id: text(0)?,
        principal: Principal::new(text(1)?)?,
        protocol: text(2)?,
        opened_at: moment(3)?,
        expires_at: moment(4)?,
        state: serde_json::from_str(&text(5)?).map_err(failed)?,
    })
}

//! Keeping and reading schedules.

use async_trait::async_trait;
use mainstay_model::schedule::Schedule;
use mainstay_model::{Error, Principal, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::SqliteLog;
use super::failure::failed;
use super::queries::collect;
use super::rows::{count, integer};
use super::statements::Statements;
use crate::{AddedSchedule, DueSchedules, Schedules, StoredSchedule};

const COLUMNS: &str = "SELECT schedule, revision FROM schedule";

#[async_trait]
impl Schedules for SqliteLog {
    async fn add_schedule(&self, schedule: Schedule, limit: u64) -> Result<AddedSchedule, Error> {
        let text = serde_json::to_string(&schedule).map_err(failed)?;
        let id = schedule.id.clone();
        let is_room = self
            .writer
            .submit(text.len(), move |statements| {
                let is_known: bool = statements
                    .get("SELECT EXISTS (SELECT 1 FROM schedule WHERE id = ?1)")?
                    .query_row([&schedule.id], |row| row.get(0))?;
                if is_known {
                    return Ok(None);
                }
                let is_room = open_of(statements, &schedule.principal)? < limit;
                if is_room {
                    insert(statements, &schedule, &text)?;
                }
                Ok(Some(is_room))
            })
            .await?;
        match is_room {
            Some(true) => Ok(AddedSchedule::New),
            Some(false) => Ok(AddedSchedule::TooMany),
            None => match self.schedule(&id).await? {
                Some(known) => Ok(AddedSchedule::Known(Box::new(known))),
                None => Err(failed("the schedule is gone")),
            },
        }
    }

    async fn schedule(&self, id: &str) -> Result<Option<StoredSchedule>, Error> {
        let id = id.to_owned();
        self.readers.run(move |connection| find(connection, &id)).await
    }

    async fn schedules(&self, principal: &Principal) -> Result<Vec<StoredSchedule>, Error> {
        let values: Vec<Box<dyn ToSql + Send>> = vec![Box::new(principal.as_str().to_owned())];
        self.read_schedules("WHERE principal = ?1 ORDER BY created_at, id", values).await
    }

    async fn next_schedules(&self, limit: usize) -> Result<Vec<StoredSchedule>, Error> {
        let values: Vec<Box<dyn ToSql + Send>> = vec![Box::new(i64::try_from(limit).unwrap_or(i64::MAX))];
        self.read_schedules("WHERE wakes_at IS NOT NULL ORDER BY wakes_at, id LIMIT ?1", values).await
    }

    async fn due_schedules(&self, now: Timestamp) -> Result<DueSchedules, Error> {
        let now = now.as_microsecond();
        let values: Vec<Box<dyn ToSql + Send>> = vec![Box::new(now)];
        let schedules = self.read_schedules("WHERE wakes_at <= ?1 ORDER BY wakes_at, id", values).await?;
        let first = move |connection: &Connection| {
            let sql = "SELECT MIN(wakes_at) FROM schedule WHERE wakes_at > ?1";
            connection.query_row(sql, [now], |row| row.get::<_, Option<i64>>(0)).map_err(failed)
        };
        let next = self.readers.run(first).await?;
        Ok(DueSchedules { schedules, next: next.and_then(|at| Timestamp::from_microsecond(at).ok()) })
    }

    async fn change_schedule(&self, revision: u64, schedule: Schedule) -> Result<bool, Error> {
        let text = serde_json::to_string(&schedule).map_err(failed)?;
        self.writer
            .submit(text.len(), move |statements| {
                let changed = statements
                    .get(
                        "UPDATE schedule
                         SET wakes_at = ?3, planned_to = ?4, schedule = ?5, revision = revision + 1
                         WHERE id = ?1 AND revision = ?2",
                    )?
                    .execute(params![
                        schedule.id,
                        integer(revision),
                        schedule.wakes_at().map(Timestamp::as_microsecond),
                        schedule.state.planned_to.as_microsecond(),
                        text
                    ])?;
                Ok(changed > 0)
            })
            .await
    }

    async fn remove_schedule(&self, id: &str) -> Result<bool, Error> {
        let id = id.to_owned();
        self.writer
            .submit(0, move |statements| {
                Ok(statements.get("DELETE FROM schedule WHERE id = ?1")?.execute([&id])? > 0)
            })
            .await
    }

    async fn remove_ended_schedules(&self, before: Timestamp) -> Result<u64, Error> {
        self.writer
            .submit(0, move |statements| {
                let removed = statements
                    .get("DELETE FROM schedule WHERE wakes_at IS NULL AND planned_to < ?1")?
                    .execute([before.as_microsecond()])?;
                Ok(removed as u64)
            })
            .await
    }
}

impl SqliteLog {
    async fn read_schedules(
        &self,
        chosen: &str,
        values: Vec<Box<dyn ToSql + Send>>,
    ) -> Result<Vec<StoredSchedule>, Error> {
        let sql = format!("{COLUMNS} {chosen}");
        let read = move |connection: &Connection| {
            let values = values.iter().map(|value| &**value as &dyn ToSql);
            collect(connection, &sql, rusqlite::params_from_iter(values), |row| Ok(decode(row)))
        };
        let found = self.readers.run(read).await?;
        // One that cannot be read, since a later version wrote it, keeps no other from its runs.
        let read = |stored: Result<StoredSchedule, Error>| {
            stored.inspect_err(|error| tracing::warn!(%error, "a schedule cannot be read")).ok()
        };
        Ok(found.into_iter().filter_map(read).collect())
    }
}

/// How many schedules of a principal have not ended.
fn open_of(statements: &mut Statements<'_>, principal: &Principal) -> Result<u64, rusqlite::Error> {
    statements
        .get("SELECT COUNT(*) FROM schedule WHERE principal = ?1 AND wakes_at IS NOT NULL")?
        .query_row([principal.as_str()], |row| row.get::<_, i64>(0))
        .map(|count| u64::try_from(count).unwrap_or_default())
}

fn insert(statements: &mut Statements<'_>, schedule: &Schedule, text: &str) -> Result<(), rusqlite::Error> {
    statements
        .get(
            "INSERT INTO schedule (id, principal, created_at, wakes_at, planned_to, revision, schedule)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
        )?
        .execute(params![
            schedule.id,
            schedule.principal.as_str(),
            schedule.created_at.as_microsecond(),
            schedule.wakes_at().map(Timestamp::as_microsecond),
            schedule.state.planned_to.as_microsecond(),
            text
        ])?;
    Ok(())
}

fn find(connection: &Connection, id: &str) -> Result<Option<StoredSchedule>, Error> {
    let sql = format!("{COLUMNS} WHERE id = ?1");
    connection.query_row(&sql, [id], |row| Ok(decode(row))).optional().map_err(failed)?.transpose()
}

pub(super) fn decode(row: &Row<'_>) -> Result<StoredSchedule, Error> {
    let text: String = row.get(0).map_err(failed)?;
    let schedule = serde_json::from_str(&text).map_err(failed)?;
    Ok(StoredSchedule { schedule, revision: count(row, 1).map_err(failed)? })
}

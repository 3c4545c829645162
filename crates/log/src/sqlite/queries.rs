//! What is read from the tables.

use mainstay_model::{CommandId, Error, Event, Principal, Seq, Session, SessionId, SessionState};
use rusqlite::{Connection, Params, Row, ToSql, params};

use super::failed;
use super::rows::{decode_event, decode_outcome, decode_session, decode_session_id, integer};
use crate::{SessionFilter, StoredOutcome};

pub(super) fn events(
    connection: &Connection,
    session: SessionId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Event>, Error> {
    collect(
        connection,
        "SELECT position, seq, at, kind, body, source, correlation, causation, environment FROM event
         WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        params![session.as_uuid().into_bytes(), integer(after.0), rows(limit)],
        |row| decode_event(session, row),
    )
}

pub(super) fn outcome(
    connection: &Connection,
    principal: &Principal,
    command: &CommandId,
) -> Result<Option<StoredOutcome>, Error> {
    let found = collect(
        connection,
        "SELECT fingerprint, response FROM outcome WHERE principal = ?1 AND command = ?2",
        params![principal.as_str(), command.as_str()],
        decode_outcome,
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn session(connection: &Connection, session: SessionId) -> Result<Option<Session>, Error> {
    let id = session.as_uuid().into_bytes();
    let found = collect(connection, "SELECT projection FROM session WHERE id = ?1", [id], decode_session)?;
    Ok(found.into_iter().next())
}

pub(super) fn sessions(connection: &Connection, filter: &SessionFilter) -> Result<Vec<Session>, Error> {
    let limit = rows(filter.limit.unwrap_or(usize::MAX));
    let at_rest = SessionState::Uninitialized.name();
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":limit", &limit)];
    let mut sql = String::from("SELECT projection FROM session WHERE TRUE");
    if let Some(folder) = &filter.working_directory {
        sql.push_str(" AND working_directory = :folder");
        values.push((":folder", folder));
    }
    if filter.live {
        sql.push_str(" AND state <> :at_rest");
        values.push((":at_rest", &at_rest));
    }
    sql.push_str(" ORDER BY last_activity DESC, id DESC LIMIT :limit");
    collect(connection, &sql, values.as_slice(), decode_session)
}

pub(super) fn resolve(connection: &Connection, reference: &str) -> Result<Vec<SessionId>, Error> {
    // A whole id needs no search over all sessions.
    if let Ok(id) = reference.parse::<SessionId>() {
        let sql = "SELECT id FROM session WHERE id = ?1 OR name = ?2 ORDER BY id";
        return collect(connection, sql, params![id.as_uuid().into_bytes(), reference], decode_session_id);
    }
    let named =
        collect(connection, "SELECT id FROM session WHERE name = ?1", [reference], decode_session_id)?;
    let mut found = collect(connection, "SELECT id FROM session ORDER BY id", (), decode_session_id)?;
    found.retain(|id| id.answers_to(reference) || named.contains(id));
    Ok(found)
}

fn collect<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut select = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = select.query(values).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(decode(row)?);
    }
    Ok(found)
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

//! What is read from the tables.

use std::fmt::Display;

use mainstay_model::{
    Access, CommandId, Error, Event, IdempotencyKey, NamePattern, Position, Principal, Rights, Seq, Session,
    SessionId, SessionState, TakenNotices,
};
use rusqlite::{Connection, Params, Row, ToSql, params};

use super::failure::{failed, reason_of};
use super::rows::{
    CREATIONS, count, decode_count, decode_event, decode_head, decode_outcome, decode_position,
    decode_session, decode_session_id, decode_taken, integer,
};
use crate::{Epoch, KeyScope, SessionFilter, StoredOutcome};

/// Those that are in the index, then those that are not yet.
pub(super) fn events(
    connection: &Connection,
    session: SessionId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Event>, Error> {
    // One snapshot, lest events come into the index between the two.
    let snapshot = connection.unchecked_transaction().map_err(failed)?;
    events_of(&snapshot, session, after, limit)
}

/// The same, within a transaction.
pub(super) fn events_of(
    connection: &Connection,
    session: SessionId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Event>, Error> {
    let Some((number, last)) = head(connection, session)? else { return Ok(Vec::new()) };
    let read = |sql: &str, after: Seq, limit: usize| {
        let values = params![number, integer(after.0), rows(limit)];
        let unreadable =
            |error| unreadable(format!("the events of session {session} after {after}"), failed(error));
        collect_or(connection, sql, values, |row| decode_event(session, row), unreadable)
    };
    let mut events = read(INDEXED_EVENTS, after, limit)?;
    let reached = events.last().map_or(after, |event| event.seq);
    if reached < last && events.len() < limit {
        events.extend(read(EVENTS_NOT_INDEXED, reached, limit - events.len())?);
    }
    Ok(events)
}

pub(super) const INDEXED_EVENTS: &str = "
    SELECT event.position, event.seq, at, kind, body, source, correlation, causation, environment
    FROM event_index CROSS JOIN event ON event.position = event_index.position
    WHERE event_index.session = ?1 AND event_index.seq > ?2 ORDER BY event_index.seq LIMIT ?3";

pub(super) const EVENTS_NOT_INDEXED: &str = "
    SELECT position, seq, at, kind, body, source, correlation, causation, environment
    FROM event WHERE position > (SELECT position FROM indexed) AND session = ?1 AND seq > ?2
    ORDER BY position LIMIT ?3";

/// Those of all sessions; of one that was deleted only that. The one writer commits in the order of the positions, so a snapshot has all up to its newest.
pub(super) fn all_events(
    connection: &Connection,
    after: Position,
    limit: usize,
) -> Result<Vec<Event>, Error> {
    collect(
        connection,
        "SELECT position, seq, at, event.kind, body, source, correlation, causation, environment, session.id
         FROM event CROSS JOIN session ON session.number = event.session
             CROSS JOIN head ON head.session = event.session
         WHERE position > ?1 AND (deleted_at IS NULL OR event.kind = 'sessionDeleted')
         ORDER BY position LIMIT ?2",
        params![integer(after.0), rows(limit)],
        |row| decode_event(decode_session_id(row, 9)?, row),
    )
}

pub(super) fn last_position(connection: &Connection) -> Result<Position, Error> {
    let found = collect(connection, "SELECT coalesce(max(position), 0) FROM event", (), decode_position)?;
    Ok(found.into_iter().next().unwrap_or(Position::ZERO))
}

/// How many times a session's ownership has been taken.
pub(super) fn newest_epoch(connection: &Connection, session: SessionId) -> Result<Option<Epoch>, Error> {
    let found = collect(
        connection,
        "SELECT epoch FROM session JOIN head ON head.session = number WHERE id = ?1 AND deleted_at IS NULL",
        [session.as_uuid().into_bytes()],
        |row| count(row, 0).map(Epoch).map_err(failed),
    )?;
    Ok(found.into_iter().next())
}

/// Which notices of a session's runner are taken.
pub(super) fn taken(connection: &Connection, session: SessionId) -> Result<Option<TakenNotices>, Error> {
    let found = collect(
        connection,
        "SELECT runner, notice FROM session JOIN head ON head.session = number
         WHERE id = ?1 AND deleted_at IS NULL AND runner IS NOT NULL",
        [session.as_uuid().into_bytes()],
        decode_taken,
    )?;
    Ok(found.into_iter().next())
}

/// A session's number, and the newest of its events.
fn head(connection: &Connection, session: SessionId) -> Result<Option<(i64, Seq)>, Error> {
    let found = collect(
        connection,
        "SELECT number, last_seq FROM session JOIN head ON head.session = number WHERE id = ?1",
        [session.as_uuid().into_bytes()],
        decode_head,
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn outcome_of_key(
    connection: &Connection,
    principal: &Principal,
    scope: KeyScope,
    key: &IdempotencyKey,
) -> Result<Option<StoredOutcome>, Error> {
    let scope = match scope {
        KeyScope::Creations => CREATIONS,
        KeyScope::Session(session) => match head(connection, session)? {
            Some((number, _)) => number,
            None => return Ok(None),
        },
    };
    let found = collect(
        connection,
        "SELECT outcome.fingerprint, outcome.response, outcome.version, session.id
         FROM idempotency JOIN outcome USING (principal, command)
             LEFT JOIN session ON session.number = outcome.session
         WHERE principal = ?1 AND idempotency.session = ?2 AND key = ?3",
        params![principal.as_str(), scope, key.as_str()],
        decode_outcome,
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn outcome(
    connection: &Connection,
    principal: &Principal,
    command: &CommandId,
) -> Result<Option<StoredOutcome>, Error> {
    let found = collect(
        connection,
        "SELECT fingerprint, response, version, session.id
         FROM outcome LEFT JOIN session ON session.number = outcome.session
         WHERE principal = ?1 AND command = ?2",
        params![principal.as_str(), command.as_str()],
        decode_outcome,
    )
    .map_err(|error| unreadable(format!("the outcome of command `{command}`"), error))?;
    Ok(found.into_iter().next())
}

pub(super) fn count_outcomes(connection: &Connection) -> Result<u64, Error> {
    let counted = collect(connection, "SELECT count(*) FROM outcome", (), decode_count)?;
    Ok(counted.into_iter().next().unwrap_or_default() as u64)
}

pub(super) fn session(connection: &Connection, session: SessionId) -> Result<Option<Session>, Error> {
    let id = session.as_uuid().into_bytes();
    let found = collect(
        connection,
        "SELECT projection, last_seq, last_activity
         FROM session JOIN head ON head.session = number WHERE id = ?1",
        [id],
        |row| decode_session(row, 0),
    )
    .map_err(|error| unreadable(format!("session {session}"), error))?;
    Ok(found.into_iter().next())
}

pub(super) fn sessions(connection: &Connection, filter: &SessionFilter) -> Result<Vec<Session>, Error> {
    let limit = rows(filter.limit.unwrap_or(usize::MAX));
    let SessionClause { from, mut values } = SessionClause::by(filter);
    values.push((":limit", Box::new(limit)));
    // Only the short rows are sorted: a projection is read where it is among those wanted.
    let sql = format!(
        "SELECT projection, head.last_seq, head.last_activity, id
         FROM (SELECT head.session AS number {from} ORDER BY last_activity DESC, head.session DESC LIMIT :limit)
             CROSS JOIN session USING (number) JOIN head ON head.session = number
         ORDER BY head.last_activity DESC, number DESC"
    );
    let values: Vec<(&str, &dyn ToSql)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    collect(connection, &sql, values.as_slice(), named_session)
}

pub(super) fn count_sessions(connection: &Connection, filter: &SessionFilter) -> Result<usize, Error> {
    let SessionClause { from, values } = SessionClause::by(filter);
    let values: Vec<(&str, &dyn ToSql)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    let counted = collect(connection, &format!("SELECT count(*) {from}"), values.as_slice(), decode_count)?;
    Ok(counted.into_iter().next().unwrap_or_default())
}

/// The sessions that a filter chooses, as the end of a statement, and what is bound in it.
pub(super) struct SessionClause<'f> {
    pub(super) from: String,
    pub(super) values: Vec<(&'static str, Box<dyn ToSql + 'f>)>,
}

impl<'f> SessionClause<'f> {
    pub(super) fn by(filter: &'f SessionFilter) -> Self {
        let SessionFilter {
            id,
            working_directory,
            within,
            name,
            alias,
            owner,
            kind,
            forked_from,
            live,
            asks,
            waits,
            delegates,
            loaded,
            with_deleted,
            seen_by,
            limit: _,
        } = filter;
        let mut chosen = Self { from: String::new(), values: Vec::new() };
        let mut conditions = Vec::new();
        if let Some(folder) = working_directory {
            conditions.push("working_directory = :folder".to_owned());
            chosen.values.push((":folder", Box::new(folder)));
        }
        if let Some(folder) = within {
            // Paths below it are those from its slash up to the sign that comes next.
            let lies =
                |path: &str| format!("{path} = :root OR {path} >= :root || '/' AND {path} < :root || '0'");
            conditions.push(format!("({} OR {})", lies("working_directory"), lies("project")));
            chosen.values.push((":root", Box::new(folder.trim_end_matches('/'))));
        }
        if let Some(id) = id {
            conditions.push("id = :id".to_owned());
            chosen.values.push((":id", Box::new(id.as_uuid().into_bytes())));
        }
        if let Some(name) = name {
            conditions.push("name = :name".to_owned());
            chosen.values.push((":name", Box::new(name)));
        }
        if let Some(alias) = alias {
            conditions.push("alias = :alias".to_owned());
            chosen.values.push((":alias", Box::new(alias)));
        }
        if let Some(owner) = owner {
            conditions.push("owner = :belongs_to".to_owned());
            chosen.values.push((":belongs_to", Box::new(owner.as_str())));
        }
        if let Some(kind) = kind {
            conditions.push("kind = :kind".to_owned());
            chosen.values.push((":kind", Box::new(kind.as_str())));
        }
        if let Some(parent) = forked_from {
            conditions.push("forked_from = :parent".to_owned());
            chosen.values.push((":parent", Box::new(parent.as_uuid().into_bytes())));
        }
        if *live {
            conditions.push("state <> :at_rest".to_owned());
            chosen.values.push((":at_rest", Box::new(SessionState::Uninitialized.name())));
        }
        if *asks {
            conditions.push("asks > 0".to_owned());
        }
        if *waits {
            conditions.push("json_type(projection, '$.lane') IS NOT NULL".to_owned());
        }
        if *delegates {
            conditions.push("json_type(projection, '$.delegations') IS NOT NULL".to_owned());
        }
        if *loaded {
            conditions.push("json_type(projection, '$.unloadedAt') IS NULL".to_owned());
        }
        conditions.extend(seen_by.as_ref().and_then(|access| chosen.only_seen(access)));
        let from = match conditions.as_slice() {
            [] => "FROM head",
            _ => "FROM session JOIN head ON head.session = number",
        };
        conditions.push(if *with_deleted { "true" } else { "deleted_at IS NULL" }.to_owned());
        chosen.from = format!("{from} WHERE {}", conditions.join(" AND "));
        chosen
    }

    /// Of the sessions only those that somebody may see: the condition for it, whose values are added. None where that is all.
    fn only_seen(&mut self, access: &'f Access) -> Option<String> {
        let (owner, patterns): (_, Vec<String>) = match &access.rights {
            Rights::All => return None,
            Rights::Some { see, drive } => {
                (Some(&access.principal), see.iter().chain(drive).map(glob).collect())
            }
            Rights::ReadOnly { see } => (None, see.iter().map(glob).collect()),
        };
        self.values.push((":patterns", Box::new(serde_json::to_string(&patterns).unwrap_or_default())));
        let named = "EXISTS (SELECT 1 FROM json_each(:patterns) WHERE name GLOB json_each.value)";
        Some(match owner {
            Some(owner) => {
                self.values.push((":owner", Box::new(owner.as_str())));
                format!("(owner = :owner OR {named})")
            }
            None => named.to_owned(),
        })
    }
}

/// A pattern of names as SQLite has it, where more than the star means something.
fn glob(pattern: &NamePattern) -> String {
    let literal = |c: char| match c {
        '?' | '[' => format!("[{c}]"),
        _ => c.to_string(),
    };
    pattern.as_str().chars().map(literal).collect()
}

/// Those that were not deleted.
const THERE: &str = "FROM session JOIN head ON head.session = number WHERE deleted_at IS NULL";

pub(super) fn resolve(connection: &Connection, reference: &str) -> Result<Vec<SessionId>, Error> {
    // A whole id needs no search over all sessions.
    if let Ok(id) = reference.parse::<SessionId>() {
        let sql = format!("SELECT id {THERE} AND (id = ?1 OR name = ?2 OR alias = ?2) ORDER BY id");
        return collect(connection, &sql, params![id.as_uuid().into_bytes(), reference], session_id);
    }
    let named = collect(
        connection,
        &format!("SELECT id {THERE} AND (name = ?1 OR alias = ?1)"),
        [reference],
        session_id,
    )?;
    let mut found = collect(connection, &format!("SELECT id {THERE} ORDER BY id"), (), session_id)?;
    found.retain(|id| id.answers_to(reference) || named.contains(id));
    Ok(found)
}

fn session_id(row: &Row<'_>) -> Result<SessionId, Error> {
    decode_session_id(row, 0)
}

/// One of many sessions, named where it cannot be read.
fn named_session(row: &Row<'_>) -> Result<Session, Error> {
    decode_session(row, 0).map_err(|error| match decode_session_id(row, 3) {
        Ok(id) => unreadable(format!("session {id}"), error),
        Err(_) => error,
    })
}

/// The error for what is there and cannot be read.
fn unreadable(what: impl Display, error: Error) -> Error {
    Error::StoreFailed { reason: format!("{what} cannot be read: {}", reason_of(error)) }
}

pub(super) fn collect<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    collect_or(connection, sql, values, decode, failed)
}

fn collect_or<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T, Error>,
    failed: impl Fn(rusqlite::Error) -> Error,
) -> Result<Vec<T>, Error> {
    let mut select = connection.prepare_cached(sql).map_err(&failed)?;
    let mut rows = select.query(values).map_err(&failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(&failed)? {
        found.push(decode(row)?);
    }
    Ok(found)
}

pub(super) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

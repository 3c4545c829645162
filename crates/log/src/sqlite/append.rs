//! What one append, and one claim, do to the tables. Called by the writer, within its transaction.

use mainstay_model::{CommandId, Error, Event, EventBody, Position, Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::failed;
use super::rows::{EventRow, integer, to_json};
use crate::{Append, Epoch, NewEvent};

/// An append as columns. Encoded on the caller's thread, since the writer's is everybody's.
pub(super) struct Rows {
    session: SessionId,
    epoch: i64,
    first: i64,
    creates: bool,
    events: Vec<EventRow>,
    outcomes: Vec<OutcomeRow>,
    projection: ProjectionRow,
}

struct OutcomeRow {
    principal: String,
    command: CommandId,
    fingerprint: String,
    response: String,
}

struct ProjectionRow {
    name: String,
    kind: String,
    state: &'static str,
    working_directory: String,
    project: Option<String>,
    created_at: i64,
    last_activity: i64,
    json: String,
}

impl Rows {
    /// The rows of an append.
    pub(super) fn encode(append: &Append) -> Result<Self, Error> {
        let begins =
            append.events.first().is_some_and(|event| matches!(event.body, EventBody::SessionCreated { .. }));
        Ok(Self {
            session: append.session,
            epoch: integer(append.epoch.0),
            first: integer(append.first.0),
            creates: begins && append.first == Seq::ZERO.next() && append.epoch == Epoch::FIRST,
            events: append.events.iter().map(EventRow::encode).collect::<Result<_, _>>()?,
            outcomes: append
                .outcomes
                .iter()
                .map(|answer| {
                    Ok(OutcomeRow {
                        principal: answer.principal.as_str().to_owned(),
                        command: answer.command.clone(),
                        fingerprint: answer.fingerprint.as_str().to_owned(),
                        response: to_json(&answer.outcome)?,
                    })
                })
                .collect::<Result<_, Error>>()?,
            projection: ProjectionRow {
                name: append.projection.name.clone(),
                kind: append.projection.kind.as_str().to_owned(),
                state: append.projection.state().name(),
                working_directory: append.projection.working_directory.clone(),
                project: append.projection.project.clone(),
                created_at: append.projection.created_at.as_microsecond(),
                last_activity: append.projection.last_activity.as_microsecond(),
                json: to_json(&append.projection)?,
            },
        })
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(EventRow::bytes).sum();
        let outcomes: usize = self.outcomes.iter().map(|row| row.response.len()).sum();
        events + outcomes + self.projection.json.len()
    }

    /// Writes them, and gives the first event's place in the whole log.
    pub(super) fn apply(&self, connection: &Connection) -> Result<Position, Error> {
        self.project(connection)?;
        let first = self.insert_events(connection)?;
        self.insert_outcomes(connection)?;
        Ok(first)
    }

    /// Updates the session, or refuses where the append does not go on from what is there.
    ///
    /// Most appends change nothing that is indexed; the first statement then leaves the pages of the indexes alone.
    fn project(&self, connection: &Connection) -> Result<(), Error> {
        let ProjectionRow { name, state, last_activity, json, .. } = &self.projection;
        let (before, last) = (self.first.saturating_sub(1), self.last_seq());
        let updates = [
            "UPDATE session SET last_activity = ?1, last_seq = ?2, projection = ?3
             WHERE id = ?4 AND epoch = ?5 AND last_seq = ?6 AND name = ?7 AND state = ?8",
            "UPDATE session SET last_activity = ?1, last_seq = ?2, projection = ?3, name = ?7, state = ?8
             WHERE id = ?4 AND epoch = ?5 AND last_seq = ?6",
        ];
        for update in updates {
            let values = params![last_activity, last, json, self.id(), self.epoch, before, name, state];
            let mut update = connection.prepare_cached(update).map_err(failed)?;
            if update.execute(values).map_err(failed)? > 0 {
                return Ok(());
            }
        }
        self.create(connection)
    }

    fn create(&self, connection: &Connection) -> Result<(), Error> {
        if is_there(connection, self.session)? {
            return Err(Error::SessionOwned);
        }
        if !self.creates {
            return Err(not_found(self.session));
        }
        let ProjectionRow { name, kind, state, working_directory, project, created_at, last_activity, json } =
            &self.projection;
        connection
            .prepare_cached(
                "INSERT INTO session (id, name, kind, state, working_directory, project, created_at, last_activity,
                                      last_seq, epoch, projection)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    self.id(),
                    name,
                    kind,
                    state,
                    working_directory,
                    project,
                    created_at,
                    last_activity,
                    self.last_seq(),
                    self.epoch,
                    json
                ])
            })
            .map_err(failed)?;
        Ok(())
    }

    fn insert_events(&self, connection: &Connection) -> Result<Position, Error> {
        let mut insert = connection
            .prepare_cached(
                "INSERT INTO event (session, seq, at, kind, body, source, correlation, causation, environment)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .map_err(failed)?;
        let mut first = None;
        for (seq, event) in (self.first..).zip(&self.events) {
            let EventRow { at, kind, body, source, correlation, causation, environment } = event;
            let values = params![self.id(), seq, at, kind, body, source, correlation, causation, environment];
            let position = insert.insert(values).map_err(failed)?;
            first.get_or_insert(position);
        }
        Ok(Position(first.unwrap_or_default().unsigned_abs()))
    }

    fn insert_outcomes(&self, connection: &Connection) -> Result<(), Error> {
        for OutcomeRow { principal, command, fingerprint, response } in &self.outcomes {
            let inserted = connection
                .prepare_cached(
                    "INSERT INTO outcome (principal, command, fingerprint, response) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO NOTHING",
                )
                .and_then(|mut insert| {
                    insert.execute(params![principal, command.as_str(), fingerprint, response])
                })
                .map_err(failed)?;
            if inserted == 0 {
                return Err(Error::CommandConflict { command: command.clone() });
            }
        }
        Ok(())
    }

    fn id(&self) -> [u8; 16] {
        self.session.as_uuid().into_bytes()
    }

    fn last_seq(&self) -> i64 {
        self.first.saturating_sub(1).saturating_add(integer(self.events.len() as u64))
    }
}

/// The events of an append whose first has this place.
pub(super) fn placed(
    session: SessionId,
    first: Seq,
    position: Position,
    events: Vec<NewEvent>,
) -> Vec<Event> {
    (0..)
        .zip(events)
        .map(|(index, NewEvent { at, metadata, body })| Event {
            session,
            seq: Seq(first.0 + index),
            position: Position(position.0 + index),
            at,
            metadata,
            body,
        })
        .collect()
}

/// Takes a session's ownership.
pub(super) fn claim(connection: &Connection, session: SessionId) -> Result<Epoch, Error> {
    let epoch: Option<i64> = connection
        .prepare_cached("UPDATE session SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch")
        .and_then(|mut update| {
            update.query_row([session.as_uuid().into_bytes()], |row| row.get(0)).optional()
        })
        .map_err(failed)?;
    epoch.map(|epoch| Epoch(epoch.unsigned_abs())).ok_or_else(|| not_found(session))
}

fn is_there(connection: &Connection, session: SessionId) -> Result<bool, Error> {
    connection
        .prepare_cached("SELECT 1 FROM session WHERE id = ?1")
        .and_then(|mut select| select.exists([session.as_uuid().into_bytes()]))
        .map_err(failed)
}

fn not_found(session: SessionId) -> Error {
    Error::SessionNotFound { reference: session.to_string() }
}

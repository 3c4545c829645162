//! What one append, and one claim, do to the tables. Called by the writer, within its transaction.

use mainstay_model::{CommandId, Error, Event, EventBody, Position, Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{EventRow, integer, to_json};
use super::writer::Unwritten;
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

    /// Writes them, and gives the first event's place in the whole log. All that can refuse an append comes before the
    /// first change.
    pub(super) fn apply(&self, connection: &Connection) -> Result<Position, Unwritten> {
        if let Some(command) = self.answered(connection)? {
            self.check_owner(connection)?;
            return Err(Unwritten::Refused(Error::CommandConflict { command: command.clone() }));
        }
        self.project(connection)?;
        let first = self.insert_events(connection)?;
        self.insert_outcomes(connection)?;
        Ok(first)
    }

    /// The first command that has an outcome already, or two of them here.
    fn answered(&self, connection: &Connection) -> rusqlite::Result<Option<&CommandId>> {
        for (index, OutcomeRow { principal, command, .. }) in self.outcomes.iter().enumerate() {
            let mut before = self.outcomes.iter().take(index);
            let twice = before.any(|row| row.principal == *principal && row.command == *command);
            let mut select =
                connection.prepare_cached("SELECT 1 FROM outcome WHERE principal = ?1 AND command = ?2")?;
            if twice || select.exists(params![principal, command.as_str()])? {
                return Ok(Some(command));
            }
        }
        Ok(None)
    }

    /// Refuses where the append does not go on from what is there.
    fn check_owner(&self, connection: &Connection) -> Result<(), Unwritten> {
        let owned = connection
            .prepare_cached("SELECT epoch, last_seq FROM session WHERE id = ?1")?
            .query_row([self.id()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        match owned {
            Some(owned) if owned == (self.epoch, self.seq_before()) => Ok(()),
            Some(_) => Err(Unwritten::Refused(Error::SessionOwned)),
            None if self.creates => Ok(()),
            None => Err(not_found(self.session)),
        }
    }

    /// Updates the session, or refuses where the append does not go on from what is there.
    ///
    /// Most appends change nothing that is indexed; the first statement then leaves the pages of the indexes alone.
    fn project(&self, connection: &Connection) -> Result<(), Unwritten> {
        let ProjectionRow { name, state, last_activity, json, .. } = &self.projection;
        let (before, last) = (self.seq_before(), self.last_seq());
        let updates = [
            "UPDATE session SET last_activity = ?1, last_seq = ?2, projection = ?3
             WHERE id = ?4 AND epoch = ?5 AND last_seq = ?6 AND name = ?7 AND state = ?8",
            "UPDATE session SET last_activity = ?1, last_seq = ?2, projection = ?3, name = ?7, state = ?8
             WHERE id = ?4 AND epoch = ?5 AND last_seq = ?6",
        ];
        for update in updates {
            let values = params![last_activity, last, json, self.id(), self.epoch, before, name, state];
            if connection.prepare_cached(update)?.execute(values)? > 0 {
                return Ok(());
            }
        }
        self.check_owner(connection)?;
        Ok(self.create(connection)?)
    }

    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        let ProjectionRow { name, kind, state, working_directory, project, created_at, last_activity, json } =
            &self.projection;
        let mut insert = connection.prepare_cached(
            "INSERT INTO session (id, name, kind, state, working_directory, project, created_at, last_activity,
                                  last_seq, epoch, projection)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        let values = params![
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
        ];
        insert.execute(values).map(drop)
    }

    fn insert_events(&self, connection: &Connection) -> rusqlite::Result<Position> {
        let mut insert = connection.prepare_cached(
            "INSERT INTO event (session, seq, at, kind, body, source, correlation, causation, environment)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut first = None;
        for (seq, event) in (self.first..).zip(&self.events) {
            let EventRow { at, kind, body, source, correlation, causation, environment } = event;
            let values = params![self.id(), seq, at, kind, body, source, correlation, causation, environment];
            let position = insert.insert(values)?;
            first.get_or_insert(position);
        }
        Ok(Position(first.unwrap_or_default().unsigned_abs()))
    }

    fn insert_outcomes(&self, connection: &Connection) -> rusqlite::Result<()> {
        for OutcomeRow { principal, command, fingerprint, response } in &self.outcomes {
            connection
                .prepare_cached(
                    "INSERT INTO outcome (principal, command, fingerprint, response) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![principal, command.as_str(), fingerprint, response])?;
        }
        Ok(())
    }

    fn id(&self) -> [u8; 16] {
        self.session.as_uuid().into_bytes()
    }

    fn seq_before(&self) -> i64 {
        self.first.saturating_sub(1)
    }

    fn last_seq(&self) -> i64 {
        self.seq_before().saturating_add(integer(self.events.len() as u64))
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
pub(super) fn claim(connection: &Connection, session: SessionId) -> Result<Epoch, Unwritten> {
    let epoch: Option<i64> = connection
        .prepare_cached("UPDATE session SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch")?
        .query_row([session.as_uuid().into_bytes()], |row| row.get(0))
        .optional()?;
    epoch.map(|epoch| Epoch(epoch.unsigned_abs())).ok_or_else(|| not_found(session))
}

fn not_found(session: SessionId) -> Unwritten {
    Unwritten::Refused(Error::SessionNotFound { reference: session.to_string() })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::migrations::{MIGRATIONS, migrate};
    use super::*;

    const OWNER: i64 = 1;

    /// An append of one event, of session 1.
    fn append(epoch: i64, first: i64, commands: &[&str]) -> Rows {
        let event = EventRow {
            at: 0,
            kind: "warmUpStarted",
            body: None,
            source: "{}".to_owned(),
            correlation: None,
            causation: None,
            environment: None,
        };
        let outcome = |command: &&str| OutcomeRow {
            principal: "local".to_owned(),
            command: CommandId::new(*command).unwrap(),
            fingerprint: "ab12".to_owned(),
            response: "{}".to_owned(),
        };
        let projection = ProjectionRow {
            name: "one".to_owned(),
            kind: "fsharp".to_owned(),
            state: "ready",
            working_directory: "/work".to_owned(),
            project: None,
            created_at: 0,
            last_activity: 0,
            json: "{}".to_owned(),
        };
        Rows {
            session: SessionId::from_uuid(Uuid::from_u128(1)),
            epoch,
            first,
            creates: false,
            events: vec![event],
            outcomes: commands.iter().map(outcome).collect(),
            projection,
        }
    }

    fn creation() -> Rows {
        Rows { creates: true, ..append(OWNER, 1, &["create"]) }
    }

    fn store() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        connection
    }

    fn refused(rows: &Rows, connection: &Connection) -> Error {
        let changes = connection.total_changes();
        let Err(Unwritten::Refused(error)) = rows.apply(connection) else { panic!("not refused") };
        assert_eq!(connection.total_changes(), changes, "{error}");
        error
    }

    #[test]
    fn a_refused_append_has_changed_nothing() {
        let connection = store();
        let not_found = not_found(creation().session);
        assert_eq!(refused(&append(OWNER, 1, &["new"]), &connection), Error::from(not_found));
        creation().apply(&connection).unwrap();

        assert_eq!(refused(&creation(), &connection), Error::SessionOwned);
        for (epoch, first) in [(OWNER + 1, 2), (OWNER - 1, 2), (OWNER, 1), (OWNER, 3)] {
            for commands in [&[][..], &["new"], &["create"]] {
                assert_eq!(refused(&append(epoch, first, commands), &connection), Error::SessionOwned);
            }
        }
        for (commands, command) in
            [(&["create"][..], "create"), (&["new", "create"], "create"), (&["new", "other", "new"], "new")]
        {
            let command = CommandId::new(command).unwrap();
            assert_eq!(refused(&append(OWNER, 2, commands), &connection), Error::CommandConflict { command });
        }
        append(OWNER, 2, &["new", "other"]).apply(&connection).unwrap();
    }

    #[test]
    fn a_claim_refuses_what_was_not_yet_written_of_the_owner_before() {
        let connection = store();
        let session = creation().session;
        assert!(matches!(claim(&connection, session), Err(Unwritten::Refused(_))));
        creation().apply(&connection).unwrap();
        append(OWNER, 2, &[]).apply(&connection).unwrap();
        assert_eq!(claim(&connection, session).unwrap(), Epoch(2));
        assert_eq!(refused(&append(OWNER, 3, &[]), &connection), Error::SessionOwned);
        append(OWNER + 1, 3, &[]).apply(&connection).unwrap();
    }

    #[test]
    fn an_append_that_the_database_cannot_take_has_failed_and_is_not_refused() {
        let connection = store();
        creation().apply(&connection).unwrap();
        connection
            .execute_batch(
                "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'full'); END",
            )
            .unwrap();
        assert!(matches!(append(OWNER, 2, &[]).apply(&connection), Err(Unwritten::Failed(_))));
    }
}

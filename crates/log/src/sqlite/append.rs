//! What one append, and one claim, do to the tables. Called by the writer, within its transaction.

use mainstay_model::decide::Answer;
use mainstay_model::{CommandId, Error, Event, EventBody, Position, Segment, Seq, SessionId};
use rusqlite::{OptionalExtension, params};

use super::rows::{CREATIONS, EventRow, encode_projection, integer, to_json};
use super::statements::Statements;
use super::writer::WriteFailure;
use super::{index, retention};
#[cfg(feature = "failpoints")]
use crate::failpoint::Failpoint;
use crate::{Append, Epoch, NewEvent};

/// An append as columns. Encoded on the caller's thread, since the writer's is everybody's.
pub(super) struct AppendRows {
    session: SessionId,
    epoch: i64,
    first: i64,
    creates: bool,
    events: Vec<EventRow>,
    /// What the events put into the transcript.
    brings: Vec<Segment>,
    outcomes: Vec<OutcomeRow>,
    version: i64,
    projection: ProjectionRow,
}

pub(super) struct OutcomeRow {
    principal: String,
    command: CommandId,
    key: Option<String>,
    fingerprint: String,
    response: String,
}

struct ProjectionRow {
    name: String,
    kind: String,
    state: &'static str,
    owner: String,
    asks: i64,
    working_directory: String,
    project: Option<String>,
    forked_from: Option<[u8; 16]>,
    alias: Option<String>,
    created_at: i64,
    last_activity: i64,
    deleted_at: Option<i64>,
    json: String,
}

/// A session before the append.
struct SessionRow {
    number: i64,
    same_projection: bool,
}

impl OutcomeRow {
    /// The row of an outcome.
    pub(super) fn encode(answer: &Answer) -> Result<Self, Error> {
        Ok(Self {
            principal: answer.principal.as_str().to_owned(),
            command: answer.command.clone(),
            key: answer.key.as_ref().map(|key| key.as_str().to_owned()),
            fingerprint: answer.fingerprint.as_str().to_owned(),
            response: to_json(&answer.outcome)?,
        })
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.response.len()
    }

    /// Stores the outcome of a command that no session has accepted.
    pub(super) fn store_alone(&self, statements: &mut Statements<'_>) -> Result<(), WriteFailure> {
        if self.is_stored(statements)? {
            return Err(WriteFailure::Refused(Error::CommandConflict { command: self.command.clone() }));
        }
        self.insert(statements, None, 0)?;
        Ok(())
    }

    /// Whether the command has an outcome already.
    fn is_stored(&self, statements: &mut Statements<'_>) -> rusqlite::Result<bool> {
        let select = statements.get("SELECT 1 FROM outcome WHERE principal = ?1 AND command = ?2")?;
        select.exists(params![self.principal, self.command.as_str()])
    }

    fn insert(
        &self,
        statements: &mut Statements<'_>,
        session: Option<i64>,
        version: i64,
    ) -> rusqlite::Result<usize> {
        let Self { principal, command, key: _, fingerprint, response } = self;
        statements
            .get(
                "INSERT INTO outcome (principal, command, fingerprint, response, session, version)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![principal, command.as_str(), fingerprint, response, session, version])
    }
}

impl AppendRows {
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
            brings: append.events.iter().flat_map(|event| event.body.brings()).copied().collect(),
            outcomes: append.outcomes.iter().map(OutcomeRow::encode).collect::<Result<_, Error>>()?,
            version: integer(append.version.0),
            projection: ProjectionRow {
                name: append.projection.name.clone(),
                kind: append.projection.kind.as_str().to_owned(),
                state: append.projection.state().name(),
                owner: append.projection.owner.as_str().to_owned(),
                asks: integer(append.projection.asks.len() as u64),
                working_directory: append.projection.working_directory.clone(),
                project: append.projection.project.clone(),
                forked_from: append
                    .projection
                    .forked_from
                    .as_ref()
                    .map(|parent| parent.session.as_uuid().into_bytes()),
                alias: append.projection.alias.clone(),
                created_at: append.projection.created_at.as_microsecond(),
                last_activity: append.projection.last_activity.as_microsecond(),
                deleted_at: append.projection.deleted_at.map(|at| at.as_microsecond()),
                json: encode_projection(&append.projection)?,
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
    pub(super) fn apply(&self, statements: &mut Statements<'_>) -> Result<Position, WriteFailure> {
        let before = self.owned(statements)?;
        if let Some(command) = self.answered(statements)? {
            return Err(WriteFailure::Refused(Error::CommandConflict { command: command.clone() }));
        }
        if let Some(gone) = retention::first_gone(statements, &self.brings)? {
            return Err(not_found(gone));
        }
        let session = match before {
            Some(before) => self.update(statements, &before)?,
            None => self.create(statements)?,
        };
        #[cfg(feature = "failpoints")]
        Failpoint::DuringProjection.pass();
        let first = self.insert_events(statements, session)?;
        self.insert_outcomes(statements, session)?;
        retention::hold(statements, session, &self.brings)?;
        if self.projection.deleted_at.is_some() {
            retention::let_go(statements, session)?;
        }
        Ok(first)
    }

    /// The session as it is there, or none where this creates it. Refuses where the append does not go on from it.
    fn owned(&self, statements: &mut Statements<'_>) -> Result<Option<SessionRow>, WriteFailure> {
        let there = statements
            .get(
                "SELECT epoch, last_seq, number, projection = ?2
                 FROM session JOIN head ON head.session = number WHERE id = ?1 AND deleted_at IS NULL",
            )?
            .query_row(params![self.id(), self.projection.json], |row| {
                let owned = (row.get(0)?, row.get(1)?);
                Ok((owned, SessionRow { number: row.get(2)?, same_projection: row.get(3)? }))
            })
            .optional()?;
        match there {
            Some((owned, before)) if owned == (self.epoch, self.seq_before()) => Ok(Some(before)),
            Some(_) => Err(WriteFailure::Refused(Error::SessionOwned)),
            None if self.creates && !self.is_there(statements)? => Ok(None),
            None => Err(not_found(self.session)),
        }
    }

    /// Whether the session is there, also where it was deleted.
    fn is_there(&self, statements: &mut Statements<'_>) -> rusqlite::Result<bool> {
        statements.get("SELECT 1 FROM session WHERE id = ?1")?.exists([self.id()])
    }

    /// The first command that has an outcome already, or two of them here.
    fn answered(&self, statements: &mut Statements<'_>) -> rusqlite::Result<Option<&CommandId>> {
        for (index, row) in self.outcomes.iter().enumerate() {
            let OutcomeRow { principal, command, .. } = row;
            let mut before = self.outcomes.iter().take(index);
            let twice = before.any(|row| row.principal == *principal && row.command == *command);
            if twice || row.is_stored(statements)? {
                return Ok(Some(command));
            }
        }
        Ok(None)
    }

    /// Updates the session, and gives its number. Only what differs is written: most appends leave the projection as it
    /// was, and hardly any changes the name, the asks or the alias, which are indexed.
    fn update(&self, statements: &mut Statements<'_>, before: &SessionRow) -> rusqlite::Result<i64> {
        let ProjectionRow { name, state, asks, alias, last_activity, deleted_at, json, .. } =
            &self.projection;
        let SessionRow { number, same_projection } = *before;
        statements
            .get("UPDATE head SET last_seq = ?1, last_activity = ?2, deleted_at = ?3 WHERE session = ?4")?
            .execute(params![self.last_seq(), last_activity, deleted_at, number])?;
        if !same_projection {
            statements
                .get("UPDATE session SET projection = ?1, state = ?2 WHERE number = ?3")?
                .execute(params![json, state, number])?;
            statements
                .get("UPDATE session SET name = ?1, asks = ?2 WHERE number = ?3 AND (name <> ?1 OR asks <> ?2)")?
                .execute(params![name, asks, number])?;
            statements
                .get("UPDATE session SET alias = ?1 WHERE number = ?2 AND alias IS NOT ?1")?
                .execute(params![alias, number])?;
        }
        Ok(number)
    }

    /// Creates the session, and gives its number.
    fn create(&self, statements: &mut Statements<'_>) -> rusqlite::Result<i64> {
        let ProjectionRow {
            name,
            kind,
            state,
            owner,
            asks,
            working_directory,
            project,
            forked_from,
            alias,
            created_at,
            last_activity,
            deleted_at,
            json,
        } = &self.projection;
        let insert = statements.get(
            "INSERT INTO session
                 (id, name, kind, state, owner, asks, working_directory, project, forked_from, alias, created_at, projection)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let id = self.id();
        let values = params![
            id,
            name,
            kind,
            state,
            owner,
            asks,
            working_directory,
            project,
            forked_from,
            alias,
            created_at,
            json
        ];
        let number = insert.insert(values)?;
        statements
            .get(
                "INSERT INTO head (session, epoch, last_seq, last_activity, deleted_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![number, self.epoch, self.last_seq(), last_activity, deleted_at])?;
        Ok(number)
    }

    fn insert_events(&self, statements: &mut Statements<'_>, session: i64) -> rusqlite::Result<Position> {
        let insert = statements.get(
            "INSERT INTO event (session, seq, at, kind, body, source, correlation, causation, environment)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut places = None;
        for (seq, event) in (self.first..).zip(&self.events) {
            let EventRow { at, kind, body, source, correlation, causation, environment } = event;
            let values = params![session, seq, at, kind, body, source, correlation, causation, environment];
            let last = insert.insert(values)?;
            places = places.or(Some((last, last))).map(|(first, _)| (first, last));
        }
        let Some((first, last)) = places else { return Ok(Position::ZERO) };
        index::extend(statements, first, last)?;
        Ok(Position(first.unsigned_abs()))
    }

    fn insert_outcomes(&self, statements: &mut Statements<'_>, session: i64) -> rusqlite::Result<()> {
        for row in &self.outcomes {
            row.insert(statements, Some(session), self.version)?;
            let OutcomeRow { principal, command, key, .. } = row;
            if let Some(key) = key {
                let scope = if self.creates { CREATIONS } else { session };
                statements
                    .get(
                        "INSERT INTO idempotency (principal, session, key, command) VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![principal, scope, key, command.as_str()])?;
            }
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
pub(super) fn claim(statements: &mut Statements<'_>, session: SessionId) -> Result<Epoch, WriteFailure> {
    let epoch: Option<i64> = statements
        .get(
            "UPDATE head SET epoch = epoch + 1 WHERE session = (SELECT number FROM session WHERE id = ?1)
             AND deleted_at IS NULL RETURNING epoch",
        )?
        .query_row([session.as_uuid().into_bytes()], |row| row.get(0))
        .optional()?;
    epoch.map(|epoch| Epoch(epoch.unsigned_abs())).ok_or_else(|| not_found(session))
}

fn not_found(session: SessionId) -> WriteFailure {
    WriteFailure::Refused(Error::SessionNotFound { reference: session.to_string() })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use uuid::Uuid;

    use super::super::migrations::{MIGRATIONS, migrate};
    use super::*;

    const OWNER: i64 = 1;

    /// An append of one event, of session 1.
    fn append(epoch: i64, first: i64, commands: &[&str]) -> AppendRows {
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
            key: None,
            fingerprint: "ab12".to_owned(),
            response: "{}".to_owned(),
        };
        let projection = ProjectionRow {
            name: "one".to_owned(),
            kind: "fsharp".to_owned(),
            state: "ready",
            owner: "local".to_owned(),
            asks: 0,
            working_directory: "/work".to_owned(),
            project: None,
            forked_from: None,
            alias: None,
            created_at: 0,
            last_activity: 0,
            deleted_at: None,
            json: "{}".to_owned(),
        };
        AppendRows {
            session: SessionId::from_uuid(Uuid::from_u128(1)),
            epoch,
            first,
            creates: false,
            events: vec![event],
            brings: Vec::new(),
            outcomes: commands.iter().map(outcome).collect(),
            version: 0,
            projection,
        }
    }

    fn creation() -> AppendRows {
        AppendRows { creates: true, ..append(OWNER, 1, &["create"]) }
    }

    fn store() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        connection
    }

    fn refused(rows: &AppendRows, statements: &mut Statements<'_>) -> Error {
        let connection = statements.connection();
        let changes = connection.total_changes();
        let Err(WriteFailure::Refused(error)) = rows.apply(statements) else { panic!("not refused") };
        assert_eq!(connection.total_changes(), changes, "{error}");
        error
    }

    #[test]
    fn a_refused_append_has_changed_nothing() {
        let connection = store();
        let statements = &mut Statements::of(&connection);
        let not_found = not_found(creation().session);
        assert_eq!(refused(&append(OWNER, 1, &["new"]), statements), Error::from(not_found));
        creation().apply(statements).unwrap();

        assert_eq!(refused(&creation(), statements), Error::SessionOwned);
        for (epoch, first) in [(OWNER + 1, 2), (OWNER - 1, 2), (OWNER, 1), (OWNER, 3)] {
            for commands in [&[][..], &["new"], &["create"]] {
                assert_eq!(refused(&append(epoch, first, commands), statements), Error::SessionOwned);
            }
        }
        for (commands, command) in
            [(&["create"][..], "create"), (&["new", "create"], "create"), (&["new", "other", "new"], "new")]
        {
            let command = CommandId::new(command).unwrap();
            assert_eq!(refused(&append(OWNER, 2, commands), statements), Error::CommandConflict { command });
        }
        append(OWNER, 2, &["new", "other"]).apply(statements).unwrap();
    }

    #[test]
    fn a_claim_refuses_what_was_not_yet_written_of_the_owner_before() {
        let connection = store();
        let statements = &mut Statements::of(&connection);
        let session = creation().session;
        assert!(matches!(claim(statements, session), Err(WriteFailure::Refused(_))));
        creation().apply(statements).unwrap();
        append(OWNER, 2, &[]).apply(statements).unwrap();
        assert_eq!(claim(statements, session).unwrap(), Epoch(2));
        assert_eq!(refused(&append(OWNER, 3, &[]), statements), Error::SessionOwned);
        append(OWNER + 1, 3, &[]).apply(statements).unwrap();
    }

    #[test]
    fn an_append_that_the_database_cannot_take_has_failed_and_is_not_refused() {
        let connection = store();
        let statements = &mut Statements::of(&connection);
        creation().apply(statements).unwrap();
        connection
            .execute_batch(
                "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'full'); END",
            )
            .unwrap();
        assert!(matches!(append(OWNER, 2, &[]).apply(statements), Err(WriteFailure::Failed(_))));
    }
}

//! What one append does to the tables. Called by the writer, within its transaction.

use std::sync::Arc;

use mainstay_model::decide::Answer;
use mainstay_model::{CommandId, Error, Event, EventBody, IdempotencyKey, Position, Segment, Seq, SessionId};
use rusqlite::{OptionalExtension, params};

use super::failure::not_found;
use super::options::Sharing;
use super::rows::{CREATIONS, EventRow, encode_projection, integer, to_json};
use super::statements::Statements;
use super::writer::WriteFailure;
use super::{index, lease, retention};
#[cfg(feature = "failpoints")]
use crate::failpoint::Failpoint;
use crate::{Append, AppendError, Epoch, NewEvent, Refusal};

/// An append as columns. Encoded on the caller's thread, since the writer's is everybody's.
pub(super) struct AppendRows {
    session: SessionId,
    /// Who owns what this creates.
    sharing: Arc<Sharing>,
    epoch: i64,
    first: i64,
    creates: bool,
    events: Vec<EventRow>,
    /// What the events put into the transcript.
    brings: Vec<Segment>,
    outcomes: Vec<OutcomeRow>,
    version: i64,
    projection: ProjectionRow,
    /// The runner, and the number of its last notice that is taken.
    taken: Option<([u8; 16], i64)>,
}

pub(super) struct OutcomeRow {
    principal: String,
    command: CommandId,
    key: Option<IdempotencyKey>,
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
            key: answer.key.clone(),
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
    pub(super) fn encode(append: &Append, sharing: &Arc<Sharing>) -> Result<Self, Error> {
        let begins =
            append.events.first().is_some_and(|event| matches!(event.body, EventBody::SessionCreated { .. }));
        Ok(Self {
            session: append.session,
            sharing: Arc::clone(sharing),
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
            taken: append.taken.map(|taken| (taken.runner.as_uuid().into_bytes(), integer(taken.up_to.0))),
        })
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(EventRow::bytes).sum();
        let outcomes: usize = self.outcomes.iter().map(|row| row.response.len()).sum();
        events + outcomes + self.projection.json.len()
    }

    /// Writes them, and gives the first event's place in the whole log. All that can refuse an append comes before the
    /// first change. What is stored already is not written again.
    pub(super) fn apply(
        &self,
        statements: &mut Statements<'_>,
    ) -> Result<Result<Position, AppendError>, WriteFailure> {
        match self.check(statements)? {
            Ok(before) => Ok(Ok(self.write(statements, before)?)),
            Err(refused @ AppendError::Refused(_)) => Ok(self.stored_before(statements)?.ok_or(refused)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The session as it is there, or none where this creates it; or why this may not be appended.
    fn check(
        &self,
        statements: &mut Statements<'_>,
    ) -> rusqlite::Result<Result<Option<SessionRow>, AppendError>> {
        let before = self.owned(statements)?;
        let refused = match &before {
            Err(_) => None,
            Ok(before) => self.content_refused(statements, before.as_ref())?,
        };
        Ok(match refused {
            Some(error) => Err(AppendError::Refused(Refusal::Content(error))),
            None => before,
        })
    }

    /// Why what this says may not be stored.
    fn content_refused(
        &self,
        statements: &mut Statements<'_>,
        before: Option<&SessionRow>,
    ) -> rusqlite::Result<Option<Error>> {
        if let Some(command) = self.answered(statements)? {
            return Ok(Some(Error::CommandConflict { command: command.clone() }));
        }
        if let Some(key) = self.key_taken(statements, before)? {
            return Ok(Some(Error::KeyConflict { key: key.clone() }));
        }
        Ok(retention::first_gone(statements, &self.brings)?.map(not_found))
    }

    fn write(
        &self,
        statements: &mut Statements<'_>,
        before: Option<SessionRow>,
    ) -> rusqlite::Result<Position> {
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

    /// The session as it is there, or none where this creates it; or why this does not go on from it.
    fn owned(
        &self,
        statements: &mut Statements<'_>,
    ) -> rusqlite::Result<Result<Option<SessionRow>, AppendError>> {
        let there = statements
            .get(
                "SELECT epoch, last_seq, number, projection = ?2
                 FROM session JOIN head ON head.session = number WHERE id = ?1 AND deleted_at IS NULL",
            )?
            .query_row(params![self.id(), self.projection.json], |row| {
                let (epoch, last_seq): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((epoch, last_seq, SessionRow { number: row.get(2)?, same_projection: row.get(3)? }))
            })
            .optional()?;
        Ok(match there {
            Some((epoch, ..)) if epoch != self.epoch => {
                Err(AppendError::Fenced { newest: Epoch(epoch.unsigned_abs()) })
            }
            Some((_, last_seq, _)) if last_seq != self.seq_before() => {
                let next = Seq(last_seq.unsigned_abs()).next();
                Err(AppendError::Refused(Refusal::OutOfSequence { next }))
            }
            Some((.., before)) => Ok(Some(before)),
            None if self.creates && !self.is_there(statements)? => Ok(None),
            None => Err(AppendError::Refused(Refusal::Content(not_found(self.session)))),
        })
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

    /// The first idempotency key that has an outcome already where it counts, or two of them here.
    fn key_taken(
        &self,
        statements: &mut Statements<'_>,
        before: Option<&SessionRow>,
    ) -> rusqlite::Result<Option<&IdempotencyKey>> {
        let scope = if self.creates { CREATIONS } else { before.map_or(CREATIONS, |before| before.number) };
        for (index, row) in self.outcomes.iter().enumerate() {
            let OutcomeRow { principal, key: Some(key), .. } = row else { continue };
            let mut earlier = self.outcomes.iter().take(index);
            let twice = earlier.any(|row| row.principal == *principal && row.key.as_ref() == Some(key));
            let select = "SELECT 1 FROM idempotency WHERE principal = ?1 AND session = ?2 AND key = ?3";
            if twice || statements.get(select)?.exists(params![principal, scope, key.as_str()])? {
                return Ok(Some(key));
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
        let (runner, notice) = self.taken.unzip();
        statements
            .get(
                "UPDATE head SET last_seq = ?1, last_activity = ?2, deleted_at = ?3,
                     runner = coalesce(?5, runner), notice = coalesce(?6, notice)
                 WHERE session = ?4",
            )?
            .execute(params![self.last_seq(), last_activity, deleted_at, number, runner, notice])?;
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
        let row = &self.projection;
        let insert = statements.get(
            "INSERT INTO session
                 (id, name, kind, state, owner, asks, working_directory, project, forked_from, alias, created_at, projection)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let number = insert.insert(params![
            self.id(),
            row.name,
            row.kind,
            row.state,
            row.owner,
            row.asks,
            row.working_directory,
            row.project,
            row.forked_from,
            row.alias,
            row.created_at,
            row.json
        ])?;
        let lease = lease::lease_number(statements, &self.sharing)?;
        let (runner, notice) = self.taken.unzip();
        let (last_seq, activity, deleted) = (self.last_seq(), row.last_activity, row.deleted_at);
        let values = params![number, self.epoch, last_seq, activity, deleted, lease, runner, notice];
        statements
            .get(
                "INSERT INTO head (session, epoch, last_seq, last_activity, deleted_at, lease, runner, notice)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(values)?;
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
                    .execute(params![principal, scope, key.as_str(), command.as_str()])?;
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

mod repetition;

#[cfg(test)]
mod tests;

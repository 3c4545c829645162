//! Transcribing: entries are made of events some hundred at a time, behind the appends, so that an append costs the same
//! with them as without. Who reads entries has what is missing made first.

use std::collections::HashMap;
use std::sync::Arc;

use mainstay_model::transcribe::{Transcribed, Transcriber};
use mainstay_model::{Content, Entry, Error, Event, Position, Seq, SessionKind};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::failed;
use super::objects::{ObjectFiles, ObjectGuard};
use super::queries;
use super::rows::{decode_event, decode_position, decode_session_id, integer, to_json};
use super::statements::Statements;
use super::writer::WriteFailure;

/// After so many events entries are made.
pub(super) const INTERVAL: u64 = 256;

/// How many events are looked at in one transaction.
const STEP_EVENTS: usize = 2048;
/// After how many bytes of them it takes no further one.
const STEP_BYTES: i64 = 4 * 1024 * 1024;

/// Whether something was said, up to this position, that is not made into entries: a cell that has ended, a message, a summary. Whoever reads asks; events of any other kind must not cost that
/// reader a write.
pub(super) fn is_behind(connection: &Connection, target: Position) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM event WHERE position > (SELECT position FROM transcribed) AND position <= ?1
                 AND kind IN ('evalCompleted', 'evalFailed', 'evalCancelled', 'evalInterrupted', 'jobEnded',
                              'messageAdded', 'transcriptCompacted'))",
        )?
        .query_row([integer(target.0)], |row| row.get(0))
}

/// Up to where entries are made.
pub(super) fn reached(connection: &Connection) -> Result<Position, Error> {
    let reached = queries::collect(connection, "SELECT position FROM transcribed", (), decode_position)?;
    Ok(reached.into_iter().next().unwrap_or(Position::ZERO))
}

/// Makes the entries of the next events. `kept` is to be held until that is durable.
pub(super) fn step(
    statements: &mut Statements<'_>,
    objects: &Arc<ObjectFiles>,
    kept: &mut Vec<ObjectGuard>,
) -> Result<(), WriteFailure> {
    let Batch { events, reached } = Batch::read(statements)?;
    let mut scribe = Scribe { objects, kept, transcribers: HashMap::new(), next: HashMap::new() };
    for event in events {
        match event {
            ExaminedEvent::Readable(event) => scribe.push(statements, &event)?,
            ExaminedEvent::Damaged(session) => scribe.forget(session),
        }
    }
    statements.get("UPDATE transcribed SET position = ?1")?.execute([reached])?;
    Ok(())
}

/// The next events that say something of an entry.
struct Batch {
    events: Vec<ExaminedEvent>,
    /// The last position that was looked at.
    reached: i64,
}

/// An event as it was found.
enum ExaminedEvent {
    Readable(SessionEvent),
    /// One that cannot be read, of the session with this number.
    Damaged(i64),
}

/// An event, and what is needed to know of its session.
struct SessionEvent {
    event: Event,
    number: i64,
    kind: SessionKind,
}

const NEXT_EVENTS: &str = "
    SELECT position, seq, at, event.kind, body, source, correlation, causation, environment,
           session.id, session.number, session.kind, length(body)
    FROM event CROSS JOIN session ON session.number = event.session
    WHERE position > (SELECT position FROM transcribed)
        AND event.kind IN ('evalRequested', 'outputProduced', 'outputDisplayed', 'outputCut',
                           'evalCompleted', 'evalFailed', 'evalCancelled', 'evalInterrupted',
                           'jobRequested', 'messageStreamed', 'jobEnded', 'messageAdded', 'transcriptCompacted')
    ORDER BY position LIMIT ?1";

impl Batch {
    fn read(statements: &mut Statements<'_>) -> rusqlite::Result<Self> {
        let newest: i64 = statements
            .get("SELECT coalesce(max(position), 0) FROM event")?
            .query_row((), |row| row.get(0))?;
        let mut batch = Self { events: Vec::new(), reached: newest };
        let mut bytes = 0;
        let mut rows = statements.get(NEXT_EVENTS)?.query([integer(STEP_EVENTS as u64)])?;
        let mut looked_at = 0;
        while let Some(row) = rows.next()? {
            looked_at += 1;
            bytes += row.get::<_, Option<i64>>(12)?.unwrap_or_default();
            match SessionEvent::decode(row) {
                Ok(event) => batch.events.push(ExaminedEvent::Readable(event)),
                // The doctor names it. What it belongs to is not in the transcript; the rest is.
                Err(error) => {
                    tracing::error!(%error, "an event cannot be transcribed");
                    batch.events.push(ExaminedEvent::Damaged(row.get(10)?));
                }
            }
            if looked_at == STEP_EVENTS || bytes >= STEP_BYTES {
                batch.reached = row.get(0)?;
                break;
            }
        }
        Ok(batch)
    }
}

impl SessionEvent {
    fn decode(row: &Row<'_>) -> Result<Self, Error> {
        let event = decode_event(decode_session_id(row, 9)?, row)?;
        let kind = SessionKind::new(row.get::<_, String>(11).map_err(failed)?)?;
        Ok(Self { event, number: row.get(10).map_err(failed)?, kind })
    }
}

/// What is known while a batch is gone through.
struct Scribe<'a> {
    objects: &'a Arc<ObjectFiles>,
    kept: &'a mut Vec<ObjectGuard>,
    /// Of each session, by its number.
    transcribers: HashMap<i64, Transcriber>,
    /// The number of each session's next entry.
    next: HashMap<i64, i64>,
}

impl Scribe<'_> {
    fn push(&mut self, statements: &mut Statements<'_>, of: &SessionEvent) -> Result<(), WriteFailure> {
        let SessionEvent { event, number, kind } = of;
        let transcriber = self.transcribers.entry(*number).or_default();
        if let (Some((job, _)), Some(requested)) = (event.body.job_end(), event.metadata.causation)
            && !transcriber.is_in(job)
        {
            catch_up(statements.connection(), transcriber, of, requested);
        }
        for entry in transcriber.push(kind, event) {
            self.write(statements, *number, &entry)?;
        }
        Ok(())
    }

    /// A cell with an event that cannot be read comes to nothing: half of it would be something else.
    fn forget(&mut self, session: i64) {
        self.transcribers.remove(&session);
    }

    fn write(
        &mut self,
        statements: &mut Statements<'_>,
        session: i64,
        transcribed: &Transcribed,
    ) -> Result<(), WriteFailure> {
        let entry = self.entry(statements, transcribed)?;
        let number = match self.next.get(&session) {
            Some(number) => *number,
            None => statements
                .get("SELECT coalesce(max(number) + 1, 0) FROM place WHERE session = ?1")?
                .query_row([session], |row| row.get(0))?,
        };
        self.next.insert(session, number + 1);
        let Transcribed { at, first, last, origin, .. } = transcribed;
        let origin_session = origin.map(|origin| origin.session.as_uuid().into_bytes());
        let origin_number = origin.map(|origin| integer(origin.number));
        let (at, first, last) = (at.as_microsecond(), integer(first.0), integer(last.0));
        statements
            .get(
                "INSERT INTO place
                     (session, number, entry, at, first_seq, last_seq, origin_session, origin_number)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![session, number, entry, at, first, last, origin_session, origin_number])?;
        Ok(())
    }

    /// The entry's number; it is written where it is not there yet.
    fn entry(
        &mut self,
        statements: &mut Statements<'_>,
        transcribed: &Transcribed,
    ) -> Result<i64, WriteFailure> {
        let Transcribed { entry, text, .. } = transcribed;
        let hash = entry.hash();
        let there = statements
            .get("SELECT number FROM entry WHERE hash = ?1")?
            .query_row([hash.as_bytes()], |row| row.get(0))
            .optional()?;
        if let Some(number) = there {
            return Ok(number);
        }
        let Entry { role, content, metadata } = entry;
        let (inline, object, bytes, preview) = match content {
            Content::Text(text) => (Some(text), None, None, None),
            Content::Object { object, bytes, preview } => {
                let mut row = self.objects.keep_now(text.as_bytes()).map_err(unwritten)?;
                row.store(statements)?;
                self.kept.extend(row.kept.take());
                (None, Some(object.as_str()), Some(integer(*bytes)), Some(preview))
            }
        };
        let metadata = to_json(metadata).map_err(unwritten)?;
        let number = statements
            .get(
                "INSERT INTO entry (hash, role, text, object, bytes, preview, metadata)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .insert(params![hash.as_bytes(), role.name(), inline, object, bytes, preview, metadata])?;
        statements
            .get("INSERT INTO entry_text (rowid, text) VALUES (?1, ?2)")?
            .execute(params![number, entry.shown(text)])?;
        Ok(number)
    }
}

/// How many events of a cell are read at once.
const PAGE: usize = 512;

/// Shows a transcriber what was requested before this batch, up to the event that ends it.
fn catch_up(connection: &Connection, transcriber: &mut Transcriber, end: &SessionEvent, requested: Seq) {
    let mut after = Seq(requested.0.saturating_sub(1));
    while after.next() < end.event.seq {
        let page = match queries::events_of(connection, end.event.session, after, PAGE) {
            Ok(page) => page,
            // As above: one damage must not keep everything else out of the transcripts.
            Err(error) => {
                tracing::error!(%error, "a cell cannot be transcribed");
                *transcriber = Transcriber::default();
                return;
            }
        };
        let Some(last) = page.last() else { return };
        after = last.seq;
        for event in page.iter().filter(|event| event.seq < end.event.seq) {
            transcriber.push(&end.kind, event);
        }
    }
}

/// Some of the step is written already: all of it is taken back.
fn unwritten(error: Error) -> WriteFailure {
    WriteFailure::Failed(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

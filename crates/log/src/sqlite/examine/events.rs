//! Every event, in the order of the log: whether it can be read, and whether those of each session follow each other.

use std::collections::HashMap;

use mainstay_model::{EventBody, Position, Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::super::failure::reason_of;
use super::super::rows::{decode_event_at, decode_session_id};
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;

/// What the events said of the sessions, by their numbers.
pub(super) struct EventSummary {
    pub(super) sessions: HashMap<i64, SessionSummary>,
    /// The last position that is in the index.
    pub(super) mark: i64,
}

/// What the events said of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionSummary {
    id: Option<SessionId>,
    /// The sequence number of its newest event.
    pub(super) last: i64,
    /// Its newest event that should be in the index.
    pub(super) indexed: i64,
    /// Whether every event is there, can be read, and is in its place.
    pub(super) is_whole: bool,
    /// Whether it was deleted: what lies before its deletion may have been collected.
    pub(super) is_deleted: bool,
}

const EVENTS: &str = "
    SELECT position, seq, at, kind, body, source, correlation, causation, environment, session
    FROM event WHERE position > ?1 ORDER BY position";

impl Examiner<'_> {
    pub(super) fn events(&mut self, connection: &Connection) -> EventSummary {
        let mark = connection.query_row("SELECT position FROM indexed", (), |row| row.get(0));
        let mut seen = EventSummary { sessions: HashMap::new(), mark: *mark.as_ref().unwrap_or(&0) };
        self.read("indexed", mark.map(drop));
        let mut after = 0;
        while let Err(error) = self.events_after(connection, &mut after, &mut seen) {
            let before = readable_after(connection, after);
            self.found(Finding::EventsUnreadable {
                after: Position(after.unsigned_abs()),
                before: before.map(|before| Position(before.unsigned_abs())),
                reason: error.to_string(),
            });
            // At least one further on, so that this ends whatever the table does.
            let Some(before) = before.filter(|before| *before > after + 1) else { break };
            after = before - 1;
        }
        seen
    }

    /// Reads on from a position, which it moves, as far as the table can be read.
    fn events_after(
        &mut self,
        connection: &Connection,
        after: &mut i64,
        seen: &mut EventSummary,
    ) -> rusqlite::Result<()> {
        let mut select = connection.prepare_cached(EVENTS)?;
        let mut rows = select.query([*after])?;
        while let Some(row) = rows.next()? {
            *after = row.get(0)?;
            self.progress(Stage::Events, self.report.events);
            self.event(connection, *after, row, seen);
        }
        Ok(())
    }

    fn event(&mut self, connection: &Connection, at: i64, row: &Row<'_>, seen: &mut EventSummary) {
        let position = Position(at.unsigned_abs());
        let (number, number_of_event) = match (row.get::<_, i64>(9), row.get::<_, i64>(1)) {
            (Ok(number), Ok(seq)) => (number, seq),
            (Err(error), _) | (_, Err(error)) => {
                let (after, before) =
                    (Position(position.0.saturating_sub(1)), Some(Position(position.0 + 1)));
                self.found(Finding::EventsUnreadable { after, before, reason: error.to_string() });
                return;
            }
        };
        let session = seen.sessions.entry(number).or_insert_with(|| {
            let session = session(connection, number);
            if session.is_none() {
                self.report.add(Finding::SessionMissing { number, position });
            }
            let (id, is_deleted) = session.unzip();
            let is_deleted = is_deleted.unwrap_or_default();
            SessionSummary { id, last: 0, indexed: 0, is_whole: true, is_deleted }
        });
        let (last, seq) = (session.last, Seq(number_of_event.unsigned_abs()));
        session.last = last.max(number_of_event);
        if at <= seen.mark {
            session.indexed = session.last;
        }
        let Some(id) = session.id else { return };
        let (is_deleted, has_gap) = (session.is_deleted, number_of_event > last + 1);
        session.is_whole &= !has_gap;
        let wrong = if number_of_event <= last {
            Some(Finding::EventOutOfOrder { session: id, seq, position })
        } else if has_gap && !(is_deleted && is_deletion(row)) {
            let (first, last) = (Seq((last + 1).unsigned_abs()), Seq(seq.0 - 1));
            Some(Finding::EventsMissing { session: id, first, last })
        } else {
            None
        };
        let unreadable = decode_event_at(id, seq, row).err().map(|error| Finding::EventUnreadable {
            session: id,
            seq,
            reason: reason_of(error),
        });
        session.is_whole &= wrong.is_none() && unreadable.is_none();
        self.report.events += u64::from(unreadable.is_none());
        wrong.into_iter().chain(unreadable).for_each(|finding| self.found(finding));
    }
}

/// A session's id, and whether it was deleted.
fn session(connection: &Connection, number: i64) -> Option<(SessionId, bool)> {
    let sql = "SELECT id, deleted_at IS NOT NULL FROM session LEFT JOIN head ON head.session = number WHERE number = ?1";
    let mut select = connection.prepare_cached(sql).ok()?;
    let read = |row: &Row<'_>| Ok(decode_session_id(row, 0).ok().zip(Some(row.get(1)?)));
    select.query_row([number], read).optional().ok()??
}

fn is_deletion(row: &Row<'_>) -> bool {
    row.get_ref(3).is_ok_and(|kind| kind.as_str() == Ok(EventBody::SessionDeleted.kind()))
}

/// The first event behind what cannot be read after a position; none where nothing behind it can.
fn readable_after(connection: &Connection, after: i64) -> Option<i64> {
    const FARTHEST: i64 = 1 << 40;
    let try_from = |after: i64| -> rusqlite::Result<Option<i64>> {
        connection.prepare_cached(EVENTS)?.query_row([after], |row| row.get(0)).optional()
    };
    let (mut fails, mut works) = (0, 1);
    while try_from(after + works).is_err() {
        (fails, works) = (works, works * 2);
        if works > FARTHEST {
            return None;
        }
    }
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        match try_from(after + middle) {
            Ok(_) => works = middle,
            Err(_) => fails = middle,
        }
    }
    try_from(after + works).ok()?
}

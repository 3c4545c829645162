//! Every session: whether the index leads to its events, whether its head names the newest of them, whether it is what
//! they fold to, and whether each eval and each client's ask that ended has its outcome.

use mainstay_model::decide::Identity;
use mainstay_model::{CommandId, EventBody, Position, Principal, RunningJob, Seq, Session, SessionId};
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::super::failure::reason_of;
use super::super::queries::EVENTS_NOT_INDEXED;
use super::super::rows::{decode_event, decode_session, decode_session_id};
use super::Examiner;
use super::events::{EventSummary, SessionSummary};
use crate::examination::Stage;
use crate::finding::Finding;

const SESSIONS: &str = "
    SELECT projection, last_seq, last_activity, id, number, name, kind, state, working_directory, owner, asks, deleted_at,
           alias
    FROM session LEFT JOIN head ON head.session = number ORDER BY number";

const INDEXED_EVENTS: &str = "
    SELECT event.position, event.seq, at, kind, body, source, correlation, causation, environment, event.session,
           event_index.seq, event_index.position
    FROM event_index LEFT JOIN event ON event.position = event_index.position
    WHERE event_index.session = ?1 ORDER BY event_index.seq";

impl Examiner<'_> {
    pub(super) fn sessions(&mut self, connection: &Connection, seen: &EventSummary) {
        let examined = connection.prepare(SESSIONS).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::Sessions, self.report.sessions);
                self.session(connection, row, seen)?;
            }
            Ok(())
        });
        self.read("session", examined);
    }

    fn session(
        &mut self,
        connection: &Connection,
        row: &Row<'_>,
        seen: &EventSummary,
    ) -> rusqlite::Result<()> {
        let number: i64 = row.get(4)?;
        let id = match decode_session_id(row, 3) {
            Ok(id) => id,
            Err(error) => {
                let (session, reason) = (format!("number {number}"), reason_of(error));
                self.found(Finding::SessionUnreadable { session, reason });
                return Ok(());
            }
        };
        let events = seen.sessions.get(&number).copied();
        let newest = Seq(events.map_or(0, |events| events.last.unsigned_abs()));
        let head = row.get::<_, Option<i64>>(1)?.map(|seq| Seq(seq.unsigned_abs()));
        if head != Some(newest) {
            self.found(Finding::HeadWrong { session: id, head, newest });
        }
        let folded = match events.filter(|events| events.is_whole) {
            Some(events) => match self.fold(connection, number, id, events, seen.mark) {
                Ok(folded) => folded,
                Err(error) => {
                    self.read("event_index", Err(error));
                    None
                }
            },
            None => None,
        };
        if head.is_none() {
            return Ok(());
        }
        match (decode_session(row, 0), folded) {
            (Err(error), _) => {
                let (session, reason) = (id.to_string(), reason_of(error));
                self.found(Finding::SessionUnreadable { session, reason });
            }
            (Ok(stored), Some(folded)) => {
                self.report.sessions += 1;
                let mut fields = difference(&stored, &folded);
                fields.extend(wrong_columns(row, &stored)?);
                if !fields.is_empty() {
                    self.found(Finding::ProjectionWrong { session: id, fields });
                }
            }
            (Ok(_), None) => self.report.sessions += 1,
        }
        Ok(())
    }

    /// What the events fold to, by way of the index as reads take it; none where that way is broken.
    fn fold(
        &mut self,
        connection: &Connection,
        number: i64,
        id: SessionId,
        events: SessionSummary,
        mark: i64,
    ) -> rusqlite::Result<Option<Session>> {
        let mut fold = Fold { is_deleted: events.is_deleted, ..Fold::default() };
        let mut select = connection.prepare_cached(INDEXED_EVENTS)?;
        let mut rows = select.query([number])?;
        let mut next = 1;
        let mut is_right = true;
        while let Some(row) = rows.next()? {
            let (seq, position): (i64, i64) = (row.get(10)?, row.get(11)?);
            is_right &= self.index_reaches(id, next, seq - 1);
            next = seq + 1;
            let there = (row.get::<_, Option<i64>>(9)?, row.get::<_, Option<i64>>(1)?);
            if there != (Some(number), Some(seq)) || position > mark {
                is_right = false;
                let (seq, position) = (Seq(seq.unsigned_abs()), Position(position.unsigned_abs()));
                self.found(Finding::IndexWrong { session: id, seq, position });
            }
            if is_right {
                self.take(connection, &mut fold, id, row)?;
            }
        }
        is_right &= self.index_reaches(id, next, events.indexed);
        if !is_right {
            return Ok(None);
        }
        if events.last > events.indexed {
            let mut select = connection.prepare_cached(EVENTS_NOT_INDEXED)?;
            let mut rows = select.query(params![number, events.indexed, i64::MAX])?;
            while let Some(row) = rows.next()? {
                self.take(connection, &mut fold, id, row)?;
            }
        }
        Ok(fold.session)
    }

    /// Whether the index misses none of the events from `first` to `last`.
    fn index_reaches(&mut self, session: SessionId, first: i64, last: i64) -> bool {
        if first > last {
            return true;
        }
        let (first, last) = (Seq(first.unsigned_abs()), Seq(last.unsigned_abs()));
        self.found(Finding::IndexMissing { session, first, last });
        false
    }

    fn take(
        &mut self,
        connection: &Connection,
        fold: &mut Fold,
        id: SessionId,
        row: &Row<'_>,
    ) -> rusqlite::Result<()> {
        // One that cannot be read has been found already.
        let Ok(event) = decode_event(id, row) else { return Ok(()) };
        let ended_ask = ended_ask(fold.session.as_ref(), &event.body).filter(|_| !fold.is_deleted);
        match &mut fold.session {
            Some(session) => session.evolve(&event),
            None => fold.session = Session::begin(&event),
        }
        if let Some(Identity { principal, command, .. }) = ended_ask {
            self.look_for_outcome(connection, id, event.seq, &principal, command)?;
        }
        let running = fold.session.as_ref().and_then(Session::running);
        if running.map(|running| running.job) == fold.running.as_ref().map(|running| running.job) {
            return Ok(());
        }
        let ended = std::mem::replace(&mut fold.running, running.cloned());
        match ended.filter(|_| !fold.is_deleted) {
            Some(RunningJob { command, source, .. }) => {
                self.look_for_outcome(connection, id, event.seq, &source.principal(), command)
            }
            None => Ok(()),
        }
    }

    /// What this event has ended must have an outcome.
    fn look_for_outcome(
        &mut self,
        connection: &Connection,
        session: SessionId,
        seq: Seq,
        principal: &Principal,
        command: CommandId,
    ) -> rusqlite::Result<()> {
        let answered = connection
            .prepare_cached("SELECT 1 FROM outcome WHERE principal = ?1 AND command = ?2")?
            .exists(params![principal.as_str(), command.as_str()])?;
        if !answered {
            self.found(Finding::OutcomeMissing { session, seq, command });
        }
        Ok(())
    }
}

/// The command whose ask this event ends.
fn ended_ask(session: Option<&Session>, body: &EventBody) -> Option<Identity> {
    let EventBody::AskEnded { ask, .. } = body else { return None };
    session?.ask(*ask)?.identity()
}

/// A session on its way through its events.
#[derive(Default)]
struct Fold {
    session: Option<Session>,
    /// What runs after them.
    running: Option<RunningJob>,
    /// Whether it was deleted: its outcomes may have been collected.
    is_deleted: bool,
}

/// The columns that are there to be searched, and are not what the projection says.
fn wrong_columns(row: &Row<'_>, stored: &Session) -> rusqlite::Result<Vec<String>> {
    let texts = [
        ("name", 5, stored.name.as_str()),
        ("kind", 6, stored.kind.as_str()),
        ("state", 7, stored.state().name()),
        ("working_directory", 8, stored.working_directory.as_str()),
        ("owner", 9, stored.owner.as_str()),
    ];
    let mut wrong = Vec::new();
    for (name, index, expected) in texts {
        if row.get::<_, String>(index)? != expected {
            wrong.push(format!("the column {name}"));
        }
    }
    if row.get::<_, Option<i64>>(11)? != stored.deleted_at.map(|at| at.as_microsecond()) {
        wrong.push("the column deleted_at".to_owned());
    }
    if row.get::<_, Option<String>>(12)? != stored.alias {
        wrong.push("the column alias".to_owned());
    }
    if row.get::<_, i64>(10)? != i64::try_from(stored.asks.len()).unwrap_or(i64::MAX) {
        wrong.push("the column asks".to_owned());
    }
    Ok(wrong)
}

/// The fields in which two sessions differ, but for the newest event, which is the head's, and for a title and tasks given to others, which a
/// session of before has not.
fn difference(stored: &Session, folded: &Session) -> Vec<String> {
    let (Ok(Value::Object(stored)), Ok(Value::Object(folded))) =
        (serde_json::to_value(stored), serde_json::to_value(folded))
    else {
        return Vec::new();
    };
    let mut names: Vec<_> = stored.keys().chain(folded.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let is_new = |name: &str| matches!(name, "title" | "delegations");
    let counts = |name: &str| name != "lastSeq" && (!is_new(name) || stored.contains_key(name));
    names.retain(|name| counts(name) && stored.get(name) != folded.get(name));
    names
}

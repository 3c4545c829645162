//! An append that is sent again because its answer was lost: it is recognised by what is stored, and counts as done.

use mainstay_model::Position;
use rusqlite::{OptionalExtension, params};

use super::{AppendRows, OutcomeRow};
use crate::sqlite::queries::{EVENTS_NOT_INDEXED, INDEXED_EVENTS};
use crate::sqlite::rows::integer;
use crate::sqlite::statements::Statements;

impl AppendRows {
    /// The place of the first event in the whole log, where all of this append is stored already: under the same epoch, at the
    /// same seqs, with the same content. Only its own sender can have stored it.
    pub(super) fn stored_before(
        &self,
        statements: &mut Statements<'_>,
    ) -> rusqlite::Result<Option<Position>> {
        if self.events.is_empty() && self.outcomes.is_empty() {
            return Ok(None);
        }
        // A session that was deleted takes nothing but its deletion.
        let number = statements
            .get(
                "SELECT number FROM session JOIN head ON head.session = number
                 WHERE id = ?1 AND epoch = ?2 AND (deleted_at IS NULL OR last_seq = ?3)",
            )?
            .query_row(params![self.id(), self.epoch, self.last_seq()], |row| row.get(0))
            .optional()?;
        let Some(number) = number else { return Ok(None) };
        for row in &self.outcomes {
            if !row.is_stored_for(statements, number, self.version)? {
                return Ok(None);
            }
        }
        self.stored_events(statements, number)
    }

    /// The place of the first event, where all events are stored.
    fn stored_events(
        &self,
        statements: &mut Statements<'_>,
        number: i64,
    ) -> rusqlite::Result<Option<Position>> {
        let mut first = Position::ZERO;
        let mut found = 0;
        for sql in [INDEXED_EVENTS, EVENTS_NOT_INDEXED] {
            let wanted = &self.events[found..];
            let before = self.seq_before().saturating_add(integer(found as u64));
            let mut rows =
                statements.get(sql)?.query(params![number, before, integer(wanted.len() as u64)])?;
            for (event, seq) in wanted.iter().zip(before.saturating_add(1)..) {
                let Some(row) = rows.next()? else { break };
                if row.get::<_, i64>(1)? != seq || !event.is_in(row)? {
                    return Ok(None);
                }
                if found == 0 {
                    first = Position(row.get::<_, i64>(0)?.unsigned_abs());
                }
                found += 1;
            }
        }
        Ok((found == self.events.len()).then_some(first))
    }
}

impl OutcomeRow {
    /// Whether exactly this outcome is stored, of a command that ended in this version of this session.
    fn is_stored_for(
        &self,
        statements: &mut Statements<'_>,
        session: i64,
        version: i64,
    ) -> rusqlite::Result<bool> {
        let Self { principal, command, key: _, fingerprint, response } = self;
        statements
            .get(
                "SELECT 1 FROM outcome WHERE principal = ?1 AND command = ?2
                 AND fingerprint = ?3 AND response = ?4 AND session = ?5 AND version = ?6",
            )?
            .exists(params![principal, command.as_str(), fingerprint, response, session, version])
    }
}

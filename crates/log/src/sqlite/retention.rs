//! Whose entries are in whose transcript: what keeps those of a deleted session from being collected.

use mainstay_model::{Segment, SessionId};
use rusqlite::{OptionalExtension, params};

use super::rows::integer;
use super::statements::Statements;

/// The first session of these segments that was deleted, and of whose entries no other session has all that are wanted: they may be
/// gone.
pub(super) fn first_gone(
    statements: &mut Statements<'_>,
    segments: &[Segment],
) -> rusqlite::Result<Option<SessionId>> {
    for Segment { session, from, to, .. } in segments {
        let deleted: Option<i64> = statements
            .get(
                "SELECT number FROM session JOIN head ON head.session = number
                 WHERE id = ?1 AND deleted_at IS NOT NULL",
            )?
            .query_row([session.as_uuid().into_bytes()], |row| row.get(0))
            .optional()?;
        let Some(deleted) = deleted else { continue };
        let mut reached = integer(*from);
        let held = statements.get("SELECT first, until FROM held WHERE session = ?1 ORDER BY first")?;
        let mut rows = held.query([deleted])?;
        while let Some(row) = rows.next()? {
            let (first, until): (i64, i64) = (row.get(0)?, row.get(1)?);
            if first <= reached {
                reached = reached.max(until);
            }
        }
        if reached < integer(*to) {
            return Ok(Some(*session));
        }
    }
    Ok(None)
}

/// Notes that a session has these in its transcript.
pub(super) fn hold(
    statements: &mut Statements<'_>,
    holder: i64,
    segments: &[Segment],
) -> rusqlite::Result<()> {
    for Segment { session, from, to, .. } in segments {
        statements
            .get(
                "INSERT INTO held (session, holder, first, until)
                 SELECT number, ?2, ?3, ?4 FROM session WHERE id = ?1 AND number <> ?2
                 ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
            )?
            .execute(params![session.as_uuid().into_bytes(), holder, integer(*from), integer(*to)])?;
    }
    Ok(())
}

/// Forgets what a session has in its transcript.
pub(super) fn let_go(statements: &mut Statements<'_>, holder: i64) -> rusqlite::Result<()> {
    statements.get("DELETE FROM held WHERE holder = ?1")?.execute([holder])?;
    Ok(())
}

//! Whose entries are in whose transcript: what keeps those of a deleted session from being collected.

use mainstay_model::{Segment, SessionId};
use rusqlite::{OptionalExtension, params};

use super::rows::integer;
use super::statements::Statements;

/// The first session of these segments that was deleted, and whose entries up to there no other session has: they may be gone.
pub(super) fn first_gone(
    statements: &mut Statements<'_>,
    segments: &[Segment],
) -> rusqlite::Result<Option<SessionId>> {
    for Segment { session, to, .. } in segments {
        let is_gone = statements
            .get(
                "SELECT deleted_at IS NOT NULL
                     AND NOT EXISTS (SELECT 1 FROM held WHERE held.session = number AND until >= ?2)
                 FROM session JOIN head ON head.session = number WHERE id = ?1",
            )?
            .query_row(params![session.as_uuid().into_bytes(), integer(*to)], |row| row.get(0))
            .optional()?;
        if is_gone == Some(true) {
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
    for Segment { session, to, .. } in segments {
        statements
            .get(
                "INSERT INTO held (session, holder, until)
                 SELECT number, ?2, ?3 FROM session WHERE id = ?1 AND number <> ?2
                 ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
            )?
            .execute(params![session.as_uuid().into_bytes(), holder, integer(*to)])?;
    }
    Ok(())
}

/// Forgets what a session has in its transcript.
pub(super) fn let_go(statements: &mut Statements<'_>, holder: i64) -> rusqlite::Result<()> {
    statements.get("DELETE FROM held WHERE holder = ?1")?.execute([holder])?;
    Ok(())
}

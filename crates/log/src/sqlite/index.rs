//! The index of events: where each event of a session is. Every session has a page of its own in it, so that an index kept
//! with each event would cost a transaction a page for each session it writes to. Hence it is filled some hundred events
//! at a time; those that are not yet in it are fewer than [`INTERVAL`], and [`super::queries::events`] looks through them.

use super::statements::Statements;

/// The index is brought up to date by each append that has an event whose position is a multiple of this.
const INTERVAL: i64 = 1024;

/// Brings the index up to date where the events from `first` to `last`, which were just inserted, make it due.
pub(super) fn extend(statements: &mut Statements<'_>, first: i64, last: i64) -> rusqlite::Result<()> {
    if last / INTERVAL == (first - 1) / INTERVAL {
        return Ok(());
    }
    put(statements, last)
}

/// Brings the index up to date.
pub(super) fn complete(statements: &mut Statements<'_>) -> rusqlite::Result<()> {
    let (newest, indexed): (i64, i64) = statements
        .get("SELECT (SELECT coalesce(max(position), 0) FROM event), (SELECT position FROM indexed)")?
        .query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    if newest > indexed { put(statements, newest) } else { Ok(()) }
}

/// Puts what is not in the index into it, up to the newest event.
fn put(statements: &mut Statements<'_>, newest: i64) -> rusqlite::Result<()> {
    // In no order: all the pages it touches fit the cache, and to sort costs more than to find them.
    statements
        .get(
            "INSERT INTO event_index (session, seq, position)
             SELECT session, seq, position FROM event WHERE position > (SELECT position FROM indexed)",
        )?
        .execute(())?;
    statements.get("UPDATE indexed SET position = ?1")?.execute([newest])?;
    Ok(())
}

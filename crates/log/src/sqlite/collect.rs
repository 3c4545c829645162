//! Collecting: the steps of a collection, each a transaction of some hundred rows. What a session said and did goes from its end,
//! so that what is left of it is always its beginning and its deletion.

use mainstay_model::{Error, SessionId};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::index;
use super::objects::{self, ObjectFiles};
use super::queries::rows;
use super::rows::{count, to_json};
use super::statements::Statements;
use super::writer::WriteFailure;
use mainstay_model::store::{Collected, Collection};

/// About how many rows one step removes.
const STEP: usize = 512;
/// How many outcomes one step looks at.
const OUTCOMES: usize = 2048;

type Step = (Collected, Option<Collection>);

/// A deleted session whose rows are still there.
struct Deleted {
    number: i64,
    /// The sequence number of its deletion event.
    last_seq: i64,
    /// Behind the last of its entries that another session has.
    held: i64,
}

/// Removes events and entries of deleted sessions.
pub(super) fn sessions(statements: &mut Statements<'_>, mut after: i64) -> Result<Step, WriteFailure> {
    let mut collected = Collected::default();
    let mut room = STEP;
    // There may be very many that have nothing left.
    for _ in 0..STEP {
        let Some(deleted) = next_deleted(statements, after)? else {
            return Ok((collected, Some(Collection::Outcomes { after: None })));
        };
        room = remove_entries(statements, &deleted, room, &mut collected)?;
        room = remove_events(statements, &deleted, room, &mut collected)?;
        if room == 0 {
            break;
        }
        after = deleted.number;
    }
    Ok((collected, Some(Collection::Sessions { after })))
}

fn next_deleted(statements: &mut Statements<'_>, after: i64) -> rusqlite::Result<Option<Deleted>> {
    statements
        .get(
            "SELECT session, last_seq,
                 (SELECT coalesce(max(until), 0) FROM held WHERE held.session = head.session)
             FROM head WHERE deleted_at IS NOT NULL AND session > ?1 ORDER BY session LIMIT 1",
        )?
        .query_row([after], |row| {
            Ok(Deleted { number: row.get(0)?, last_seq: row.get(1)?, held: row.get(2)? })
        })
        .optional()
}

/// Removes entries that nobody holds from their places, and those that stand nowhere else; gives how much room is left.
fn remove_entries(
    statements: &mut Statements<'_>,
    deleted: &Deleted,
    room: usize,
    collected: &mut Collected,
) -> Result<usize, WriteFailure> {
    let places: Vec<(i64, i64)> = statements
        .get(
            "SELECT number, entry FROM place
             WHERE session = ?1 AND NOT EXISTS
                 (SELECT 1 FROM held WHERE held.session = ?1 AND first <= number AND number < until)
             ORDER BY number DESC LIMIT ?2",
        )?
        .query_map(params![deleted.number, rows(room)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (number, entry) in &places {
        statements
            .get("DELETE FROM place WHERE session = ?1 AND number = ?2")?
            .execute([deleted.number, *number])?;
        let stands_elsewhere =
            statements.get("SELECT 1 FROM place WHERE entry = ?1 LIMIT 1")?.exists([entry])?;
        if !stands_elsewhere {
            remove_entry(statements, *entry, collected)?;
        }
    }
    Ok(room - places.len())
}

fn remove_entry(
    statements: &mut Statements<'_>,
    entry: i64,
    collected: &mut Collected,
) -> Result<(), WriteFailure> {
    let removed: Option<(Option<String>, u64)> = statements
        .get(
            "DELETE FROM entry WHERE number = ?1
             RETURNING object, coalesce(octet_length(text), octet_length(preview), 0) + octet_length(metadata)",
        )?
        .query_row([entry], |row| Ok((row.get(0)?, count(row, 1)?)))
        .optional()?;
    statements.get("DELETE FROM entry_text WHERE rowid = ?1")?.execute([entry])?;
    let Some((object, bytes)) = removed else { return Ok(()) };
    collected.entries += 1;
    collected.bytes += bytes;
    let Some(object) = object else { return Ok(()) };
    let removed = objects::release(statements, &object)?;
    collected.objects += u64::from(removed.is_some());
    collected.bytes += removed.unwrap_or_default();
    Ok(())
}

/// Removes events behind what is held, but for the deletion; gives how much room is left.
fn remove_events(
    statements: &mut Statements<'_>,
    deleted: &Deleted,
    room: usize,
    collected: &mut Collected,
) -> Result<usize, WriteFailure> {
    if room == 0 {
        return Ok(0);
    }
    let held = match deleted.held {
        0 => 0,
        held => {
            let place = statements
                .get("SELECT last_seq FROM place WHERE session = ?1 AND number = ?2")?
                .query_row([deleted.number, held - 1], |row| row.get(0))
                .optional()?;
            // Where the transcript is damaged nothing is taken from what it may be made of again.
            let Some(seq) = place else { return Ok(room) };
            seq
        }
    };
    // Cheap where there is nothing to be done: what is wanted then is found by the index alone.
    index::complete(statements)?;
    let events: Vec<(i64, i64)> = statements
        .get(
            "SELECT seq, position FROM event_index
             WHERE session = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4",
        )?
        .query_map(params![deleted.number, held, deleted.last_seq, rows(room)], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    for (seq, position) in &events {
        let bytes: Option<u64> = statements
            .get(
                "DELETE FROM event WHERE position = ?1
                 RETURNING coalesce(octet_length(body), 0) + octet_length(source)",
            )?
            .query_row([position], |row| count(row, 0))
            .optional()?;
        statements
            .get("DELETE FROM event_index WHERE session = ?1 AND seq = ?2")?
            .execute([deleted.number, *seq])?;
        collected.bytes += bytes.unwrap_or_default();
    }
    collected.events += events.len() as u64;
    Ok(room - events.len())
}

/// Empties outcomes of commands that ended in deleted sessions, but for those that created and deleted them: what is sent once more
/// is known, runs nowhere, and is answered that the session is gone.
pub(super) fn outcomes(
    statements: &mut Statements<'_>,
    after: Option<&(String, String)>,
) -> Result<Step, WriteFailure> {
    let mut collected = Collected::default();
    let any_deleted = statements.get("SELECT 1 FROM head WHERE deleted_at IS NOT NULL LIMIT 1")?.exists(())?;
    if !any_deleted {
        return Ok((collected, Some(Collection::Files { shelf: 0 })));
    }
    let (principal, command) = after.cloned().unwrap_or_default();
    let outcomes: Vec<Outcome> = statements
        .get(
            "SELECT principal, command, octet_length(response),
                 CASE WHEN deleted_at IS NOT NULL
                     AND response ->> '$.response.response' IS NOT 'created'
                     AND response ->> '$.response.response' IS NOT 'forked'
                     AND response ->> '$.response.seq' IS NOT last_seq
                     AND response ->> '$.error.error' IS NOT 'session_not_found' THEN session.id END
             FROM outcome LEFT JOIN head ON head.session = outcome.session
                 LEFT JOIN session ON session.number = outcome.session
             WHERE (principal, command) > (?1, ?2) ORDER BY principal, command LIMIT ?3",
        )?
        .query_map(params![principal, command, rows(OUTCOMES)], |row| {
            Ok(Outcome {
                principal: row.get(0)?,
                command: row.get(1)?,
                bytes: count(row, 2)?,
                left_by: row.get::<_, Option<[u8; 16]>>(3)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    for Outcome { principal, command, bytes, left_by } in &outcomes {
        let Some(session) = left_by.map(|id| SessionId::from_uuid(Uuid::from_bytes(id))) else { continue };
        let error = Error::SessionNotFound { reference: session.to_string() };
        let gone = to_json(&mainstay_model::Outcome::Failed { error }).map_err(WriteFailure::Refused)?;
        statements
            .get("UPDATE outcome SET response = ?1 WHERE principal = ?2 AND command = ?3")?
            .execute(params![gone, principal, command])?;
        collected.outcomes += 1;
        collected.bytes += bytes.saturating_sub(gone.len() as u64);
    }
    let next = match outcomes.into_iter().nth(OUTCOMES - 1) {
        Some(last) => Collection::Outcomes { after: Some((last.principal, last.command)) },
        None => Collection::Files { shelf: 0 },
    };
    Ok((collected, Some(next)))
}

struct Outcome {
    principal: String,
    command: String,
    bytes: u64,
    /// The deleted session that it is left by.
    left_by: Option<[u8; 16]>,
}

/// Removes files that are no objects any more.
pub(super) fn files(connection: &Connection, objects: &ObjectFiles, shelf: u8) -> Result<Step, Error> {
    let bytes = objects.sweep(connection, shelf)?;
    let next = shelf.checked_add(1).map(|shelf| Collection::Files { shelf });
    Ok((Collected { bytes, ..Collected::default() }, next))
}

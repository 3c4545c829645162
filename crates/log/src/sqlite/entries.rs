//! Entries as they are read, each against its hash.

use mainstay_model::{
    Content, Entry, EntryHash, Error, ObjectHash, Origin, Role, Seq, SessionId, Timestamp, TranscriptEntry,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::failure::failed;
use super::queries::{collect, rows};
use super::rows::{decode_count, decode_session_id, integer};

/// A session's own entries from a number on, in order, at most `limit`.
pub(super) fn own(
    connection: &Connection,
    session: SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<TranscriptEntry>, Error> {
    let sql = format!(
        "SELECT {PLACED}
         FROM session JOIN place ON place.session = session.number JOIN entry ON entry.number = place.entry
         WHERE session.id = ?1 AND place.number >= ?2 ORDER BY place.number LIMIT ?3"
    );
    let values = params![session.as_uuid().into_bytes(), integer(from), rows(limit)];
    collect(connection, &sql, values, |row| decode_placed(session, row))
}

/// How many entries of its own a session has.
pub(super) fn count(connection: &Connection, session: SessionId) -> Result<u64, Error> {
    let found = collect(
        connection,
        "SELECT coalesce(max(place.number) + 1, 0)
         FROM session JOIN place ON place.session = session.number WHERE session.id = ?1",
        [session.as_uuid().into_bytes()],
        decode_count,
    )?;
    Ok(found.first().map_or(0, |count| *count as u64))
}

/// The columns of an entry in its place.
pub(super) const PLACED: &str = "place.number, place.at, place.first_seq, place.last_seq,
    hash, role, entry.text, object, entry.bytes, preview, metadata, origin_session, origin_number";

/// The columns of an entry, as they are among those of [`PLACED`].
pub(super) const ENTRY: &str = "hash, role, entry.text, object, entry.bytes, preview, metadata";

/// Reads the columns of [`PLACED`], the first ones of the row.
pub(super) fn decode_placed(session: SessionId, row: &Row<'_>) -> Result<TranscriptEntry, Error> {
    let counter = |column| row.get::<_, i64>(column).map(i64::unsigned_abs).map_err(failed);
    let number = counter(0)?;
    let (hash, entry) = decode_entry(row, 4)?;
    if entry.hash() != hash {
        return Err(Error::EntryDamaged { session, number });
    }
    let at = Timestamp::from_microsecond(row.get(1).map_err(failed)?).map_err(failed)?;
    let origin = match row.get_ref(11).map_err(failed)? {
        ValueRef::Null => None,
        _ => Some(Origin { session: decode_session_id(row, 11)?, number: counter(12)? }),
    };
    let (first, last) = (Seq(counter(2)?), Seq(counter(3)?));
    Ok(TranscriptEntry { session, number, hash, entry, at, first, last, origin })
}

/// Reads the columns of [`ENTRY`], from the first of them on.
pub(super) fn decode_entry(row: &Row<'_>, first: usize) -> Result<(EntryHash, Entry), Error> {
    let hash = row.get_ref(first).map_err(failed)?.as_blob().map_err(failed)?;
    let hash = EntryHash::from_stored(hash).ok_or_else(|| failed("an entry's hash has not 32 bytes"))?;
    let role = row.get_ref(first + 1).map_err(failed)?.as_str().map_err(failed)?;
    let role = Role::ALL.into_iter().find(|known| known.name() == role);
    let role = role.ok_or_else(|| failed("an entry's role is not known"))?;
    let text: Option<String> = row.get(first + 2).map_err(failed)?;
    let content = match text {
        Some(text) => Content::Text(text),
        None => Content::Object {
            object: ObjectHash::from_stored(row.get(first + 3).map_err(failed)?),
            bytes: row.get::<_, i64>(first + 4).map_err(failed)?.unsigned_abs(),
            preview: row.get(first + 5).map_err(failed)?,
        },
    };
    let metadata = row.get_ref(first + 6).map_err(failed)?.as_str().map_err(failed)?;
    Ok((hash, Entry { role, content, metadata: serde_json::from_str(metadata).map_err(failed)? }))
}

//! What the tables hold, counted.

use mainstay_model::{Error, SessionId};
use rusqlite::Connection;

use super::failure::failed;
use super::rows::count;
use mainstay_model::store::{SessionStatistics, StoreStatistics};

const STORE: &str = "
    SELECT (SELECT count(*) FROM head WHERE deleted_at IS NULL),
           (SELECT count(*) FROM head WHERE deleted_at IS NOT NULL),
           (SELECT count(*) FROM event_index)
               + (SELECT count(*) FROM event WHERE position > (SELECT position FROM indexed)),
           (SELECT count(*) FROM outcome),
           (SELECT count(*) FROM entry),
           (SELECT count(*) FROM place),
           (SELECT count(*) FROM object),
           (SELECT coalesce(sum(size), 0) FROM object),
           (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size),
           (SELECT freelist_count FROM pragma_freelist_count) * (SELECT page_size FROM pragma_page_size),
           (SELECT coalesce(sum(size), 0) FROM object WHERE bytes IS NULL)";

/// Of the whole store.
pub(super) fn store(connection: &Connection) -> Result<StoreStatistics, Error> {
    connection
        .query_row(STORE, (), |row| {
            Ok(StoreStatistics {
                sessions: count(row, 0)?,
                deleted: count(row, 1)?,
                events: count(row, 2)?,
                outcomes: count(row, 3)?,
                entries: count(row, 4)?,
                places: count(row, 5)?,
                objects: count(row, 6)?,
                object_bytes: count(row, 7)?,
                database_bytes: count(row, 8)?,
                free_bytes: count(row, 9)?,
                file_bytes: count(row, 10)?,
            })
        })
        .map_err(failed)
}

const SESSION: &str = "
    WITH of_session AS (
        SELECT event.body FROM event_index CROSS JOIN event ON event.position = event_index.position
        WHERE event_index.session = ?1
        UNION ALL
        SELECT body FROM event WHERE position > (SELECT position FROM indexed) AND session = ?1
    )
    SELECT count(*), coalesce(sum(octet_length(body)), 0),
           (SELECT count(*) FROM place WHERE session = ?1),
           (SELECT coalesce(sum(coalesce(bytes, octet_length(text))), 0)
            FROM place JOIN entry ON entry.number = place.entry WHERE session = ?1),
           (SELECT count(DISTINCT holder) FROM held WHERE session = ?1)
    FROM of_session";

/// Computes the statistics of one session.
pub(super) fn session(connection: &Connection, session: SessionId) -> Result<SessionStatistics, Error> {
    let number = "SELECT coalesce((SELECT number FROM session WHERE id = ?1), 0)";
    let snapshot = connection.unchecked_transaction().map_err(failed)?;
    let number: i64 =
        snapshot.query_row(number, [session.as_uuid().into_bytes()], |row| row.get(0)).map_err(failed)?;
    snapshot
        .query_row(SESSION, [number], |row| {
            Ok(SessionStatistics {
                events: count(row, 0)?,
                event_bytes: count(row, 1)?,
                entries: count(row, 2)?,
                entry_bytes: count(row, 3)?,
                holders: count(row, 4)?,
            })
        })
        .map_err(failed)
}

//! Opening the database: its files, its settings, and the room for its write-ahead log.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_model::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, access};

use super::failure::failed;
use super::files;
use super::migrations::{MIGRATIONS, migrate, steps_done};
use super::options::{Sharing, SqliteOptions};
use super::rows::integer;

const PAGE_BYTES: u64 = 4096;

/// How far the write-ahead log may grow before it is copied into the database and begun anew, in pages.
pub(super) const CHECKPOINT_PAGES: i64 = 2048;

/// Only another program that looks into the store can make us wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the one connection that writes, with the schema up to date.
pub(super) fn writer(database: &Path, options: &SqliteOptions) -> Result<Connection, Error> {
    // SQLite gives the files beside the database the mode of the database.
    files::create_file(database)?;
    if let Some(folder) = database.parent() {
        files::sync_folder(folder)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    prepare_once(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    refuse_newer(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    // The writer checkpoints by itself, after it has answered.
    connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", integer(WRITE_AHEAD_LOG_BYTES)).map_err(failed)?;
    connection.pragma_update(None, "cache_size", -16 * 1024).map_err(failed)?;
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(failed)?;
    migrate(&mut connection, MIGRATIONS)?;
    if let Some(bytes) = options.max_bytes {
        let pages = i64::try_from(bytes / PAGE_BYTES).unwrap_or(i64::MAX);
        connection.pragma_update(None, "max_page_count", pages).map_err(failed)?;
    }
    if matches!(options.sharing, Sharing::Alone) {
        // Another may write to its end meanwhile.
        reserve_write_ahead_log(database)?;
    }
    Ok(connection)
}

/// Refuses the store of a newer program before anything writes to it. A connection that closes would also copy the write-ahead log into the
/// database.
fn refuse_newer(connection: &Connection) -> Result<(), Error> {
    let stays = |stays| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, stays);
    stays(true).map_err(failed)?;
    steps_done(connection, MIGRATIONS.len())?;
    stays(false).map(drop).map_err(failed)
}

/// How large the write-ahead log's file may stay.
pub(super) const WRITE_AHEAD_LOG_BYTES: u64 = 8 * CHECKPOINT_PAGES.unsigned_abs() * PAGE_BYTES;

/// Opens a connection that reads. The writer's must be open, or nobody's.
pub(super) fn reader(database: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    prepare_once(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    Ok(connection)
}

/// Opens a connection that reads a database which nobody can change.
pub(super) fn unchanging(database: &Path) -> Result<Connection, Error> {
    let mut uri = String::from("file:");
    for byte in database.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte))
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags).map_err(failed)
}

/// Whether the database's folder cannot be written.
pub(super) fn is_read_only(database: &Path) -> bool {
    database.parent().is_some_and(|folder| access(folder, Access::WRITE_OK).is_err())
}

/// Keeps SQLite from preparing a statement anew for the values that are bound to it, which costs more than to run it.
fn prepare_once(connection: &Connection) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop).map_err(failed)
}

/// Fills the write-ahead log's file with zeros up to the size it has when it is begun anew. Flushing a file that grows
/// costs the file system a commit of its own; SQLite takes zeros after its last frame for the end of the log.
fn reserve_write_ahead_log(database: &Path) -> Result<(), Error> {
    let path = write_ahead_log(database);
    fill_up(&path).map_err(|error| files::at(&path, error))
}

/// Where SQLite keeps the write-ahead log of a database.
pub(super) fn write_ahead_log(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

fn fill_up(path: &Path) -> io::Result<()> {
    let wanted = CHECKPOINT_PAGES.unsigned_abs() * (PAGE_BYTES + 24);
    let mut file = OpenOptions::new().write(true).open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    // In one piece: what copies zeros byte by byte takes longer in a debug build than all else that opening does.
    let missing = usize::try_from(wanted.saturating_sub(length)).map_err(io::Error::other)?;
    file.write_all(&vec![0; missing])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no test that kills a process can see: whether a commit waits for the disk.
    #[test]
    fn a_commit_is_flushed_before_it_returns() {
        let home = tempfile::tempdir().unwrap();
        let connection = writer(&home.path().join("mainstay.db"), &SqliteOptions::default()).unwrap();
        let setting =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(setting("journal_mode"), Ok("wal".to_owned().into()));
        assert_eq!(setting("synchronous"), Ok(2.into()));
    }
}

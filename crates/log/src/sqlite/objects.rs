//! Objects: small ones are rows, large ones are files beside the database, each with a row that says it is there.
//!
//! A file is complete and durable before its row is; one without a row is what a crash left, and is written again.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mainstay_model::Error;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::task::spawn_blocking;

use super::rows::integer;
use super::statements::Statements;
use super::writer::Unwritten;
use super::{failed, files};
use crate::ObjectHash;

/// The largest object that is a row, in bytes.
const INLINE_BYTES: usize = 64 * 1024;

/// The folder of the large ones.
#[derive(Debug)]
pub(super) struct Objects {
    folder: PathBuf,
    written: AtomicU64,
}

/// An object's row.
pub(super) struct ObjectRow {
    pub(super) hash: ObjectHash,
    size: i64,
    inline: Option<Vec<u8>>,
}

impl Objects {
    /// Opens the folder, and removes what a crash left half written.
    pub(super) fn open(folder: PathBuf) -> Result<Self, Error> {
        let unfinished = folder.join(UNFINISHED);
        files::create_folder(&unfinished)?;
        files::clear_folder(&unfinished)?;
        Ok(Self { folder, written: AtomicU64::new(0) })
    }

    /// Keeps large bytes in a file, and gives the row that makes them an object.
    pub(super) async fn keep(self: &Arc<Self>, bytes: Vec<u8>) -> Result<ObjectRow, Error> {
        let objects = Arc::clone(self);
        spawn_blocking(move || objects.keep_now(&bytes)).await.map_err(failed)?
    }

    /// The same without waiting for anybody, for who may block.
    pub(super) fn keep_now(&self, bytes: &[u8]) -> Result<ObjectRow, Error> {
        let size = integer(bytes.len() as u64);
        if bytes.len() <= INLINE_BYTES {
            return Ok(ObjectRow { hash: ObjectHash::of(bytes), size, inline: Some(bytes.to_vec()) });
        }
        let hash = write(&self.folder, self.written.fetch_add(1, Ordering::Relaxed), bytes)?;
        Ok(ObjectRow { hash, size, inline: None })
    }

    /// The bytes of an object that has a file.
    pub(super) async fn read(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
        let (path, hash) = (path(&self.folder, hash), hash.clone());
        spawn_blocking(move || read(&path, &hash)).await.map_err(failed)?
    }
}

impl ObjectRow {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.inline.as_ref().map_or(0, Vec::len)
    }

    /// Writes the row; one that is there already is only changed where it was damaged.
    pub(super) fn store(&self, statements: &mut Statements<'_>) -> Result<(), Unwritten> {
        let insert = statements.get(
            "INSERT INTO object (hash, size, bytes) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NOT excluded.bytes",
        )?;
        insert.execute(params![self.hash.as_str(), self.size, self.inline])?;
        Ok(())
    }
}

/// The bytes of an object that is a row; none where it is a file.
pub(super) fn find(connection: &Connection, hash: &ObjectHash) -> Result<Option<Vec<u8>>, Error> {
    connection
        .prepare_cached("SELECT bytes FROM object WHERE hash = ?1")
        .and_then(|mut select| select.query_row([hash.as_str()], |row| row.get(0)).optional())
        .map_err(failed)?
        .ok_or_else(|| Error::ObjectNotFound { hash: hash.to_string() })
}

/// The bytes, where they are those of the hash.
pub(super) fn verified(hash: &ObjectHash, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    if ObjectHash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged(hash)) }
}

const UNFINISHED: &str = "unfinished";

fn write(folder: &Path, number: u64, bytes: &[u8]) -> Result<ObjectHash, Error> {
    let hash = ObjectHash::of(bytes);
    let path = path(folder, &hash);
    if read(&path, &hash).is_ok() {
        return Ok(hash);
    }
    let unfinished = folder.join(UNFINISHED).join(number.to_string());
    let mut file = files::create_new_file(&unfinished)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| files::at(&unfinished, error))?;
    if let Some(shelf) = path.parent() {
        files::create_folder(shelf)?;
        fs::rename(&unfinished, &path).map_err(|error| files::at(&path, error))?;
        files::sync_folder(shelf)?;
        // Another put may have made the shelf and not have flushed it yet.
        files::sync_folder(folder)?;
    }
    Ok(hash)
}

fn read(path: &Path, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
    match fs::read(path) {
        Ok(bytes) => verified(hash, bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(damaged(hash)),
        Err(error) => Err(files::at(path, error)),
    }
}

/// Where an object's file is: on one of 256 shelves, by the first two digits.
pub(super) fn path(folder: &Path, hash: &ObjectHash) -> PathBuf {
    let digits = hash.as_str();
    folder.join(digits.get(..2).unwrap_or(digits)).join(digits)
}

fn damaged(hash: &ObjectHash) -> Error {
    Error::ObjectDamaged { hash: hash.to_string() }
}

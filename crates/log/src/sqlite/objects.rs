//! ObjectFiles: small ones are rows, large ones are files beside the database, each with a row that says it is there.
//!
//! A file is complete and durable before its row is; one without a row is what a crash or a collection left. It is written
//! again, or swept away; what is [`ObjectGuard`] meanwhile is not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use mainstay_model::Error;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::task::spawn_blocking;

use super::failure::failed;
use super::files;
use super::options::Sharing;
use super::rows::{count, integer};
use super::statements::Statements;
use super::writer::WriteFailure;
use crate::ObjectHash;

/// The largest object that is a row, in bytes.
const INLINE_BYTES: usize = 64 * 1024;

/// The folder of the large ones.
#[derive(Debug)]
pub(super) struct ObjectFiles {
    folder: PathBuf,
    written: AtomicU64,
    /// Files whose rows are on their way to the disk, and how often.
    kept: Mutex<BTreeMap<ObjectHash, usize>>,
    /// Held by who needs all files to stay, and alone by who sweeps.
    sweeps: RwLock<()>,
}

/// Keeps an object's file from being swept away, until its row is durable.
#[derive(Debug)]
pub(super) struct ObjectGuard {
    objects: Arc<ObjectFiles>,
    hash: ObjectHash,
}

/// The row of an object.
pub(super) struct ObjectRow {
    pub(super) hash: ObjectHash,
    size: i64,
    inline: Option<Vec<u8>>,
    /// Held until the row is durable.
    pub(super) kept: Option<ObjectGuard>,
}

impl ObjectFiles {
    /// Opens the folder, and removes what a crash left half written, where nobody else can be writing it.
    pub(super) fn open(folder: PathBuf, sharing: &Sharing) -> Result<Self, Error> {
        let unfinished = folder.join(UNFINISHED);
        files::create_folder(&unfinished)?;
        if matches!(sharing, Sharing::Alone) {
            files::clear_folder(&unfinished)?;
        }
        Ok(Self { folder, written: AtomicU64::new(0), kept: Mutex::default(), sweeps: RwLock::default() })
    }

    /// Keeps large bytes in a file, and gives the row that makes them an object.
    pub(super) async fn keep(self: &Arc<Self>, bytes: Vec<u8>) -> Result<ObjectRow, Error> {
        let objects = Arc::clone(self);
        spawn_blocking(move || objects.keep_now(&bytes)).await.map_err(failed)?
    }

    /// The same without waiting for anybody, for who may block.
    pub(super) fn keep_now(self: &Arc<Self>, bytes: &[u8]) -> Result<ObjectRow, Error> {
        let size = integer(bytes.len() as u64);
        if bytes.len() <= INLINE_BYTES {
            let hash = ObjectHash::of(bytes);
            return Ok(ObjectRow { hash, size, inline: Some(bytes.to_vec()), kept: None });
        }
        let hash = ObjectHash::of(bytes);
        let kept = self.keep_file(&hash);
        write(&self.folder, self.written.fetch_add(1, Ordering::Relaxed), &hash, bytes)?;
        Ok(ObjectRow { hash, size, inline: None, kept: Some(kept) })
    }

    fn keep_file(self: &Arc<Self>, hash: &ObjectHash) -> ObjectGuard {
        *self.lock().entry(hash.clone()).or_default() += 1;
        ObjectGuard { objects: Arc::clone(self), hash: hash.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectHash, usize>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As long as this is held nothing is swept away.
    pub(super) fn without_sweeps(&self) -> RwLockReadGuard<'_, ()> {
        self.sweeps.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the files of one shelf that no row says are there, and gives how many bytes they had. Does nothing while they must
    /// stay.
    pub(super) fn sweep(&self, connection: &Connection, shelf: u8) -> Result<u64, Error> {
        let Ok(_alone) = self.sweeps.try_write() else { return Ok(0) };
        let shelf = self.folder.join(format!("{shelf:02x}"));
        if !shelf.is_dir() {
            return Ok(0);
        }
        let mut bytes = 0;
        for file in fs::read_dir(&shelf).map_err(|error| files::at(&shelf, error))? {
            let file = file.map_err(|error| files::at(&shelf, error))?;
            let hash = ObjectHash::from_stored(file.file_name().to_string_lossy().into_owned());
            // Held meanwhile: what is put from here on waits, and finds no file.
            let kept = self.lock();
            if !kept.contains_key(&hash) && !is_there(connection, &hash)? {
                bytes += file.metadata().map_err(|error| files::at(&shelf, error))?.len();
                fs::remove_file(file.path()).map_err(|error| files::at(&file.path(), error))?;
            }
        }
        Ok(bytes)
    }

    /// The bytes of an object that has a file.
    pub(super) async fn read(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
        let (path, hash) = (path(&self.folder, hash), hash.clone());
        spawn_blocking(move || read(&path, &hash)).await.map_err(failed)?
    }
}

impl Drop for ObjectGuard {
    fn drop(&mut self) {
        let mut kept = self.objects.lock();
        if let Some(times) = kept.get_mut(&self.hash) {
            *times -= 1;
            if *times == 0 {
                kept.remove(&self.hash);
            }
        }
    }
}

impl ObjectRow {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.inline.as_ref().map_or(0, Vec::len)
    }

    /// Writes the row; one that is there already is only changed where it was damaged.
    pub(super) fn store(&self, statements: &mut Statements<'_>) -> Result<(), WriteFailure> {
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

/// Removes an object that nothing has as its content any more, and gives how many bytes its row had. A file goes with the sweep, once
/// this is durable.
pub(super) fn release(statements: &mut Statements<'_>, hash: &str) -> rusqlite::Result<Option<u64>> {
    let is_content = statements
        .get(
            "SELECT EXISTS (SELECT 1 FROM entry WHERE object = ?1)
                 OR EXISTS (SELECT 1 FROM history WHERE object = ?1)
                 OR EXISTS (SELECT 1 FROM artifact WHERE object = ?1)",
        )?
        .query_row([hash], |row| row.get::<_, bool>(0))?;
    if is_content {
        return Ok(None);
    }
    statements
        .get("DELETE FROM object WHERE hash = ?1 RETURNING coalesce(octet_length(bytes), 0)")?
        .query_row([hash], |row| count(row, 0))
        .optional()
}

/// Whether an object has a row.
fn is_there(connection: &Connection, hash: &ObjectHash) -> Result<bool, Error> {
    connection
        .prepare_cached("SELECT 1 FROM object WHERE hash = ?1")
        .and_then(|mut select| select.exists([hash.as_str()]))
        .map_err(failed)
}

/// The bytes, where they are those of the hash.
pub(super) fn verified(hash: &ObjectHash, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    if ObjectHash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged(hash)) }
}

const UNFINISHED: &str = "unfinished";

/// Copies an object's file from one folder of objects to another that does not have it.
pub(super) fn copy(from: &Path, to: &Path, hash: &ObjectHash) -> Result<(), Error> {
    let bytes = read(&path(from, hash), hash)?;
    let target = path(to, hash);
    if let Some(shelf) = target.parent() {
        files::create_folder(shelf)?;
        write_file(&target, &bytes)?;
        files::sync_folder(shelf)?;
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = files::create_new_file(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| files::at(path, error))
}

fn write(folder: &Path, number: u64, hash: &ObjectHash, bytes: &[u8]) -> Result<(), Error> {
    let path = path(folder, hash);
    if read(&path, hash).is_ok() {
        return Ok(());
    }
    let unfinished = folder.join(UNFINISHED).join(number.to_string());
    write_file(&unfinished, bytes)?;
    if let Some(shelf) = path.parent() {
        files::create_folder(shelf)?;
        fs::rename(&unfinished, &path).map_err(|error| files::at(&path, error))?;
        files::sync_folder(shelf)?;
        // Another put may have made the shelf and not have flushed it yet.
        files::sync_folder(folder)?;
    }
    Ok(())
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

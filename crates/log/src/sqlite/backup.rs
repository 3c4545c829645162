//! Making backups while the store is used, and putting one in a store's place.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use mainstay_model::{Error, Timestamp};
use rusqlite::Connection;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::failure::failed;
use super::lock::StoreLock;
use super::objects::{self, ObjectFiles};
use super::options::Sharing;
use super::queries::{collect, last_position};
use super::{examine, files, open, statistics};
use crate::ObjectHash;
use crate::backup::MANIFEST;
#[cfg(feature = "failpoints")]
use crate::failpoint::Failpoint;
use crate::objects::hash_of_reader;
use mainstay_model::store::Manifest;

/// Writes a backup of the store with this database into a folder that is empty or not there. Blocks until all of it is on the disk.
pub(super) fn make(
    database: &Path,
    objects: &ObjectFiles,
    folder: &Path,
    now: Timestamp,
) -> Result<Manifest, Error> {
    must_be_empty(folder)?;
    files::create_folder(folder)?;
    write_backup(database, objects, folder, now).inspect_err(|_| {
        // What is left has no manifest, and so is no backup.
        files::remove_contents(folder).ok();
    })
}

fn write_backup(
    database: &Path,
    objects: &ObjectFiles,
    folder: &Path,
    now: Timestamp,
) -> Result<Manifest, Error> {
    // Else a file could go between the moment of the backup and its copy.
    let _nothing_is_swept = objects.without_sweeps();
    let target = folder.join("mainstay.db");
    let file = files::create_new_file(&target)?;
    open::reader(database)?.execute("VACUUM INTO ?1", [path_text(&target)?]).map_err(failed)?;
    file.sync_all().map_err(|error| files::at(&target, error))?;
    let copy = open::unchanging(&target)?;
    let files = copy_files(&copy, objects.folder(), &folder.join("objects"))?;
    let stored = statistics::store(&copy)?;
    let manifest = Manifest {
        made_at: now,
        position: last_position(&copy)?,
        database: hash_of_file(&target)?,
        sessions: stored.sessions,
        files,
        bytes: stored.database_bytes + stored.file_bytes,
    };
    write_manifest(folder, &manifest)?;
    Ok(manifest)
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest).map_err(failed)?;
    let mut file = files::create_new_file(&path)?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(|error| files::at(&path, error))?;
    files::sync_folder(folder)
}

/// What a backup holds; none where the folder is no whole backup.
///
/// # Errors
/// [`Error::StoreFailed`] where the disk refuses.
pub fn manifest(folder: &Path) -> Result<Option<Manifest>, Error> {
    let path = folder.join(MANIFEST);
    match fs::read(&path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::at(&path, error)),
    }
}

/// Puts a copy of the backup in `from` in the place of the store in `store`, which nobody may have open. Gives where the store is now
/// that was there.
///
/// # Errors
/// [`Error::StoreLocked`] where a daemon has it, [`Error::InvalidArgument`] where `from` is no whole backup or is damaged,
/// [`Error::StoreFailed`] where the disk refuses. Then the store is as it was.
pub fn restore(from: &Path, store: &Path, now: Timestamp) -> Result<Option<PathBuf>, Error> {
    let Some(manifest) = manifest(from)? else {
        return Err(invalid(from, "it is no whole backup: it has no manifest that can be read"));
    };
    let lock = match store.is_dir() {
        true => Some(StoreLock::take(store, &Sharing::Alone)?),
        false => None,
    };
    let staged = beside(store, "restoring");
    // One that was cut off.
    remove_folder(&staged)?;
    let placed =
        copy_store(from, &staged, &manifest).and_then(|()| must_be_sound(from, &staged)).and_then(|()| {
            match &lock {
                Some(_) => exchange(&staged, store, now).map(Some),
                None => rename(&staged, store).map(|()| None),
            }
        });
    if placed.is_err() {
        remove_folder(&staged).ok();
    }
    placed
}

fn copy_store(from: &Path, to: &Path, manifest: &Manifest) -> Result<(), Error> {
    files::create_folder(to)?;
    let database = to.join("mainstay.db");
    copy_file(&from.join("mainstay.db"), &database)?;
    if hash_of_file(&database)? != manifest.database {
        return Err(invalid(from, "its database is not as it was written"));
    }
    let copy = open::unchanging(&database)?;
    copy_files(&copy, &from.join("objects"), &to.join("objects"))?;
    files::sync_folder(to)
}

fn must_be_sound(from: &Path, copy: &Path) -> Result<(), Error> {
    let examined = examine(copy, &mut |_| {})?;
    match examined.filter(|report| !report.is_sound()) {
        None => Ok(()),
        Some(report) => {
            let first = report.findings.first().map(ToString::to_string).unwrap_or_default();
            Err(invalid(from, &format!("it is damaged: {first}")))
        }
    }
}

/// Puts the copy in the store's place, and the store in the copy's, in one step. From then on nothing is removed: the copy has the name
/// under which the store is to be found by then.
fn exchange(copy: &Path, store: &Path, now: Timestamp) -> Result<PathBuf, Error> {
    let aside = free_aside(store, now);
    #[cfg(feature = "failpoints")]
    Failpoint::DuringRestore.pass();
    rename(copy, &aside)?;
    #[cfg(feature = "failpoints")]
    Failpoint::DuringRestore.pass();
    if let Err(error) = renameat_with(CWD, &aside, CWD, store, RenameFlags::EXCHANGE) {
        remove_folder(&aside)?;
        return Err(files::at(store, error.into()));
    }
    #[cfg(feature = "failpoints")]
    Failpoint::DuringRestore.pass();
    store.parent().map_or(Ok(()), files::sync_folder)?;
    Ok(aside)
}

/// Where a store that is replaced now is set aside: a name of its own, also for the second one of a second.
fn free_aside(store: &Path, now: Timestamp) -> PathBuf {
    let name = format!("before-{}", now.strftime("%Y%m%d-%H%M%S"));
    let mut aside = beside(store, &name);
    let mut number = 2;
    while aside.exists() {
        aside = beside(store, &format!("{name}-{number}"));
        number += 1;
    }
    aside
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| files::at(to, error))?;
    to.parent().map_or(Ok(()), files::sync_folder)
}

/// Copies the files of a database's large objects, each verified; gives how many.
fn copy_files(database: &Connection, from: &Path, to: &Path) -> Result<u64, Error> {
    let hashes = collect(database, "SELECT hash FROM object WHERE bytes IS NULL", (), |row| {
        Ok(ObjectHash::from_stored(row.get(0).map_err(failed)?))
    })?;
    for hash in &hashes {
        objects::copy(from, to, hash)?;
    }
    Ok(hashes.len() as u64)
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let mut target = files::create_new_file(to)?;
    let mut source = fs::File::open(from).map_err(|error| files::at(from, error))?;
    std::io::copy(&mut source, &mut target)
        .and_then(|_| target.sync_all())
        .map_err(|error| files::at(to, error))
}

fn hash_of_file(path: &Path) -> Result<ObjectHash, Error> {
    let file = fs::File::open(path).map_err(|error| files::at(path, error))?;
    hash_of_reader(file).map_err(|error| files::at(path, error))
}

fn must_be_empty(folder: &Path) -> Result<(), Error> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_empty { Ok(()) } else { Err(invalid(folder, "it is there already, and no empty folder")) }
}

fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(files::at(folder, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A name beside the store's.
fn beside(store: &Path, what: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".{what}"));
    PathBuf::from(name)
}

fn path_text(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| invalid(path, "its name is no UTF-8"))
}

fn invalid(folder: &Path, reason: &str) -> Error {
    Error::InvalidArgument {
        argument: "folder".to_owned(),
        reason: format!("`{}`: {reason}", folder.display()),
    }
}

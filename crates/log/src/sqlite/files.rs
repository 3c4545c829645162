//! Folders and files that survive the loss of the machine: made private, and flushed into their folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use mainstay_model::Error;

/// Makes a folder with mode 0700, and those above it that are missing. One that exists is left as it is.
pub(super) fn create_folder(folder: &Path) -> Result<(), Error> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| *above != Path::new(""));
    if let Some(above) = above {
        create_folder(above)?;
    }
    // Recursive only in that another thread may have made it meanwhile.
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| at(folder, error))?;
    sync_folder(above.unwrap_or(Path::new(".")))
}

/// Makes an empty file with mode 0600 where there is none.
pub(super) fn create_file(file: &Path) -> Result<File, Error> {
    open_private().create(true).truncate(false).open(file).map_err(|error| at(file, error))
}

/// Makes a file with mode 0600 that did not exist before.
pub(super) fn create_new_file(file: &Path) -> Result<File, Error> {
    open_private().create_new(true).open(file).map_err(|error| at(file, error))
}

/// Makes durable which files a folder has.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|handle| handle.sync_all()).map_err(|error| at(folder, error))
}

/// Removes the files in a folder.
pub(super) fn clear_folder(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|error| at(folder, error))? {
        let file = entry.map_err(|error| at(folder, error))?.path();
        fs::remove_file(&file).map_err(|error| at(&file, error))?;
    }
    Ok(())
}

/// Removes all that is in a folder.
pub(super) fn remove_contents(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|error| at(folder, error))? {
        let path = entry.map_err(|error| at(folder, error))?.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| at(&path, error))?;
    }
    Ok(())
}

/// The error for what the file system refused, with where it did.
pub(super) fn at(path: &Path, error: io::Error) -> Error {
    Error::StoreFailed { reason: format!("{}: {error}", path.display()) }
}

fn open_private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

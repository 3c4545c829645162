//! Files with keys that the settings name.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mainstay_model::Error;

/// The largest file of keys.
const KEY_BYTES: u64 = 1024 * 1024;

/// A file that cannot be used, and why.
pub(super) fn unusable(file: &Path, reason: &impl ToString) -> Error {
    Error::InvalidArgument { argument: file.display().to_string(), reason: reason.to_string() }
}

/// What a file has that the settings name; a path that is not absolute begins in Mainstay's home. A secret must be closed to others.
pub(super) fn read_file(home: &Path, file: &Path, is_secret: bool) -> Result<Vec<u8>, Error> {
    let path = home.join(file);
    let found = std::fs::metadata(&path).map_err(|error| unusable(&path, &error))?;
    if is_secret && found.permissions().mode() & 0o077 != 0 {
        return Err(unusable(&path, &"others can read this secret; `chmod 600` closes it to them"));
    }
    if found.len() > KEY_BYTES {
        return Err(unusable(&path, &"it is too large for a file of keys"));
    }
    std::fs::read(&path).map_err(|error| unusable(&path, &error))
}

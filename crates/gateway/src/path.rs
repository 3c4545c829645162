//! Paths of this machine that clients name. The daemon's own folder is none of theirs, so nothing is relative to it.

use std::path::PathBuf;

use mainstay_model::Error;

/// An absolute path.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is relative.
pub fn absolute(path: &str) -> Result<PathBuf, Error> {
    let file = PathBuf::from(path);
    match file.is_absolute() {
        true => Ok(file),
        false => Err(Error::InvalidArgument {
            argument: "path".to_owned(),
            reason: format!("`{path}`: it must be absolute"),
        }),
    }
}

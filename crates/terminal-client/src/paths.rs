//! Folders and files as the user names them.

use std::path::PathBuf;

use mainstay_model::Error;

/// The folder the command was given in.
pub fn working_directory() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| Error::InvalidArgument {
        argument: "working directory".to_owned(),
        reason: error.to_string(),
    })
}

/// The absolute path of what is there.
pub fn existing(path: &PathBuf, argument: &str) -> Result<PathBuf, Error> {
    std::fs::canonicalize(path).map_err(|error| Error::InvalidArgument {
        argument: argument.to_owned(),
        reason: format!("`{}`: {error}", path.display()),
    })
}

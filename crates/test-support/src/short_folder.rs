//! A folder of a test that holds sockets, whose paths have an upper bound.

use std::path::Path;

use tempfile::TempDir;

/// The longest path of a temporary folder, in bytes, that leaves room for the sockets of a home in it.
const LONGEST: usize = 24;

/// A new folder with a short path: where temporary files are, and in `/tmp` where that path is a long one, as on macOS.
///
/// # Panics
/// The folder cannot be made.
pub fn short_folder() -> TempDir {
    let temporary = std::env::temp_dir();
    let is_short = temporary.as_os_str().len() <= LONGEST;
    let place = if is_short { &temporary } else { Path::new("/tmp") };
    tempfile::Builder::new().prefix("ms").tempdir_in(place).unwrap()
}

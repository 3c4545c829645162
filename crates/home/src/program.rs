//! The path of this program, for starting it again.

use std::path::PathBuf;

/// Returns the path of this program: what is there now, where the program was replaced while it ran.
///
/// # Errors
/// The system does not say which program this is.
pub fn program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Linux marks the path of a file that is not there any more so.
    let replaced = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|replaced| replaced.is_file()).unwrap_or(program))
}

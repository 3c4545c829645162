//! Which compilers a daemon keeps warm, as it tells those who look at the home: a file beside its sockets.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file, in the folder of the daemon's sockets.
const FILE: &str = "compilers.json";

/// A compiler that a daemon keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompilerRecord {
    /// The number of its process.
    pub pid: u32,
    /// When that was started, in the system's own terms, so that no other process of its number is meant.
    pub started: Option<u64>,
    /// Whether it has compiled before, and is used.
    pub is_warm: bool,
}

/// Those of the daemon that has its sockets in this folder; some may have ended.
pub fn kept(sockets: &Path) -> Vec<CompilerRecord> {
    let text = fs::read(sockets.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Tells which there are, at once and whole.
///
/// # Errors
/// The file cannot be written.
pub fn tell(sockets: &Path, compilers: &[CompilerRecord]) -> io::Result<()> {
    let fresh = sockets.join(format!("{FILE}.new"));
    fs::write(&fresh, serde_json::to_vec(compilers)?)?;
    fs::rename(fresh, sockets.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_last_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept(folder.path()), []);
        let one = CompilerRecord { pid: 7, started: Some(8), is_warm: true };
        tell(folder.path(), std::slice::from_ref(&one)).unwrap();
        assert_eq!(kept(folder.path()), [one]);
        tell(folder.path(), &[]).unwrap();
        assert_eq!(kept(folder.path()), []);
    }
}

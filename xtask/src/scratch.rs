//! Where tests make their folders: in memory, where a machine has a file system there.
//!
//! Each store of a test flushes what it commits, and reserves 4 MB. On a disk, tests wait for that longer than for anything else.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

use crate::failure::Failure;

/// Where Linux has a file system in memory.
const MEMORY: &str = "/dev/shm";
/// How many bytes must be free there: several times of what the tests were seen to need at once.
const NEEDED: u64 = 8 << 30;
/// The beginning of the folders' names, short for the paths of sockets in them.
const PREFIX: &str = "ms-";

/// A folder in memory that the tests of one run make theirs in, removed with this value. None where the environment names a folder already,
/// and where there is no such file system, it has too little room, or nothing in it may be executed.
pub(crate) fn in_memory() -> Result<Option<TempDir>, Failure> {
    let memory = Path::new(MEMORY);
    if std::env::var_os("TMPDIR").is_some() || !has_room(memory) {
        return Ok(None);
    }
    remove_abandoned(memory);
    let name = format!("{PREFIX}{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&name).rand_bytes(2).tempdir_in(memory);
    folder.map(Some).map_err(Failure::at(memory))
}

/// The variables that have tests, and what they start, use the folder.
pub(crate) fn environment(folder: Option<&TempDir>) -> Option<(OsString, OsString)> {
    folder.map(|folder| ("TMPDIR".into(), folder.path().into()))
}

fn has_room(memory: &Path) -> bool {
    statvfs(memory).is_ok_and(|system| {
        !system.f_flag.contains(StatVfsMountFlags::NOEXEC)
            && system.f_bavail.saturating_mul(system.f_frsize) >= NEEDED
    })
}

/// Removes what runs left behind that were killed, as well as it can: it is memory that nobody has any use for.
fn remove_abandoned(memory: &Path) {
    for entry in fs::read_dir(memory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let is_abandoned =
            owner.and_then(|owner| owner.parse::<u32>().ok()).is_some_and(|owner| !is_alive(owner));
        if is_abandoned && fs::remove_dir_all(entry.path()).is_err() {
            eprintln!("`{}` was left behind by an earlier run and cannot be removed", entry.path().display());
        }
    }
}

fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_behind_is_removed_and_nothing_else() {
        let memory = tempfile::tempdir().unwrap();
        let alive = format!("{PREFIX}{}-ab", std::process::id());
        // No process has a number as large.
        let abandoned = format!("{PREFIX}4294967295-cd");
        for name in [&*alive, &*abandoned, "ms-other", "other"] {
            fs::create_dir_all(memory.path().join(name).join("home")).unwrap();
        }
        remove_abandoned(memory.path());
        let mut left: Vec<_> = fs::read_dir(memory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [&*alive, "ms-other", "other"]);
    }
}

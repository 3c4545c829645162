//! What the system knows of processes: what they use, what they have open, and which bear a variable in their environment.
//!
//! Linux tells all of it. Elsewhere each question has the answer that does no harm: nothing is known, and nothing is killed.

use std::fs::File;

use rustix::process::Pid;

#[cfg(target_os = "linux")]
use self::linux as platform;
#[cfg(not(target_os = "linux"))]
use self::portable as platform;

/// What a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in milliseconds.
    pub cpu_ms: u64,
}

/// What a process uses now; none where it is gone, or the system does not tell.
pub fn usage_of(pid: Pid) -> Option<ResourceUsage> {
    platform::usage_of(pid)
}

/// The resident memory of this process, in bytes; none where the system does not tell.
pub fn own_resident_bytes() -> Option<u64> {
    Some(platform::usage_of(rustix::process::getpid())?.resident_bytes)
}

/// When a process was started, in the system's own terms; none where it is gone, or the system does not tell. No two processes of one
/// number were started at the same time, since the machine was.
pub fn started_at(pid: Pid) -> Option<u64> {
    platform::started_at(pid)
}

/// Whether a process has the same file open as `file` is. Where the system does not tell, whether the process lives.
pub fn has_open(pid: Pid, file: &File) -> bool {
    platform::has_open(pid, file)
}

/// Kills every process in whose environment the variable has a value that is meant. Returns whether there was none, and none that cannot be
/// known: a process that is exchanging its program has no environment for a moment. Where the system does not tell, none is found.
pub fn kill_with_variable(variable: &str, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    platform::kill_with_variable(variable, is_meant)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, Metadata};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use procfs::process::{Process, all_processes};
    use rustix::process::{Pid, Signal, kill_process};

    use super::ResourceUsage;

    pub(super) fn usage_of(pid: Pid) -> Option<ResourceUsage> {
        let stat = Process::new(pid.as_raw_nonzero().get()).ok()?.stat().ok()?;
        let ticks = procfs::ticks_per_second().max(1);
        Some(ResourceUsage {
            resident_bytes: stat.rss * procfs::page_size(),
            cpu_ms: (stat.utime + stat.stime) * 1000 / ticks,
        })
    }

    pub(super) fn started_at(pid: Pid) -> Option<u64> {
        Some(Process::new(pid.as_raw_nonzero().get()).ok()?.stat().ok()?.starttime)
    }

    pub(super) fn has_open(pid: Pid, file: &File) -> bool {
        let Ok(ours) = file.metadata() else { return false };
        let is_ours = |theirs: Metadata| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino());
        // Sockets and pipes have no path; the links themselves lead to any file, also to one that was removed.
        let folder = format!("/proc/{}/fd", pid.as_raw_nonzero());
        std::fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| std::fs::metadata(file.path()).is_ok_and(is_ours)))
    }

    pub(super) fn kill_with_variable(variable: &str, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let mut is_none = true;
        for process in all_processes().into_iter().flatten().flatten() {
            let environment = process.environ().unwrap_or_default();
            let value = environment.iter().find(|(name, _)| name.as_bytes() == variable.as_bytes());
            if value.is_some_and(|(_, value)| is_meant(value.as_bytes())) {
                if let Some(pid) = Pid::from_raw(process.pid()) {
                    // It may have ended by itself in this moment.
                    kill_process(pid, Signal::KILL).ok();
                }
                is_none = false;
            }
            is_none &= !(environment.is_empty() && is_changing_program(&process));
        }
        is_none
    }

    /// Whether a process has an environment that could not be read, as while it exchanges its program.
    fn is_changing_program(process: &Process) -> bool {
        // The system's own have no program, and those of others do not tell it.
        if process.exe().is_err() {
            return false;
        }
        // Of these the place where the program's code begins is set last.
        process.stat().is_ok_and(|stat| stat.startcode == 0 || stat.env_start != stat.env_end)
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::fs::File;

    use rustix::process::{Pid, test_kill_process};

    use super::ResourceUsage;

    pub(super) fn usage_of(_: Pid) -> Option<ResourceUsage> {
        None
    }

    pub(super) fn started_at(_: Pid) -> Option<u64> {
        None
    }

    pub(super) fn has_open(pid: Pid, _: &File) -> bool {
        test_kill_process(pid).is_ok()
    }

    pub(super) fn kill_with_variable(_: &str, _: impl Fn(&[u8]) -> bool) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_has_open_what_it_opened() {
        assert!(own_resident_bytes().unwrap() > 100_000);
        let own = rustix::process::getpid();
        let file = tempfile::tempfile().unwrap();
        assert!(has_open(own, &file));
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let other = File::open(&path).unwrap();
        let copy = File::open(&path).unwrap();
        assert!(has_open(own, &copy));
        drop((other, copy));
        assert!(has_open(own, &file));
    }

    #[test]
    fn a_process_that_is_gone_uses_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        child.wait().unwrap();
        assert_eq!(usage_of(pid), None);
    }
}

//! What pi started and set apart: its shells lead process groups of their own, and so outlive the end of pi's. They are known by a
//! mark in the environment that they inherit, also when pi is gone already, and the daemon with it.

use std::ffi::OsString;
use std::path::Path;

use uuid::Uuid;

/// The variable that has the mark.
const VARIABLE: &str = "MAINSTAY_RUNNER";

/// The mark of one process and of all that it starts.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// What those of one session have in common.
    session: String,
    own: String,
}

impl Mark {
    /// One that nobody else has, for the session with this folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let session = format!("{}#", folder.display());
        Self { own: format!("{session}{}", Uuid::new_v4().simple()), session }
    }

    /// What the process is to find in its environment.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.own.clone().into())
    }

    /// Kills all that bear it.
    pub(crate) fn kill_all(&self) {
        kill_where(|mark| mark == self.own.as_bytes());
    }

    /// Kills all that earlier processes of the session have left, where a daemon was lost with them.
    pub(crate) fn kill_earlier(&self) {
        kill_where(|mark| mark.starts_with(self.session.as_bytes()));
    }
}

/// Kills the processes whose mark is one of these.
#[cfg(target_os = "linux")]
fn kill_where(is_meant: impl Fn(&[u8]) -> bool) {
    use rustix::process::{Pid, Signal, kill_process};
    let begins = format!("{VARIABLE}=");
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut marks = environment
            .split(|byte| *byte == 0)
            .filter_map(|variable| variable.strip_prefix(begins.as_bytes()));
        if marks.any(&is_meant) {
            // It may have ended by itself in this moment.
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// What is not known of a system's processes is left.
#[cfg(not(target_os = "linux"))]
fn kill_where(_is_meant: impl Fn(&[u8]) -> bool) {}

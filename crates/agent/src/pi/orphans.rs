//! What pi started and set apart: its shells lead process groups of their own, and so outlive the end of pi's. They are known by a
//! mark in the environment that they inherit, also when pi is gone already, and the daemon with it.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use uuid::Uuid;

/// The variable that has the mark.
const VARIABLE: &str = "MAINSTAY_RUNNER";

/// How long those that are killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many looks in a row find none: one alone may pass over what exchanges its program between two things that are asked of it.
const QUIET_LOOKS: u32 = 2;
/// How long it takes from one look at all processes to the next.
const PAUSE: Duration = Duration::from_millis(2);

/// The mark of one process and of all that it starts.
#[derive(Clone, Debug)]
pub(crate) struct ProcessMark {
    /// What those of one session have in common.
    session: String,
    own: String,
}

impl ProcessMark {
    /// One that nobody else has, for the session with this folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let session = format!("{}#", folder.display());
        Self { own: format!("{session}{}", Uuid::new_v4().simple()), session }
    }

    /// What the process is to find in its environment.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.own.clone().into())
    }

    /// Kills all that bear it, without a look at whether they are gone and what they have started meanwhile.
    pub(crate) fn kill_all(&self) {
        kill_where(|mark| self.is_of(mark));
    }

    /// Kills all that bear it. Blocks until they are gone.
    pub(crate) fn end_all(&self) {
        end_where(|mark| self.is_of(mark));
    }

    /// Kills all that earlier processes of the session have left, where a daemon was lost with them. Blocks until they are gone.
    pub(crate) fn end_earlier(&self) {
        end_where(|mark| mark.starts_with(self.session.as_bytes()));
    }

    /// Kills all that processes of the sessions with folders in this one have left, where a daemon was lost with them. Blocks until they
    /// are gone.
    pub(crate) fn end_all_in(folder: &Path) {
        let sessions = format!("{}/", folder.display());
        end_where(|mark| mark.starts_with(sessions.as_bytes()));
    }

    fn is_of(&self, mark: &[u8]) -> bool {
        mark == self.own.as_bytes()
    }
}

/// Kills the processes whose mark is one of these until looks at all processes find none.
fn end_where(is_meant: impl Fn(&[u8]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut quiet = 0;
    while quiet < QUIET_LOOKS {
        quiet = if kill_where(&is_meant) { quiet + 1 } else { 0 };
        if Instant::now() > deadline {
            tracing::warn!("what a runner has started is still there, although it was killed");
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills the processes whose mark is one of these; whether there was none.
#[cfg(target_os = "linux")]
fn kill_where(is_meant: impl Fn(&[u8]) -> bool) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let begins = format!("{VARIABLE}=");
    let mut is_none = true;
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
            is_none = false;
        }
        is_none &= !(environment.is_empty() && is_changing_program(&entry.path()));
    }
    is_none
}

/// Whether a process has an environment that could not be read, as while it exchanges its program.
#[cfg(target_os = "linux")]
fn is_changing_program(process: &Path) -> bool {
    // The system's own have no program, and those of others do not tell it.
    if std::fs::read_link(process.join("exe")).is_err() {
        return false;
    }
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The second field is the program's name in parentheses and may hold anything.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Counted from the third: where the program's code begins, which is set last of these, and where the environment begins and ends.
    let [Some(code), Some(begins), Some(ends)] = [23, 47, 48].map(|number| fields.get(number)) else {
        return false;
    };
    *code == "0" || begins != ends
}

/// What is not known of a system's processes is left.
#[cfg(not(target_os = "linux"))]
fn kill_where(_is_meant: impl Fn(&[u8]) -> bool) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_lost_daemon_left_is_ended_and_what_another_has_is_not() {
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut left = homes.each_ref().map(|home| {
            let (name, value) = ProcessMark::of(&home.path().join("session")).variable();
            Command::new("sleep").arg("600").env(name, value).process_group(0).spawn().unwrap()
        });
        ProcessMark::end_all_in(homes[0].path());
        assert_eq!(left[0].wait().unwrap().signal(), Some(9));
        assert_eq!(left[1].try_wait().unwrap(), None);
        left[1].kill().unwrap();
        left[1].wait().unwrap();
    }

    #[test]
    fn what_exchanges_its_program_all_the_time_ends_with_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let mark = ProcessMark::of(folder.path());
        let (name, value) = mark.variable();
        for _ in 0..100 {
            let script = r#"sleep 600 & echo "$!"; exec sh -c 'exec sh -c "$0" "$0"' 'exec sh -c "$0" "$0"'"#;
            let mut first = Command::new("sh");
            first.args(["-c", script]).env(&name, &value).stdout(Stdio::piped()).process_group(0);
            let mut first = first.spawn().unwrap();
            let mut said = std::io::BufReader::new(first.stdout.take().unwrap());
            let mut line = String::new();
            std::io::BufRead::read_line(&mut said, &mut line).unwrap();
            mark.end_all();
            assert_eq!(first.wait().unwrap().signal(), Some(9));
            let second = std::fs::read(format!("/proc/{}/cmdline", line.trim())).unwrap_or_default();
            assert!(!second.starts_with(b"sleep"), "{second:?}");
        }
    }
}

//! What pi started and set apart: its shells lead process groups of their own, and so outlive the end of pi's. They are known by a
//! mark in the environment that they inherit, also when pi is gone already, and the daemon with it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_model::SessionId;
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

    /// Kills all that processes of the sessions with folders in this one have left, where a daemon was lost with them. What belongs to a
    /// session that lives stays. Blocks until the others are gone.
    pub(crate) fn end_all_in(folder: &Path, living: &HashSet<SessionId>) {
        let sessions = format!("{}/", folder.display());
        let lives = |session: &[u8]| session_in(session).is_some_and(|session| living.contains(&session));
        end_where(|mark| mark.strip_prefix(sessions.as_bytes()).is_some_and(|session| !lives(session)));
    }

    fn is_of(&self, mark: &[u8]) -> bool {
        mark == self.own.as_bytes()
    }
}

/// The session of a mark without the folder before it.
fn session_in(mark: &[u8]) -> Option<SessionId> {
    let session = mark.split(|byte| *byte == b'#').next()?;
    std::str::from_utf8(session).ok()?.parse().ok()
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
fn kill_where(is_meant: impl Fn(&[u8]) -> bool) -> bool {
    mainstay_os::system::kill_with_variable(VARIABLE, is_meant)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_lost_daemon_left_is_ended_and_what_lives_or_another_has_is_not() {
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [lost, living] = [1, 2].map(|id| SessionId::from_uuid(Uuid::from_u128(id)));
        let marked = [(0, lost), (0, living), (1, lost)];
        let mut left = marked.map(|(home, session)| {
            let (name, value) = ProcessMark::of(&homes[home].path().join(session.to_string())).variable();
            Command::new("sleep").arg("600").env(name, value).process_group(0).spawn().unwrap()
        });
        ProcessMark::end_all_in(homes[0].path(), &HashSet::from([living]));
        assert_eq!(left[0].wait().unwrap().signal(), Some(9));
        for other in &mut left[1..] {
            assert_eq!(other.try_wait().unwrap(), None);
            other.kill().unwrap();
            other.wait().unwrap();
        }
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

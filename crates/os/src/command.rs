//! Runs other people's programs to their end: with a limit of time, their output in a log file, and nothing left
//! running when the caller loses interest.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::time::timeout;

/// How many lines of a log are quoted in errors.
const QUOTED_LINES: usize = 2;
/// How much of a line is quoted, in characters.
const QUOTED_CHARACTERS: usize = 300;

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started, or its log not be written.
    #[error("{} could not be started: {source}", .program.display())]
    Start {
        /// The program that did not start.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It took too long, and was ended.
    #[error("{} was not done after {} s", .program.display(), .limit.as_secs())]
    TimedOut {
        /// The program that took too long.
        program: PathBuf,
        /// How long it was given.
        limit: Duration,
    },
    /// It ended with an error.
    #[error("{} ended with {status}: {text}", .program.display())]
    Failed {
        /// The program that failed.
        program: PathBuf,
        /// The exit status of the program.
        status: ExitStatus,
        /// The gist of what it printed.
        text: String,
    },
}

/// Runs `command` with its output in the file `log`, for at most `limit`. Dropping the future kills the program and
/// all it started.
///
/// # Errors
/// [`CommandError`] unless it ended with success.
pub async fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<(), CommandError> {
    let program = PathBuf::from(command.as_std().get_program());
    let failed = |source| CommandError::Start { program: program.clone(), source };
    let output = File::create(log).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut group = Group::led_by(child.id());
    let status = match timeout(limit, child.wait()).await {
        Ok(status) => status.map_err(failed)?,
        Err(_) => return Err(CommandError::TimedOut { program, limit }),
    };
    group.0 = None;
    if status.success() {
        return Ok(());
    }
    Err(CommandError::Failed { program, status, text: gist(log) })
}

/// A process group that is killed on drop.
struct Group(Option<Pid>);

impl Group {
    fn led_by(id: Option<u32>) -> Self {
        Self(id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended by itself in this moment: nothing is left to do then.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// The lines of a log that tell most: the first that speak of an error, since others follow from it, or else the last.
fn gist(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors = lines.iter().filter(|line| line.to_ascii_lowercase().contains("error"));
    let mut quoted: Vec<_> = errors.take(QUOTED_LINES).copied().collect();
    if quoted.is_empty() {
        quoted = lines[lines.len().saturating_sub(QUOTED_LINES)..].to_vec();
    }
    quoted.into_iter().map(shortened).collect::<Vec<_>>().join("\n")
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        command
    }

    fn log() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        (folder, log)
    }

    #[tokio::test]
    async fn a_failure_carries_what_the_program_printed() {
        let (_folder, log) = log();
        let error = run(&mut shell("echo out; echo err >&2; exit 3"), &log, Duration::from_secs(10)).await;
        assert_eq!(error.unwrap_err().to_string(), "sh ended with exit status: 3: out\nerr");
    }

    #[tokio::test]
    async fn of_much_that_is_printed_the_first_errors_are_quoted() {
        let (_folder, log) = log();
        let script = "echo warning; for n in 1 2 3 4 5; do echo \"error $n\"; done; echo done; exit 1";
        let error = run(&mut shell(script), &log, Duration::from_secs(10)).await;
        assert_eq!(error.unwrap_err().to_string(), "sh ended with exit status: 1: error 1\nerror 2");
    }

    #[test]
    fn a_long_line_is_shortened_between_characters() {
        assert_eq!(shortened(&"é".repeat(QUOTED_CHARACTERS)), "é".repeat(QUOTED_CHARACTERS));
        assert_eq!(shortened(&"é".repeat(1000)), format!("{}…", "é".repeat(QUOTED_CHARACTERS)));
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
        let (folder, log) = log();
        let mark = folder.path().join("mark");
        let script = format!("(sleep 0.4; touch {}) & sleep 60", mark.display());
        let error = run(&mut shell(&script), &log, Duration::from_millis(100)).await.unwrap_err();
        assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(!mark.exists());
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let (_folder, log) = log();
        let error = run(&mut Command::new("no-such-program"), &log, Duration::from_secs(1)).await;
        assert!(error.unwrap_err().to_string().starts_with("no-such-program could not be started"));
    }
}

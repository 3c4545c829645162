//! The command `mainstay stop`, which stops the daemon.

use std::fs::{File, TryLockError};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_daemon::supervisor_lock::supervisor;
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_log::sqlite::LOCK_FILE;
use mainstay_model::{Error, Limits};
use mainstay_os::system::has_open;
use mainstay_protocol::operations::StopDaemon;
use mainstay_shim::ShimFolder;
use mainstay_terminal as terminal;
use mainstay_terminal::counted;
use mainstay_terminal_client::connect::{answered, connect_once_it_stands};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

/// How long a process may take to end once nothing runs in it any more.
const ENDS: Duration = Duration::from_secs(15);

/// How long to wait before it is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Stops the daemon in order, and who would start it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay stop\n  mainstay stop --force      # one that does not answer")]
pub(super) struct Stop {
    /// Kill a daemon that does not answer or end, and its supervisor. What its sessions run is cut off, and the next daemon rebuilds them
    #[arg(long)]
    force: bool,
}

/// Why they have not stopped.
enum Failure {
    Error(Error),
    /// It was told to end, and has not within the time.
    StillThere(Pid, Duration),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Stop {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let stopped = if self.force { stop_by_force(home).await } else { stop(home).await };
        match stopped {
            Ok(done) => {
                terminal::note(&done);
                Ok(ExitCode::SUCCESS)
            }
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::StillThere(pid, limit)) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                terminal::show_failure(
                    &format!(
                        "process {pid} was told to stop, and has not ended within {} s",
                        limit.as_secs()
                    ),
                    Error::Timeout { limit_ms }.code(),
                    &format!("See the logs in `{}`; `kill -9 {pid}` ends it.", home.logs().display()),
                );
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

/// Stops both, and says what was stopped.
async fn stop(home: &Home) -> Result<String, Failure> {
    let daemon = match stop_daemon(home).await {
        Err(Failure::Error(Error::DaemonNotRunning)) => None,
        stopped => Some(stopped?),
    };
    let supervisor = stop_supervisor(home).await?;
    // A daemon that stops ends its own.
    let orphans = end_orphans(home).await?;
    match (daemon, supervisor) {
        (Some(pid), _) => {
            Ok(format!("the daemon (pid {pid}) has stopped; its sessions are there when they are next used"))
        }
        (None, Some(pid)) => Ok(format!("the supervisor (pid {pid}) has stopped; no daemon ran")),
        (None, None) if orphans > 0 => {
            Ok(format!("no daemon ran; {} ended", counted(orphans as u64, "runner")))
        }
        (None, None) => Err(Error::DaemonNotRunning.into()),
    }
}

/// Ends the runners that have outlived a daemon which was lost; returns how many there were. Where a daemon has the store, they are its own.
async fn end_orphans(home: &Home) -> Result<usize, Error> {
    let lock = File::open(home.store().join(LOCK_FILE));
    if lock.as_ref().is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock))) {
        return Ok(0);
    }
    // Held meanwhile, so that no daemon adopts them.
    let ended = mainstay_shim::end_all(ShimFolder::records(&home.shims()?)).await;
    drop(lock);
    Ok(ended)
}

/// Stops both as [`stop`] does, and kills those that do not end.
async fn stop_by_force(home: &Home) -> Result<String, Failure> {
    match stop(home).await {
        Err(Failure::Error(Error::DaemonSilent { .. }) | Failure::StillThere(..)) => kill(home).await,
        stopped => stopped,
    }
}

/// Kills both, the supervisor first: it would start the next daemon.
async fn kill(home: &Home) -> Result<String, Failure> {
    let supervisor = supervisor(home).await?;
    if let Some(supervisor) = supervisor {
        end(home, supervisor).await?;
    }
    match (daemon_process(home), supervisor) {
        (Some(pid), _) => {
            end(home, pid).await?;
            end_orphans(home).await?;
            Ok(format!("the daemon (pid {pid}) was killed; its sessions are rebuilt when they are next used"))
        }
        (None, Some(pid)) => {
            end_orphans(home).await?;
            Ok(format!("the supervisor (pid {pid}) was killed; no daemon ran"))
        }
        (None, None) => Err(Error::DaemonNotRunning.into()),
    }
}

/// The process that has this home's store, if it is the daemon that says it runs: an id that another process has by now is nobody's to kill.
fn daemon_process(home: &Home) -> Option<Pid> {
    let pid = i32::try_from(home.daemon()?.pid).ok().and_then(Pid::from_raw)?;
    let lock = File::open(home.store().join(LOCK_FILE)).ok()?;
    has_open(pid, &lock).then_some(pid)
}

async fn end(home: &Home, pid: Pid) -> Result<(), Failure> {
    // It fails only where it has just ended.
    kill_process(pid, Signal::KILL).ok();
    see_off(home, pid).await
}

async fn stop_daemon(home: &Home) -> Result<u32, Failure> {
    let pid = loop {
        match tell_to_stop(home).await {
            // It is about to begin anew, and what comes of that is stopped.
            Err(Error::DaemonStopping) => sleep(BETWEEN_LOOKS).await,
            told => break told?,
        }
    };
    if let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        see_off(home, process).await?;
    }
    Ok(pid)
}

async fn tell_to_stop(home: &Home) -> Result<u32, Error> {
    loop {
        let (connection, record) = connect_once_it_stands(home, "cli").await?;
        let told = answered(home, record.pid, connection.client.call(StopDaemon {})).await;
        // One that has just ended may begin anew.
        if told != Err(Error::DaemonNotRunning) {
            return told.map(|_| record.pid);
        }
    }
}

/// A supervisor ends by itself after a daemon that was stopped; one that waits to start the next is told to.
async fn stop_supervisor(home: &Home) -> Result<Option<Pid>, Failure> {
    let Some(pid) = supervisor(home).await? else { return Ok(None) };
    // It fails only where it has just ended.
    kill_process(pid, Signal::TERM).ok();
    see_off(home, pid).await?;
    Ok(Some(pid))
}

/// Waits until a process is gone, and the locks it holds with it.
async fn see_off(home: &Home, pid: Pid) -> Result<(), Failure> {
    let drain_ms = Config::load(home).map_or(Limits::default().drain_ms, |config| config.limits.drain_ms);
    let limit = ENDS + Duration::from_millis(drain_ms);
    let has_ended = tokio::task::spawn_blocking(move || ends_within(pid, limit))
        .await
        .map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
    if has_ended { Ok(()) } else { Err(Failure::StillThere(pid, limit)) }
}

#[cfg(target_os = "linux")]
fn ends_within(pid: Pid, limit: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    // A process that cannot be watched is gone already.
    let Ok(watch) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let limit = Timespec::try_from(limit).ok();
    loop {
        match poll(&mut [PollFd::new(&watch, PollFlags::IN)], limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn ends_within(pid: Pid, limit: Duration) -> bool {
    let until = std::time::Instant::now() + limit;
    while rustix::process::test_kill_process(pid).is_ok() {
        if std::time::Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_waited_for_until_it_ends_and_no_longer_than_that() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(!ends_within(pid, Duration::from_millis(1)));
        drop(child.stdin.take());
        assert!(ends_within(pid, Duration::from_secs(60)));
        child.wait().unwrap();
    }
}

//! `mainstay stop`

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::StopDaemon;
use mainstay_model::Error;
use rustix::process::{Pid, Signal, kill_process};

use crate::connect::connect_any_version;
use crate::daemon::watch::supervisor;
use crate::home::Home;
use crate::terminal;

/// Stops the daemon in order, and who would start it again.
#[derive(Debug, Args)]
pub(super) struct Stop {}

impl Stop {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let daemon = match stop_daemon(home).await {
            Err(Error::DaemonNotRunning) => None,
            stopped => Some(stopped?),
        };
        let supervisor = stop_supervisor(home).await?;
        match (daemon, supervisor) {
            (Some(pid), _) => terminal::note(&format!(
                "the daemon (pid {pid}) has stopped; its sessions are there when they are next used"
            )),
            (None, Some(pid)) => {
                terminal::note(&format!("the supervisor (pid {pid}) has stopped; no daemon ran"));
            }
            (None, None) => return Err(Error::DaemonNotRunning),
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn stop_daemon(home: &Home) -> Result<u32, Error> {
    let connection = connect_any_version(home, "cli").await?;
    let pid = connection.client.daemon.pid;
    connection.client.call(StopDaemon {}).await?;
    if let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        see_off(process).await?;
    }
    Ok(pid)
}

/// A supervisor ends by itself after a daemon that was stopped; one that waits to start the next is told to.
async fn stop_supervisor(home: &Home) -> Result<Option<Pid>, Error> {
    let Some(pid) = supervisor(home) else { return Ok(None) };
    // It fails only where it has just ended.
    kill_process(pid, Signal::TERM).ok();
    see_off(pid).await?;
    Ok(Some(pid))
}

/// Waits until a process is gone, and the locks it holds with it.
async fn see_off(pid: Pid) -> Result<(), Error> {
    tokio::task::spawn_blocking(move || wait_for_end(pid))
        .await
        .map_err(|error| Error::DaemonFailed { reason: error.to_string() })
}

#[cfg(target_os = "linux")]
fn wait_for_end(pid: Pid) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    // A process that cannot be watched is gone already.
    let Ok(watch) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(&watch, PollFlags::IN)], None) {}
}

#[cfg(not(target_os = "linux"))]
fn wait_for_end(pid: Pid) {
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

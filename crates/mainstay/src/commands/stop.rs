//! `mainstay stop`

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::StopDaemon;
use mainstay_model::Error;

use crate::connect::connect_any_version;
use crate::home::Home;
use crate::terminal;

/// Stops the daemon in order.
#[derive(Debug, Args)]
pub(super) struct Stop {}

impl Stop {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_any_version(home, "cli").await?;
        let pid = connection.client.daemon.pid;
        connection.client.call(StopDaemon {}).await?;
        let gone = tokio::task::spawn_blocking(move || wait_for_end(pid)).await;
        gone.map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        terminal::note(&format!(
            "the daemon (pid {pid}) has stopped; its sessions are there when they are next used"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

/// Waits until a process is gone; its lock on the store goes with it.
#[cfg(target_os = "linux")]
fn wait_for_end(pid: u32) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // A process that cannot be watched is gone already.
    let Ok(watch) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(&watch, PollFlags::IN)], None) {}
}

#[cfg(not(target_os = "linux"))]
fn wait_for_end(pid: u32) {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    while test_kill_process(pid).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

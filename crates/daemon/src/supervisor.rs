//! The process that watches over the daemon and starts it again after a crash. Source: seed 000, "Watchdog".

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mainstay_home::{Announcement, Home, program};
use mainstay_model::{Error, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::announcement::announce;
use crate::serve::ServeOptions;
use crate::supervisor_lock::SupervisorLock;

/// The daemon ends with this code where it cannot start.
pub const CANNOT_START: u8 = 3;
/// The first wait before a restart; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest pause between two starts.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A daemon that ran this long begins anew with the first wait.
const STABLE: Duration = Duration::from_secs(60);

/// Runs daemons, one after another, until one ends in order, the first cannot start, or it is told to stop. Gives the code to exit with:
/// that of a daemon that could not start, which has said why.
pub async fn supervise(home: &Home, options: ServeOptions) -> Result<ExitCode, Error> {
    let failed = |error: std::io::Error| Error::DaemonFailed { reason: error.to_string() };
    let mut log = open_log(home).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let _lock = SupervisorLock::take(home).await.inspect_err(|error| {
        if options.announce {
            announce(&Announcement::Failed(error.clone().into()));
        }
    })?;
    let mut wait = FIRST_WAIT;
    let mut is_first = true;
    loop {
        let began = Instant::now();
        let mut child = start(&options).map_err(failed)?;
        let status = tokio::select! {
            status = child.wait() => status.map_err(failed)?,
            _ = terminate.recv() => return pass_on_stop(child).await.map_err(failed),
            _ = interrupt.recv() => return pass_on_stop(child).await.map_err(failed),
        };
        if status.success() {
            return Ok(ExitCode::SUCCESS);
        }
        // A later one is tried again: what is in its way may go, as does a daemon that a client started in the meantime.
        if is_first && status.code() == Some(i32::from(CANNOT_START)) {
            return Ok(ExitCode::from(CANNOT_START));
        }
        is_first = false;
        if began.elapsed() >= STABLE {
            wait = FIRST_WAIT;
        }
        writeln!(log, "{} the daemon ended with {status}; it is started again in {wait:?}", Timestamp::now())
            .map_err(failed)?;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupt.recv() => return Ok(ExitCode::SUCCESS),
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

fn start(options: &ServeOptions) -> std::io::Result<Child> {
    let mut command = Command::new(program()?);
    command.arg("serve");
    if options.announce {
        command.arg("--announce");
    }
    command.args(options.ports.arguments()).args(options.remote.arguments());
    command.args(options.no_watch.then_some("--no-watch"));
    command.args(options.environment_note.as_ref().map(|note| format!("--environment-note={note}")));
    command.spawn()
}

/// Tells the daemon to stop, and waits until it has.
async fn pass_on_stop(mut child: Child) -> std::io::Result<ExitCode> {
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)?;
    }
    child.wait().await.map(|_| ExitCode::SUCCESS)
}

fn open_log(home: &Home) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(home.logs().join("supervisor.log"))
}

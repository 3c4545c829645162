//! The daemon in the background, which belongs to nobody who starts it: a process between the two makes a session of its own, starts the
//! daemon in it and ends. So the daemon is in no client's group, session or tree of processes, and ends with none of them.

use std::process::{Command, ExitCode, Stdio};

use close_fds::set_fds_cloexec;
use mainstay_home::Home;
use mainstay_home::config::{Config, DaemonConfig};
use mainstay_home::environment::{DaemonEnvironment, EnvironmentSource, daemon_environment};
use mainstay_home::{Announcement, program};
use mainstay_model::Error;
use rustix::process::setsid;

use crate::announcement::announce;

/// The first descriptor that is no standard stream.
const FIRST_OWN: i32 = 3;

/// Starts a daemon, which is given these arguments, in a session of its own and with its own environment. It announces itself on this
/// process's standard output; this process announces only that it could not be started.
pub fn detach(home: &Home, arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let started = start(home, arguments);
    if let Err(error) = &started {
        announce(&Announcement::Failed(error.clone().into()));
    }
    started.map(|()| ExitCode::SUCCESS)
}

fn start(home: &Home, arguments: impl IntoIterator<Item = String>) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::DaemonFailed { reason: error.to_string() };
    // What a client has left open for its children is not for the daemon: it would keep files, pipes and ports of a client that has ended.
    set_fds_cloexec(FIRST_OWN, &[]);
    // Before anything else is started: from here on no client's end reaches this process.
    setsid().map_err(|error| failed(error.into()))?;
    // The daemon says itself what is wrong with the settings.
    let DaemonConfig { environment, environment_ms, .. } =
        Config::load(home).map(|config| config.daemon).unwrap_or_default();
    let limit = std::time::Duration::from_millis(environment_ms);
    let DaemonEnvironment { variables, note } =
        daemon_environment(EnvironmentSource::chosen(environment), limit);
    let mut command = Command::new(program().map_err(failed)?);
    command
        .args(["serve", "--announce"])
        .args(arguments)
        .args(note.map(|note| format!("--environment-note={note}")))
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/");
    command.spawn().map(drop).map_err(failed)
}

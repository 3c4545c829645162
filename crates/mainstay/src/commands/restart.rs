//! The commands `mainstay restart` and `mainstay upgrade`: the daemon begins anew, and what runs in its sessions goes on.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use mainstay_home::config::Config;
use mainstay_home::{DaemonRecord, Home, Installation, VERSION, program_file};
use mainstay_model::Error;
use mainstay_protocol::operations::{Attached, RestartDaemon};
use mainstay_terminal::{self as terminal, ProgressLine};
use mainstay_terminal_client::connect::{
    self, StartOptions, answered, connect_any_version, connect_once_it_stands,
};

/// How long the daemon may take until it serves again, beside what it waits for itself.
const SERVES_AGAIN: Duration = Duration::from_secs(60);

/// How long to wait before it is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// After so long people are told what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends the daemon and begins it anew. Code, agents and commands that wait go on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay restart      # after a change of the settings")]
pub(super) struct Restart {}

impl Restart {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        begin_anew(home, None).await
    }
}

/// Has the daemon go on as this version of Mainstay. Code, agents and commands that wait go on.
///
/// The program itself is replaced by what has installed it; this says how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay upgrade      # the new program, right after it was installed")]
pub(super) struct Upgrade {}

impl Upgrade {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let own = program_file().map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        let code = begin_anew(home, Some(own.display().to_string())).await?;
        if let Ok(Installation { upgrade, .. }) = Installation::own() {
            terminal::note(&format!(
                "the program is version {VERSION}; to get a newer one: {upgrade}; then: mainstay upgrade"
            ));
        }
        Ok(code)
    }
}

async fn begin_anew(home: &Home, program: Option<String>) -> Result<ExitCode, Error> {
    let (connection, before) = match connect_once_it_stands(home, "cli").await {
        Err(Error::DaemonNotRunning) => {
            connect::start(home, StartOptions::default()).await?;
            terminal::note(&format!("no daemon ran; one of version {VERSION} serves now"));
            return Ok(ExitCode::SUCCESS);
        }
        connected => connected?,
    };
    // A daemon that begins anew with settings that are invalid would be none.
    Config::load(home)?;
    let Attached { pid, version, .. } = connection.client.daemon.clone();
    match answered(home, pid, connection.client.call(RestartDaemon { program })).await {
        // It may end before its answer is written.
        Ok(_) | Err(Error::DaemonNotRunning | Error::DaemonStopping) => {}
        Err(error) => return Err(error),
    }
    let now = serves_again(home, &before).await?;
    let DaemonRecord { pid, version: new, .. } = now;
    terminal::note(&match new == version {
        true => format!("the daemon (pid {pid}) has begun anew; what ran in its sessions goes on"),
        false => format!(
            "the daemon (pid {pid}) has gone from version {version} to {new}; what ran in its sessions goes on"
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// Waits until a daemon serves that has begun after this one.
async fn serves_again(home: &Home, before: &DaemonRecord) -> Result<DaemonRecord, Error> {
    let (began, line) = (Instant::now(), ProgressLine::default());
    loop {
        if let Some(record) = home.daemon().filter(|record| record.started_at > before.started_at)
            && connect_any_version(home, "cli").await.is_ok()
        {
            return Ok(record);
        }
        if let Some(reason) = why_not(home, before, began.elapsed()) {
            let logs = home.logs();
            let reason =
                format!("it was told to begin anew and {reason}; its log is in `{}`", logs.display());
            return Err(Error::DaemonFailed { reason });
        }
        if began.elapsed() >= PATIENCE {
            line.show("the daemon begins anew …");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Why the daemon does not begin anew, where that is certain after this time.
fn why_not(home: &Home, before: &DaemonRecord, elapsed: Duration) -> Option<String> {
    match home.daemon() {
        Some(DaemonRecord { failure: Some(failure), .. }) => Some(format!("could not: {failure}")),
        Some(record) if record.pid == before.pid && !record.is_alive() => {
            Some("has ended instead".to_owned())
        }
        None => Some("was stopped instead".to_owned()),
        Some(_) if elapsed >= SERVES_AGAIN => {
            Some(format!("does not serve after {} s", SERVES_AGAIN.as_secs()))
        }
        Some(_) => None,
    }
}

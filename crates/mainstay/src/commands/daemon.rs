//! `mainstay -d`: the daemon, in the background.

use std::process::ExitCode;

use mainstay_daemon::supervisor_lock::supervisor;
use mainstay_home::Home;
use mainstay_home::config::{Config, DEFAULT_PORT};
use mainstay_model::Error;
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::{self, StartOptions, connect_any_version};

/// Starts the daemon unless one runs already. One that nobody watches over will not do where a supervised one is wanted.
pub(super) async fn run(home: &Home, options: StartOptions) -> Result<ExitCode, Error> {
    if let Ok(connection) = connect_any_version(home, "cli").await {
        let daemon = &connection.client.daemon;
        if options.supervised && supervisor(home).await?.is_none() {
            return Ok(refuse_unsupervised(daemon.pid));
        }
        terminal::note(&format!("the daemon runs already: version {}, pid {}", daemon.version, daemon.pid));
        return Ok(ExitCode::SUCCESS);
    }
    connect::start(home, options).await?;
    if let Some(record) = home.daemon() {
        // Another may have come before it.
        if options.supervised && supervisor(home).await?.is_none() {
            return Ok(refuse_unsupervised(record.pid));
        }
        terminal::note(&format!("the daemon serves on 127.0.0.1:{}, pid {}", record.port, record.pid));
        let asked = options.ports.or(&Config::load(home)?.daemon).own;
        if asked.is_none() && record.port != DEFAULT_PORT {
            let said = format!(
                "another program had port {DEFAULT_PORT}, the default; this port is kept from start to start"
            );
            terminal::note(&said);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refuse_unsupervised(pid: u32) -> ExitCode {
    let message = format!("the daemon runs already (pid {pid}), and is not supervised");
    let next_step = "Stop it first with `mainstay stop`, then start it with `mainstay -d --supervised`.";
    terminal::show_failure(&message, Error::StoreLocked.code(), next_step);
    ExitCode::FAILURE
}

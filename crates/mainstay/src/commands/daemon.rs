//! `mainstay -d`: the daemon, in the background.

use std::process::ExitCode;

use mainstay_model::Error;

use crate::config::{Config, DEFAULT_PORT};
use crate::connect::{self, StartOptions, connect_any_version};
use crate::home::Home;
use crate::terminal;

/// Starts the daemon unless one runs already.
pub(super) async fn run(home: &Home, options: StartOptions) -> Result<ExitCode, Error> {
    if let Ok(connection) = connect_any_version(home, "cli").await {
        let daemon = &connection.client.daemon;
        terminal::note(&format!("the daemon runs already: version {}, pid {}", daemon.version, daemon.pid));
        return Ok(ExitCode::SUCCESS);
    }
    connect::start(home, options).await?;
    if let Some(record) = home.daemon() {
        terminal::note(&format!("the daemon serves on 127.0.0.1:{}, pid {}", record.port, record.pid));
        if options.port.is_none() && Config::load(home)?.daemon.port.is_none() && record.port != DEFAULT_PORT
        {
            terminal::note(&format!("port {DEFAULT_PORT}, the default, is taken by another program"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

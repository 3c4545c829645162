//! `mainstay pi`: a byte bridge from stdio to the daemon's pi protocol.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::attach;
use mainstay_home::Home;
use mainstay_home::environment::client_environment;
use mainstay_model::Error;
use mainstay_pi_protocol::AttachPi;
use mainstay_terminal_client::connect::{answered, connect_or_start};
use mainstay_terminal_client::paths::working_directory;

use crate::bridge::bridge;

/// Serves the pi protocol over stdio, one JSON frame a line.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  echo '{\"id\": \"1\", \"type\": \"list_sessions\"}' | mainstay pi | jq .\n\nOver WebSocket the same is at /pi of the daemon's port, and with `pi-port` on a port of its own."
)]
pub(super) struct Pi {}

impl Pi {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        drop(connect_or_start(home, "pi").await?);
        let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
        let token = home.shown_token().ok_or(Error::Unauthorized)?;
        let folder = working_directory()?.display().to_string();
        let pi = AttachPi { token, working_directory: Some(folder), environment: client_environment() };
        let (stream, _) = answered(home, record.pid, attach(&record.socket, pi)).await?;
        bridge(stream).await
    }
}

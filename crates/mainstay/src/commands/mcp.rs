//! `mainstay mcp`: a byte bridge from stdio to the daemon's MCP.

use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::client::attach_mcp;
use mainstay_model::Error;

use super::target::working_directory;
use crate::bridge::bridge;
use crate::connect::connect_or_start;
use crate::home::Home;

/// Serves MCP over stdio.
#[derive(Debug, Args)]
#[command(
    after_help = "Example, in an agent's configuration:\n  {\"mcpServers\": {\"mainstay\": {\"command\": \"mainstay\", \"args\": [\"mcp\"]}}}"
)]
pub(super) struct Mcp {}

impl Mcp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        drop(connect_or_start(home, "mcp").await?);
        let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
        let token = home.shown_token().ok_or(Error::Unauthorized)?;
        let folder = working_directory()?.display().to_string();
        bridge(attach_mcp(&record.socket, token, folder).await?).await
    }
}

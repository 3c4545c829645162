//! `mainstay mcp`: a byte bridge from stdio to the daemon's MCP.

use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::client::attach_mcp;
use mainstay_model::Error;
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};

use super::target::working_directory;
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
        let (mut from_daemon, mut to_daemon) = attach_mcp(&record.socket, token, folder).await?;
        let upward = async {
            copy(&mut stdin(), &mut to_daemon).await?;
            to_daemon.shutdown().await
        };
        let downward = async {
            let mut out = stdout();
            copy(&mut from_daemon, &mut out).await?;
            out.flush().await
        };
        let (mut upward, mut downward) = (pin!(upward), pin!(downward));
        let sent = tokio::select! {
            biased;
            sent = &mut upward => sent,
            // It is the daemon that has gone; the client would never hear of it while its input is waited for.
            _ = &mut downward => return Err(Error::DaemonNotRunning),
        };
        // The daemon closes its side once the client's input has ended and all is answered.
        match (sent, downward.await) {
            (Ok(()), Ok(())) => Ok(ExitCode::SUCCESS),
            _ => Err(Error::DaemonNotRunning),
        }
    }
}

//! `mainstay mcp`: a byte bridge from stdio to the daemon's MCP, and what tells agents to start it.
//!
//! [`install`] shows a change of an agent's configuration and makes it, [`clients`] knows where each agent keeps which form of it,
//! [`edit`] is the change itself, on text alone, and [`file`] puts it on the disk.

mod clients;
mod edit;
mod file;
mod install;
mod json;
mod toml;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_gateway::rpc::client::attach_mcp;
use mainstay_model::Error;

use super::target::working_directory;
use crate::bridge::bridge;
use crate::connect::connect_or_start;
use crate::home::Home;

/// Serves MCP over stdio.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  mainstay mcp install claude-code                  # tells Claude Code to start `mainstay mcp`\n  mainstay mcp install vscode --scope project       # and VS Code, in this folder\n  mainstay mcp install zed --print                  # only what to add by hand\n\nIn the configuration of another agent:\n  {\"mcpServers\": {\"mainstay\": {\"command\": \"mainstay\", \"args\": [\"mcp\"]}}}"
)]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    Install(install::Install),
    Uninstall(install::Uninstall),
}

impl Mcp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self.command {
            None => serve(home).await,
            Some(McpCommand::Install(install)) => install.run(home),
            Some(McpCommand::Uninstall(uninstall)) => uninstall.run(),
        }
    }
}

async fn serve(home: &Home) -> Result<ExitCode, Error> {
    drop(connect_or_start(home, "mcp").await?);
    let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
    let token = home.shown_token().ok_or(Error::Unauthorized)?;
    let folder = working_directory()?.display().to_string();
    bridge(attach_mcp(&record.socket, token, folder).await?).await
}

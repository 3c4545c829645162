//! `mainstay mcp`: MCP over stdio by whatever daemon there is, and what tells agents to start it.
//!
//! [`bridge`] carries messages to the daemon, and outlives it.
//! [`install`] shows a change of an agent's configuration and makes it, [`clients`] knows where each agent keeps which form of it,
//! [`edit`] is the change itself, on text alone, and [`file`] puts it on the disk. [`doctor`] connects as each agent would.

mod bridge;
mod clients;
mod doctor;
mod edit;
mod file;
mod install;
mod json;
mod toml;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use mainstay_home::Home;
use mainstay_mcp::Results;
use mainstay_model::Error;
use mainstay_terminal::note;
use mainstay_terminal_client::connect::answers_within;
use mainstay_terminal_client::paths::working_directory;

pub(super) use self::install::configured;

/// Serves MCP over stdio.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  mainstay mcp install claude-code                  # tells Claude Code to start `mainstay mcp`\n  mainstay mcp install vscode --scope project       # and VS Code, in this folder\n  mainstay mcp install zed --print                  # only what to add by hand\n  mainstay mcp doctor                               # what each agent here would see of Mainstay\n\nIn the configuration of another agent:\n  {\"mcpServers\": {\"mainstay\": {\"command\": \"mainstay\", \"args\": [\"mcp\"]}}}"
)]
pub(super) struct Mcp {
    /// How long a request waits for a daemon that cannot be had before it is answered with the reason, in milliseconds. A daemon that says nothing for so
    /// long under a request is asked whether it is there, and as long after that taken to hang [default: `answer-ms` of the settings, 20000]
    #[arg(long, value_name = "MS")]
    daemon_wait: Option<u64>,

    /// In what form results are given, whatever fits the client
    #[arg(long, value_enum)]
    results: Option<ResultsForm>,

    #[command(subcommand)]
    command: Option<McpCommand>,
}

/// What is said to a person who starts it, where an agent should.
const AT_A_TERMINAL: &str = "This serves MCP to the agent that starts it, and waits for the agent's messages, one a line. \
`mainstay mcp install --help` says how to tell an agent of it, `mainstay mcp doctor` what agents here see of it. Ctrl-D ends it.";

/// In what form results are given.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResultsForm {
    /// Text and pictures, for models
    Text,
    /// Structured as well, for programs
    Structured,
}

impl From<ResultsForm> for Results {
    fn from(form: ResultsForm) -> Self {
        match form {
            ResultsForm::Text => Self::Text,
            ResultsForm::Structured => Self::Structured,
        }
    }
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    Install(install::Install),
    Uninstall(install::Uninstall),
    Doctor(doctor::Doctor),
}

impl Mcp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self.command {
            None => {
                if std::io::stdin().is_terminal() {
                    note(AT_A_TERMINAL);
                }
                let folder = working_directory()?.display().to_string();
                let results = self.results.map(Results::from);
                let patience = self.daemon_wait.map_or_else(|| answers_within(home), Duration::from_millis);
                bridge::serve(home, folder, patience, results).await
            }
            Some(McpCommand::Install(install)) => install.run(home),
            Some(McpCommand::Uninstall(uninstall)) => uninstall.run(),
            Some(McpCommand::Doctor(doctor)) => doctor.run().await,
        }
    }
}

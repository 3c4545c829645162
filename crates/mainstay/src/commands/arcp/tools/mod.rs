//! `mainstay arcp tools`: an MCP server as a tool worker, so that its tools are called in sessions, each call with its one stored outcome.

mod adapter;

use std::process::{ExitCode, Stdio};

use clap::Args;
use mainstay_model::Error;
use mainstay_os::lines::{Line, LineWriter, Lines};
use tokio::io::{AsyncWriteExt, stdin, stdout};
use tokio::process::{Child, Command};

use self::adapter::{Adapter, Output};

/// The longest line that either side may write, in bytes; a tool worker's may be no longer.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Offers the tools of an MCP server as a tool worker does, over standard input and output
///
/// Mainstay starts it: the settings name it as the command of a tool worker.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay arcp tools -- mainstay mcp     # as a tool worker speaks it\n\nIn config.toml:\n  [tool-workers.github]\n  command = [\"mainstay\", \"arcp\", \"tools\", \"--\", \"github-mcp-server\", \"stdio\"]\n\n  [tool-workers.live]\n  command = [\"mainstay\", \"arcp\", \"tools\", \"--\", \"mainstay\", \"mcp\"]\n\nThen:\n  mainstay eval --kind github 'search_issues {\"query\": \"flaky\"}'\n  mainstay arcp submit --agent github.search_issues --input '{\"query\": \"flaky\"}'"
)]
pub(super) struct Tools {
    /// The command that starts the MCP server, which speaks over its standard input and output
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

impl Tools {
    pub(super) async fn run(self) -> Result<ExitCode, Error> {
        let mut server = self.start()?;
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(failed(&self.command, "its input and output are not there"));
        };
        let (server_in, mut server_out) = (LineWriter::new(input), Lines::new(output, LONGEST_LINE));
        let (mut client_in, mut client_out) = (Lines::new(stdin(), LONGEST_LINE), stdout());
        let mut adapter = Adapter::begin(first_id());
        loop {
            for output in adapter.take() {
                match output {
                    Output::ToServer(line) => server_in.send(line),
                    Output::ToClient(line) => {
                        client_out.write_all(line.as_bytes()).await.map_err(|error| broken(&error))?;
                        client_out.flush().await.map_err(|error| broken(&error))?;
                    }
                    Output::Closed => return Ok(ExitCode::SUCCESS),
                    Output::Refused(reason) => return Err(failed(&self.command, &reason)),
                }
            }
            tokio::select! {
                line = client_in.next() => match line {
                    Some(line) => adapter.hear_client(&whole(line)),
                    None => return Ok(ExitCode::SUCCESS),
                },
                line = server_out.next() => match line {
                    Some(line) => adapter.hear_server(&whole(line)),
                    None => return Err(failed(&self.command, &ending(&mut server).await)),
                },
            }
        }
    }

    /// Starts the server in this process's group, so that it ends with it.
    fn start(&self) -> Result<Child, Error> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(failed(&self.command, "it names no program"));
        };
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&self.command, &error.to_string()))
    }
}

/// What a line says; one that is too long says nothing.
fn whole(line: Line) -> Vec<u8> {
    match line {
        Line::Whole(line) => line,
        Line::TooLong(_) => Vec::new(),
    }
}

/// The first number of the messages' names, so that no two runs have the same.
fn first_id() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}

async fn ending(server: &mut Child) -> String {
    match server.wait().await {
        Ok(status) => format!("it ended ({status})"),
        Err(error) => error.to_string(),
    }
}

fn failed(command: &[String], reason: &str) -> Error {
    Error::KernelUnavailable { reason: format!("the MCP server `{}`: {reason}", command.join(" ")) }
}

fn broken(error: &std::io::Error) -> Error {
    Error::WorkerFailed { reason: format!("standard output: {error}") }
}

//! `mainstay arcp tools`: an MCP server as a tool worker, so that its tools are called in sessions, each call with its one stored outcome.

mod adapter;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use mainstay_model::Error;
use mainstay_os::lines::{Line, LineWriter, Lines};
use tokio::io::{AsyncWriteExt, Stdout, stdin, stdout};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use self::adapter::{Adapter, Output};

/// The longest line that either side may write, in bytes; a tool worker's may be no longer.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How long a server may take to end that has closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How long a server may take to say which tools it has: less than a worker may take to be ready, so that the reason is known.
const START_LIMIT: Duration = Duration::from_secs(30);

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
            return Err(self.failed("its input and output are not there"));
        };
        let (server_in, mut server_out) = (LineWriter::new(input), Lines::new(output, LONGEST_LINE));
        let (mut client_in, mut client_out) = (Lines::new(stdin(), LONGEST_LINE), stdout());
        let mut adapter = Adapter::begin(first_id());
        let late = sleep(START_LIMIT);
        tokio::pin!(late);
        loop {
            if self.tell(&mut adapter, &server_in, &mut client_out).await? {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::select! {
                () = &mut late, if !adapter.is_ready() => {
                    let seconds = START_LIMIT.as_secs();
                    return Err(self.failed(&format!("it has not said within {seconds} s which tools it has")));
                }
                line = client_in.next() => match line {
                    Some(Line::Whole(line)) => adapter.hear_client(&line),
                    // The client waits for an answer to what it says, and gives up.
                    Some(Line::TooLong(_)) | None => return Ok(ExitCode::SUCCESS),
                },
                line = server_out.next() => match line {
                    Some(Line::Whole(line)) => adapter.hear_server(&line),
                    Some(Line::TooLong(bytes)) => {
                        let reason = format!("it wrote a line of {bytes} bytes; {LONGEST_LINE} are taken");
                        adapter.give_up(&reason);
                        self.tell(&mut adapter, &server_in, &mut client_out).await?;
                        return Err(self.failed(&reason));
                    }
                    None => return Err(self.failed(&ending(&mut server).await)),
                },
            }
        }
    }

    /// Tells both sides what they are to be told; says whether the client has closed its session.
    async fn tell(
        &self,
        adapter: &mut Adapter,
        server: &LineWriter,
        client: &mut Stdout,
    ) -> Result<bool, Error> {
        for output in adapter.take() {
            match output {
                Output::ToServer(line) => server.send(line),
                Output::ToClient(line) => {
                    client.write_all(line.as_bytes()).await.map_err(|error| broken(&error))?;
                    client.flush().await.map_err(|error| broken(&error))?;
                }
                Output::Closed => return Ok(true),
                Output::Refused(reason) => return Err(self.failed(&reason)),
            }
        }
        Ok(false)
    }

    /// What is wrong with the server. Its arguments may hold secrets, and what is said here is stored.
    fn failed(&self, reason: &str) -> Error {
        let program = self.command.first().map_or("", String::as_str);
        Error::ToolWorkerUnavailable { reason: format!("the MCP server `{program}`: {reason}") }
    }

    /// Starts the server in this process's group, so that it ends with it.
    fn start(&self) -> Result<Child, Error> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(self.failed("it is not named"));
        };
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.failed(&error.to_string()))
    }
}

/// The first number of the messages' names, so that no two runs have the same.
fn first_id() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}

/// How a server ended that has closed its output. One that goes on says nothing any more, and is killed.
async fn ending(server: &mut Child) -> String {
    match timeout(EXIT_GRACE, server.wait()).await {
        Ok(Ok(status)) => format!("it ended ({status})"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it closed its standard output".to_owned(),
    }
}

fn broken(error: &std::io::Error) -> Error {
    Error::WorkerFailed { reason: format!("standard output: {error}") }
}

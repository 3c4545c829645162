//! `mainstay eval`: code in, what comes of it out.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::{Eval as EvalCall, Subscribe};
use mainstay_gateway::view::{EvalView, SessionView};
use mainstay_model::{Admission, CommandId, Error, Event, EventBody, OutputStream, Seq};
use tokio::sync::mpsc;

use super::target::{Target, settle};
use crate::connect::{Connection, connect_or_start};
use crate::home::Home;
use crate::terminal::{Paint, eval_summary};

/// Runs code in a session and prints what comes of it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Eval {
    #[command(flatten)]
    target: Target,

    /// The code, or - for standard input
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    code: Option<String>,

    /// Run the text of this file; relative #load and #r start from its folder
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,

    #[arg(skip)]
    script: Option<Vec<u8>>,
}

const EXAMPLES: &str = "\
Examples:
  mainstay eval 'let square x = x * x'
  mainstay eval --json 'square 12'
  mainstay eval --file examples/units.fsx
  cat script.fsx | mainstay eval -

Exit codes: 0 the code ran to its end, 1 it did not, 2 the command line was wrong.";

/// Code, and the file it is the text of.
struct Source {
    code: String,
    file: Option<String>,
}

impl Eval {
    /// An eval of a script that was piped in.
    pub(super) fn of_script(target: Target, script: Vec<u8>) -> Self {
        Self { target, code: None, file: None, json: false, script: Some(script) }
    }

    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let source = self.read()?;
        let connection = connect_or_start(home, "cli").await?;
        let session = self.target.find_or_create(home, &connection.client).await?;
        let session = settle(&connection.client, session).await?;
        let eval = if self.json {
            let eval = call(&connection, &session, &source, new_command()).await?;
            super::print_json_line(&eval)?;
            eval
        } else {
            run_in_view(connection, &session, &source).await?
        };
        Ok(if eval.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn read(&self) -> Result<Source, Error> {
        let unreadable = |what: &str, error: std::io::Error| Error::InvalidArgument {
            argument: what.to_owned(),
            reason: error.to_string(),
        };
        if let Some(script) = &self.script {
            return Ok(Source { code: utf8(script.clone())?, file: None });
        }
        if let Some(file) = &self.file {
            let name = file.display().to_string();
            let path = std::fs::canonicalize(file).map_err(|error| unreadable(&name, error))?;
            let bytes = std::fs::read(&path).map_err(|error| unreadable(&name, error))?;
            return Ok(Source { code: utf8(bytes)?, file: Some(path.display().to_string()) });
        }
        match self.code.as_deref() {
            Some("-") | None => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|error| unreadable("standard input", error))?;
                Ok(Source { code: utf8(bytes)?, file: None })
            }
            Some(code) => Ok(Source { code: code.to_owned(), file: None }),
        }
    }
}

/// Text without a byte order mark.
fn utf8(bytes: Vec<u8>) -> Result<String, Error> {
    let text = String::from_utf8(bytes).map_err(|error| Error::CodeInvalid {
        reason: format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()),
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn new_command() -> CommandId {
    CommandId::from(mainstay_model::JobId::from_uuid(uuid::Uuid::now_v7()))
}

async fn call(
    connection: &Connection,
    session: &SessionView,
    source: &Source,
    command: CommandId,
) -> Result<EvalView, Error> {
    let call = EvalCall {
        session: session.session.to_string(),
        command: Some(command),
        code: source.code.clone(),
        file: source.file.clone(),
        admission: Admission::Queue,
    };
    connection.client.call(call).await
}

/// Runs code and shows its output as it comes, then the rest.
async fn run_in_view(
    mut connection: Connection,
    session: &SessionView,
    source: &Source,
) -> Result<EvalView, Error> {
    let command = new_command();
    let subscribe = Subscribe { session: session.session.to_string(), after: session.last_seq };
    connection.client.call(subscribe).await?;
    let (nothing, no_events) = mpsc::unbounded_channel();
    drop(nothing);
    let mut events = std::mem::replace(&mut connection.events, no_events);
    let mut shown = Seq::ZERO;
    let answer = call(&connection, session, source, command.clone());
    tokio::pin!(answer);
    let eval = loop {
        tokio::select! {
            eval = &mut answer => break eval?,
            Some(event) = events.recv() => shown = show_output(&event, &command),
        }
    };
    // The answer may overtake the last of the output.
    while shown < eval.seq {
        let Some(event) = events.recv().await else { break };
        shown = show_output(&event, &command);
    }
    print_display(&eval, &source.code);
    Ok(eval)
}

fn show_output(event: &Event, command: &CommandId) -> Seq {
    if let EventBody::OutputProduced { stream, text, .. } = &event.body
        && event.metadata.correlation.as_ref() == Some(command)
    {
        match stream {
            OutputStream::Stdout => print!("{text}"),
            OutputStream::Stderr => eprint!("{text}"),
        }
        std::io::stdout().flush().ok();
    }
    event.seq
}

fn print_display(eval: &EvalView, code: &str) {
    if !eval.display.trim().is_empty() {
        println!("{}", eval.display.trim_end());
    }
    eprint!("{}", eval_summary(eval, code, Paint::stderr()));
}

//! `mainstay eval`: code in, what comes of it out.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_gateway::rpc::api::{Conditions, Eval as EvalCall, Follow, Sent};
use mainstay_gateway::view::{EvalView, SessionView};
use mainstay_model::{Admission, CommandId, Error, Event, EventBody, OutputStream, Seq, SessionState};
use tokio::time::sleep;

use super::conditions::SentArgs;
use super::exit::own_exit_code;
use super::fault::{HardReset, show_refusal};
use super::questions::Questions;
use super::stopping::Stopping;
use super::target::{Target, settle};
use crate::connect::{Connection, connect_or_start};
use crate::home::Home;
use crate::terminal::{self, BegunLine, Paint, eval_summary};

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

    #[command(flatten)]
    sent: SentArgs,

    /// Store neither the code nor what it gives and prints: both are told here, once. It cannot wait for its turn, nor ask
    #[arg(long, conflicts_with = "file")]
    withheld: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,

    #[arg(skip)]
    script: Option<Vec<u8>>,
}

/// Code that has not begun after this long is said to wait.
const PATIENCE: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  mainstay eval 'let square x = x * x'
  mainstay eval --json 'square 12'
  mainstay eval --file examples/units.fsx
  cat script.fsx | mainstay eval -
  mainstay eval --withheld - < login.fsx      # nothing of it is stored
  mainstay eval --id nightly-17 'import ()'   # again after a crash: it runs once, and the answer is the same
  mainstay eval --depends-on nightly-17 --timeout 90s 'report ()'

Exit codes: 0 the code ran to its end, 1 it did not, 2 the command line was wrong.
Code that calls `exit` gives its own exit code, and 1 with --json, as for every \"success\": false.";

/// Code, and the file it is the text of.
struct Source {
    code: String,
    file: Option<String>,
    /// A script's reader wants what it prints, and not what the prompt would have said of each definition.
    is_script: bool,
}

impl Eval {
    /// An eval of a script that was piped in.
    pub(super) fn of_script(target: Target, script: Vec<u8>) -> Self {
        Self {
            target,
            code: None,
            file: None,
            sent: SentArgs::default(),
            withheld: false,
            json: false,
            script: Some(script),
        }
    }

    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let source = self.read()?;
        let connection = connect_or_start(home, "cli").await?;
        let session = self.target.find_or_create(home, &connection.client).await?;
        let session = settle(&connection.client, session).await?;
        terminal::tell_news(&session);
        let show = match (self.json, source.is_script) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Output,
            (false, false) => Show::OutputAndDisplay,
        };
        let (command, conditions) = self.sent.named();
        let mut run = Run {
            source,
            shown: session.last_seq,
            session,
            stopping: Stopping::new(command.clone())?,
            command,
            conditions,
            withheld: self.withheld,
            show,
            has_begun: false,
            questions: Questions::new("the code"),
            begun: BegunLine::default(),
        };
        let mut answered = run.attempt(connection).await;
        if let Err(Error::DaemonNotRunning) = answered {
            // The daemon was lost. The command's outcome is stored, or it never arrived; the same id asks for either.
            answered = run.attempt(connect_or_start(home, "cli").await?).await;
        }
        let answer = match answered {
            Ok(answer) => answer,
            Err(error @ Error::NotOffered { state: SessionState::Faulted, .. }) => {
                let Connection { client, .. } = connect_or_start(home, "cli").await?;
                let session = run.session.session.to_string();
                show_refusal(&client, &session, HardReset::Command, &error).await;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error),
        };
        if self.json {
            super::print_json_line(&answer.eval)?;
        }
        Ok(answer.exit_code(self.json))
    }

    fn read(&self) -> Result<Source, Error> {
        let unreadable = |what: &str, error: std::io::Error| Error::InvalidArgument {
            argument: what.to_owned(),
            reason: error.to_string(),
        };
        if let Some(script) = &self.script {
            return Ok(Source { code: utf8(script.clone())?, file: None, is_script: true });
        }
        if let Some(file) = &self.file {
            let name = file.display().to_string();
            let path = std::fs::canonicalize(file).map_err(|error| unreadable(&name, error))?;
            let bytes = std::fs::read(&path).map_err(|error| unreadable(&name, error))?;
            let file = Some(path.display().to_string());
            return Ok(Source { code: utf8(bytes)?, file, is_script: true });
        }
        match self.code.as_deref() {
            Some("-") | None => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|error| unreadable("standard input", error))?;
                Ok(Source { code: utf8(bytes)?, file: None, is_script: false })
            }
            Some(code) => Ok(Source { code: code.to_owned(), file: None, is_script: false }),
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

/// What a person sees of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Nothing,
    Output,
    OutputAndDisplay,
}

/// One eval, until it is answered.
struct Run {
    source: Source,
    session: SessionView,
    command: CommandId,
    conditions: Conditions,
    withheld: bool,
    show: Show,
    /// The last event that was seen, or that there was before.
    shown: Seq,
    /// Whether its beginning was seen; what began earlier is shown from its answer.
    has_begun: bool,
    stopping: Stopping,
    questions: Questions,
    /// What it has printed last, where that is on the screen.
    begun: BegunLine,
}

/// What came of an eval.
struct Answer {
    eval: EvalView,
    /// What the code itself ended with, where it called `exit`.
    own_exit: Option<i32>,
}

impl Answer {
    /// The code's own, where it has one. Who reads JSON is told of it there, and here only whether the code ran to its end.
    fn exit_code(&self, is_json: bool) -> ExitCode {
        match self.own_exit.and_then(|code| u8::try_from(code).ok()) {
            Some(code) if !is_json => ExitCode::from(code),
            Some(_) | None if self.eval.success => ExitCode::SUCCESS,
            Some(_) | None => ExitCode::FAILURE,
        }
    }
}

impl Run {
    /// Asks for the eval and shows its output as it comes, then the rest.
    async fn attempt(&mut self, connection: Connection) -> Result<Answer, Error> {
        let Connection { client, mut events } = connection;
        self.stopping.begin_again();
        let session = self.session.session.to_string();
        client.call(Follow::session(session.clone(), self.shown)).await?;
        let answer = client.call(EvalCall {
            session: session.clone(),
            code: self.source.code.clone(),
            file: self.source.file.clone(),
            withheld: self.withheld,
            admission: Admission::Queue,
            sent: Sent { command: Some(self.command.clone()), conditions: self.conditions.clone() },
        });
        tokio::pin!(answer);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut is_patient = true;
        let eval = loop {
            tokio::select! {
                biased;
                // First, so that the code is on its way before it is taken back.
                eval = &mut answer => break eval?,
                () = self.stopping.wanted() => self.stopping.stop(&client, &session).await?,
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    let command = &self.command;
                    terminal::note(&format!(
                        "waits for its turn …; Ctrl-C takes it back, or `mainstay cancel --command {command}`"
                    ));
                }
                line = self.questions.line() => self.questions.answer(&client, line).await?,
                Some(event) = events.recv() => {
                    self.see(&event);
                    if self.has_begun {
                        is_patient = false;
                        if self.stopping.is_due() {
                            self.stopping.stop(&client, &session).await?;
                        }
                    }
                }
            }
        };
        // The answer may overtake the last of the output.
        while self.shown < eval.seq {
            let Some(event) = events.recv().await else { break };
            self.see(&event);
        }
        if !self.has_begun || eval.withheld {
            self.print(OutputStream::Stdout, &eval.stdout);
            self.print(OutputStream::Stderr, &eval.stderr);
        }
        let own_exit = own_exit_code(&client, &eval).await?;
        if self.show == Show::OutputAndDisplay && !eval.display.trim().is_empty() {
            println!("{}", eval.display.trim_end());
        }
        if self.show != Show::Nothing {
            eprint!("{}", eval_summary(&eval, own_exit, &self.source.code, Paint::stderr()));
        }
        Ok(Answer { eval, own_exit })
    }

    fn see(&mut self, event: &Event) {
        self.shown = event.seq;
        self.questions.observe(event, &self.command, &mut self.begun);
        if event.metadata.correlation.as_ref() != Some(&self.command) {
            return;
        }
        if let EventBody::EvalRequested { .. } = &event.body {
            self.has_begun = true;
        }
        if let EventBody::OutputProduced { stream, text, .. } = &event.body
            && self.has_begun
        {
            self.print(*stream, text);
        }
    }

    fn print(&mut self, stream: OutputStream, text: &str) {
        if self.show == Show::Nothing {
            return;
        }
        match stream {
            OutputStream::Stdout => print!("{text}"),
            OutputStream::Stderr => eprint!("{text}"),
        }
        std::io::stdout().flush().ok();
        if std::io::stdout().is_terminal() {
            self.begun.push(text);
        }
    }
}

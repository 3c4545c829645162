//! `mainstay eval`: code in, what comes of it out.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{
    Admission, CommandId, CommandLine, Display, Error, Event, EventBody, Live, OutputStream, Seq,
    SessionState,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::Eval as EvalCall;
use mainstay_protocol::view::{EvalView, SessionView};
use mainstay_terminal::{
    self as terminal, DisplaySequence, OpenLine, Paint, Surface, eval_summary, result_text,
};
use mainstay_terminal_client::connect::{Connection, connect_again, connected};
use mainstay_terminal_client::exit::own_exit_code;
use mainstay_terminal_client::fault::{HardReset, show_refusal};
use mainstay_terminal_client::session_text::startup_text;
use mainstay_terminal_client::sessions::OpenedSession;

use super::command_wait::{AwaitedCommand, CommandWait};
use super::conditions::SentArgs;
use super::questions::{Asker, Questions};
use super::target::Target;

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

const EXAMPLES: &str = "\
Examples:
  mainstay eval 'let square x = x * x'
  mainstay eval --json 'square 12'
  mainstay eval --file examples/units.fsx
  cat script.fsx | mainstay eval -
  echo Ada | mainstay eval 'stdin.ReadLine ()'   # answers what the code asks
  mainstay eval --withheld - < login.fsx      # nothing of it is stored
  mainstay eval --id nightly-17 'import ()'   # again after a crash: it runs once, and the answer is the same
  mainstay eval --depends-on nightly-17 --timeout 90s 'report ()'

Exit codes: 0 the code ran to its end, 1 it did not, 2 the command line was wrong.
Code that calls `exit` gives its own exit code, and 1 with --json, as for every \"success\": false.";

/// Code, and the file it is the text of.
pub(super) struct Source {
    pub(super) code: String,
    pub(super) file: Option<String>,
    /// The command line that the code is given.
    pub(super) command_line: Option<CommandLine>,
    /// The lines of the file before it. What is said of places in the code is said of the file's.
    pub(super) lines_before: u32,
    /// A script's reader wants what it prints, and not what the prompt would have said of each definition.
    pub(super) is_script: bool,
}

impl Source {
    const fn of_code(code: String) -> Self {
        Self { code, file: None, command_line: None, lines_before: 0, is_script: false }
    }

    const fn of_script(code: String, file: Option<String>) -> Self {
        Self { code, file, command_line: None, lines_before: 0, is_script: true }
    }
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
        let show = match (self.json, source.is_script) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Output,
            (false, false) => Show::OutputAndDisplay,
        };
        let run = Run { withheld: self.withheld, ..Run::new(source, show) };
        let Some(answer) = run.awaited(home, self.target, self.sent).await? else {
            return Ok(ExitCode::FAILURE);
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
            return Ok(Source::of_script(utf8(script.clone())?, None));
        }
        if let Some(file) = &self.file {
            let name = file.display().to_string();
            let path = std::fs::canonicalize(file).map_err(|error| unreadable(&name, error))?;
            let bytes = std::fs::read(&path).map_err(|error| unreadable(&name, error))?;
            let file = Some(path.display().to_string());
            return Ok(Source::of_script(utf8(bytes)?, file));
        }
        match self.code.as_deref() {
            Some("-") | None => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|error| unreadable("standard input", error))?;
                Ok(Source::of_code(utf8(bytes)?))
            }
            Some(code) => Ok(Source::of_code(code.to_owned())),
        }
    }
}

/// Text without a byte order mark.
pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, Error> {
    let text = String::from_utf8(bytes).map_err(|error| Error::CodeInvalid {
        reason: format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()),
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// What a person sees of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Nothing,
    Output,
    OutputAndDisplay,
}

/// One eval, and what was seen of it.
pub(super) struct Run {
    source: Source,
    withheld: bool,
    show: Show,
    has_begun: bool,
    /// What it has printed last, where that is on the screen.
    begun: OpenLine,
    /// Whether what it has printed last has no end of line.
    is_inside_line: bool,
    displays: DisplaySequence,
}

/// What came of an eval.
pub(super) struct Answer {
    pub(super) eval: EvalView,
    /// What the code itself ended with, where it called `exit`.
    own_exit: Option<i32>,
}

impl Answer {
    /// Whether the code ended itself and said that all is well.
    pub(super) fn is_own_end(&self) -> bool {
        self.own_exit == Some(0)
    }

    /// The code's own, where it has one. Who reads JSON is told of it there, and here only whether the code ran to its end.
    pub(super) fn exit_code(&self, is_json: bool) -> ExitCode {
        match self.own_exit.and_then(|code| u8::try_from(code).ok()) {
            Some(code) if !is_json => ExitCode::from(code),
            Some(_) | None if self.eval.success => ExitCode::SUCCESS,
            Some(_) | None => ExitCode::FAILURE,
        }
    }
}

impl AwaitedCommand for Run {
    type Request = EvalCall;

    const LISTENS: bool = false;

    fn request(&self, session: String, sent: Sent) -> EvalCall {
        let Source { code, file, command_line, .. } = &self.source;
        let (code, file, command_line) = (code.clone(), file.clone(), command_line.clone());
        let (withheld, admission) = (self.withheld, Admission::Queue);
        EvalCall { session, code, file, command_line, withheld, admission, sent }
    }

    fn last_event(answer: &EvalView) -> Seq {
        answer.seq
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn see(&mut self, event: &Event, command: &CommandId, questions: &mut Questions) {
        questions.observe(event, command, &mut self.begun);
        if event.metadata.correlation.as_ref() != Some(command) {
            return;
        }
        self.displays.clear_status();
        if let EventBody::EvalRequested { .. } = &event.body {
            self.has_begun = true;
        }
        if let EventBody::OutputProduced { stream, text, .. } = &event.body
            && self.has_begun
        {
            self.print(*stream, text);
        }
        // What stands on a terminal stays; what takes its place begins on a line of its own.
        if let EventBody::OutputCleared { .. } = &event.body
            && self.is_inside_line
        {
            self.print(OutputStream::Stdout, "\n");
        }
        if let EventBody::OutputDisplayed { display, .. } = &event.body
            && self.has_begun
            && display.is_put_out()
        {
            self.show(display, questions);
        }
    }

    fn hear(&mut self, _: &Live) {}
}

impl Run {
    pub(super) fn new(source: Source, show: Show) -> Self {
        Self {
            source,
            withheld: false,
            show,
            has_begun: false,
            begun: OpenLine::default(),
            is_inside_line: false,
            displays: DisplaySequence::default(),
        }
    }

    /// Has it run in a session, and waits for its end; none where the session is Faulted, which is said.
    pub(super) async fn awaited(
        self,
        home: &Home,
        target: Target,
        sent: SentArgs,
    ) -> Result<Option<Answer>, Error> {
        let settled = async |connection: &Connection| target.settled(home, &connection.client).await;
        let (connection, OpenedSession { session, was_idle }) = connected(home, "cli", settled).await?;
        if was_idle {
            eprint!("{}", startup_text(&session, Paint::stderr()));
        } else {
            terminal::tell_unbuilt(&session);
        }
        terminal::tell_news(&session);
        self.awaited_over(home, connection, &session, sent).await
    }

    /// The same over a connection, in a session that takes commands and of which nothing is to be told: `session` is as it was when its last
    /// event was `last_seq`.
    pub(super) async fn awaited_over(
        self,
        home: &Home,
        connection: Connection,
        session: &SessionView,
        sent: SentArgs,
    ) -> Result<Option<Answer>, Error> {
        let mut eval = CommandWait::new(self, session, sent.named(), Asker::Code)?;
        match eval.answer(home, connection).await {
            Ok((answer, client)) => Ok(Some(eval.shown.finish(home, &client, answer).await?)),
            Err(error @ Error::NotOffered { state: SessionState::Faulted, .. }) => {
                let Connection { client, .. } = connect_again(home, "cli").await?;
                show_refusal(&client, &session.session.to_string(), HardReset::Command, &error).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Shows what has not been shown of what came of it.
    pub(super) async fn finish(
        &mut self,
        home: &Home,
        client: &Client,
        eval: EvalView,
    ) -> Result<Answer, Error> {
        let lines_before = self.source.lines_before;
        let eval = eval.in_lines_of(self.source.file.as_deref(), lines_before);
        if !self.has_begun || eval.withheld {
            self.print(OutputStream::Stdout, &eval.put_out());
            self.print(OutputStream::Stderr, &eval.stderr);
        }
        let own_exit = match own_exit_code(client, &eval).await {
            Err(Error::DaemonNotRunning) => {
                let find = async |connection: &Connection| own_exit_code(&connection.client, &eval).await;
                connected(home, "cli", find).await?.1
            }
            found => found?,
        };
        // Whoever reads this from a pipe wants the value as the language prints it.
        let surface = Surface::stdout();
        if self.show == Show::OutputAndDisplay && surface.is_terminal() {
            print!("{}", result_text(&eval, surface));
        } else if self.show == Show::OutputAndDisplay && !eval.display.trim().is_empty() {
            println!("{}", eval.display.trim_end());
        }
        if self.show != Show::Nothing {
            let text = format!("{}{}", "\n".repeat(lines_before as usize), self.source.code);
            eprint!("{}", eval_summary(&eval, own_exit, &text, Paint::stderr()));
        }
        Ok(Answer { eval, own_exit })
    }

    fn show(&mut self, display: &Display, questions: &Questions) {
        if self.show == Show::Nothing {
            return;
        }
        let text = self.displays.text(display, Surface::stdout());
        if !text.is_empty() {
            let start = if self.is_inside_line { "\n" } else { "" };
            self.print(OutputStream::Stdout, &format!("{start}{text}"));
        }
        // A line that has no end yet would be written over, and so would a question.
        if !self.is_inside_line && !questions.are_open() {
            self.displays.show_status(display);
        }
    }

    fn print(&mut self, stream: OutputStream, text: &str) {
        if self.show == Show::Nothing {
            return;
        }
        match stream {
            OutputStream::Stdout => {
                print!("{text}");
                self.is_inside_line =
                    text.chars().next_back().map_or(self.is_inside_line, |last| last != '\n');
            }
            OutputStream::Stderr => eprint!("{text}"),
        }
        std::io::stdout().flush().ok();
        if std::io::stdout().is_terminal() {
            self.begun.push(text);
        }
    }
}

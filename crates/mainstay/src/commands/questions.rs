//! Passing on to whoever waits for code what it asks: on standard error, with the answer read from standard input. Where nothing
//! comes from there, how to answer from elsewhere is said.

use std::io::{IsTerminal, Read, Write, stdin};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mainstay_client::Client;
use mainstay_model::ask::{Ask, AskEnding, END_OF_INPUT, InputRead};
use mainstay_model::{AskId, CommandId, Error, Event, EventBody};
use mainstay_terminal::{HiddenInput, OpenLine, note, printable, show_error};
use mainstay_terminal_client::ask::question_text;
use mainstay_terminal_client::events::{event_line, person_name};
use mainstay_terminal_client::own_asks::{AskChange, OwnAsks};
use rustix::io::Errno;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// How long a pipe may be silent until it is said how to answer from elsewhere.
const SILENCE: Duration = Duration::from_secs(1);

/// The thing that asks the question.
#[derive(Clone, Copy)]
pub(super) enum Asker {
    Code,
    Cell,
    Build,
    Agent,
}

impl Asker {
    const fn words(self) -> &'static str {
        match self {
            Self::Code => "the code",
            Self::Cell => "the cell",
            Self::Build => "the build",
            Self::Agent => "the agent",
        }
    }

    /// Whether it reads what comes through a pipe, as a program does. What an agent asks is for a person to decide.
    const fn reads_pipes(self) -> bool {
        match self {
            Self::Code | Self::Cell | Self::Build => true,
            Self::Agent => false,
        }
    }
}

/// What the code asks, and who may answer.
pub(super) struct Questions {
    asks: OwnAsks,
    /// The one that was asked last.
    asked: Option<AskId>,
    /// None where no line comes any more, or none that may answer.
    lines: Option<&'static Lines>,
    /// When it is to be said how to answer from elsewhere.
    tell_at: Option<Instant>,
    /// While a secret is typed.
    hidden: Option<HiddenInput>,
    asker: Asker,
}

impl Questions {
    pub(super) fn new(asker: Asker) -> Self {
        let lines = Some(Lines::of_program()).filter(|lines| lines.are_typed || asker.reads_pipes());
        Self { asks: OwnAsks::default(), asked: None, lines, tell_at: None, hidden: None, asker }
    }

    /// Takes in an event, and asks where there is something to ask. `begun` is what stands on the screen before it.
    pub(super) fn observe(&mut self, event: &Event, command: &CommandId, begun: &mut OpenLine) {
        match self.asks.observe(event, command) {
            Some(AskChange::Ended) => {
                self.tell_at = None;
                self.hidden = None;
                self.tell_end(event);
            }
            Some(AskChange::Voted) => tell_answer(event),
            Some(AskChange::Raised | AskChange::Answered) | None => {}
        }
        self.ask(begun);
    }

    /// Says that someone else answered, or nobody in time. That code was cancelled is told as what came of it.
    fn tell_end(&self, event: &Event) {
        if self.lines.is_some_and(|lines| lines.are_typed && lines.are_wanted()) {
            eprintln!(); // the question stands there
        }
        if !matches!(event.body, EventBody::AskEnded { ending: AskEnding::Cancelled, .. }) {
            tell_answer(event);
        }
    }

    /// Whether an answer is waited for.
    pub(super) fn are_open(&self) -> bool {
        self.asks.open().is_some()
    }

    fn ask(&mut self, begun: &mut OpenLine) {
        let Some(ask) = self.asks.open().filter(|ask| self.asked != Some(ask.ask)) else { return };
        self.asked = Some(ask.ask);
        match self.lines {
            Some(lines) if lines.are_typed => {
                // First: what is typed as soon as the question is there must not be shown either.
                self.hidden = ask.question.is_secret().then(HiddenInput::begin).flatten();
                show(ask, begun);
                lines.want(InputRead::Line);
            }
            Some(lines) => {
                // Of a program that reads a pipe nobody hears: it is told where nothing comes.
                let read = ask.question.input_read();
                if read.is_none() {
                    tell(self.asker, ask, begun);
                }
                self.tell_at = Some(Instant::now() + SILENCE);
                lines.want(read.unwrap_or(InputRead::Line));
            }
            None => {
                tell(self.asker, ask, begun);
                tell_how_to_answer(ask);
            }
        }
    }

    /// The line that answers what was asked; none where no more will come. Dropping the future loses nothing.
    pub(super) async fn line(&mut self) -> Option<Vec<u8>> {
        // A pipe's next line is for whoever asks next, and stays until then.
        let is_for_someone =
            |lines: &&Lines| lines.are_wanted() && (lines.are_typed || self.asks.open().is_some());
        let Some(lines) = self.lines.filter(is_for_someone) else {
            return std::future::pending().await;
        };
        if let Some(at) = self.tell_at {
            tokio::select! {
                line = lines.next() => return line,
                () = sleep_until(at) => {}
            }
            self.tell_at = None;
            if let Some(ask) = self.asks.open() {
                if ask.question.input_read().is_some() {
                    tell(self.asker, ask, &mut OpenLine::default());
                }
                tell_how_to_answer(ask);
            }
        }
        lines.next().await
    }

    /// Takes a line for the answer. What is none is asked again.
    ///
    /// # Errors
    /// [`Error::DaemonNotRunning`], and what keeps the input of a pipe from the code that reads it.
    pub(super) async fn answer(&mut self, client: &Client, line: Option<Vec<u8>>) -> Result<(), Error> {
        let is_untold = self.tell_at.take().is_some();
        self.hidden = None;
        let is_pipe = self.is_pipe();
        let read = self.asks.open().and_then(|ask| ask.question.input_read());
        let line = match (line, self.asks.open()) {
            (Some(line), Some(ask)) => {
                // What a person types at a terminal is a line, whatever is wanted.
                let read = read.filter(|_| is_pipe).unwrap_or(InputRead::Line);
                Some(ask.question.input_answer(read, &line))
            }
            (Some(_), None) => Some(String::new()),
            // The end of a pipe is the end of the code's input, and so is Ctrl-D.
            (None, _) => read.map(|_| END_OF_INPUT.to_owned()),
        };
        let Some(line) = line else {
            if self.lines.take().is_some_and(|lines| lines.are_typed) {
                self.asked = None;
            } else if is_untold {
                self.asks.open().map(tell_how_to_answer);
            }
            self.ask(&mut OpenLine::default());
            return Ok(());
        };
        // What came when the ask had ended answers the next one, if there is one.
        let Some(ask) = self.asks.open().map(|ask| ask.ask) else { return Ok(()) };
        self.asked = None;
        let answered = self.asks.answer(client, ask, &line).await;
        self.answered(answered, is_pipe && read.is_some())
    }

    /// Sends the answer that a daemon which was lost may not have taken.
    ///
    /// # Errors
    /// As [`Questions::answer`].
    pub(super) async fn answer_again(&mut self, client: &Client) -> Result<(), Error> {
        let is_read =
            self.is_pipe() && self.asks.given().is_some_and(|ask| ask.question.input_read().is_some());
        let answered = self.asks.answer_again(client).await;
        self.answered(answered, is_read)
    }

    /// What is no answer is asked again, unless it `is_read` by code.
    fn answered(&mut self, answered: Result<(), Error>, is_read: bool) -> Result<(), Error> {
        match answered {
            Err(error @ Error::DaemonNotRunning) => return Err(error),
            // Code that went on without what was read for it would have read something else.
            Err(error) if is_read => return Err(error),
            Err(error) => show_error(&error),
            Ok(()) => {}
        }
        self.ask(&mut OpenLine::default());
        Ok(())
    }

    fn is_pipe(&self) -> bool {
        self.lines.is_some_and(|lines| !lines.are_typed)
    }
}

/// Says who answered what.
fn tell_answer(event: &Event) {
    let (who, what) = (person_name(&event.metadata.source), event_line(&event.body).1);
    note(&printable(&format!("{who} {what}")));
}

/// A prompt that the code has printed itself is not shown twice.
fn show(ask: &Ask, begun: &mut OpenLine) {
    let question = printable(&question_text(&ask.question)).into_owned();
    if !begun.says(&question) {
        end_line(begun);
        eprint!("{question} ");
        std::io::stderr().flush().ok();
    }
    // What is typed ends the line.
    begun.take();
}

fn tell(asker: Asker, ask: &Ask, begun: &mut OpenLine) {
    end_line(begun);
    note(&format!("{} asks: {}", asker.words(), printable(&question_text(&ask.question))));
}

fn tell_how_to_answer(ask: &Ask) {
    note(&format!("  `mainstay ask answer {} ANSWER` answers it", ask.ask.short()));
}

fn end_line(begun: &mut OpenLine) {
    if begun.take() {
        println!();
    }
}

/// Standard input by its lines, each read only when it is wanted: what comes later belongs to whoever reads next. A thread that waits for one
/// when the program ends does not hold it up.
struct Lines {
    wants: Sender<InputRead>,
    lines: Mutex<UnboundedReceiver<Option<Vec<u8>>>>,
    are_wanted: AtomicBool,
    /// By a person at a terminal.
    are_typed: bool,
}

impl Lines {
    /// The program's: one that was wanted and did not come goes to whoever wants the next.
    fn of_program() -> &'static Self {
        static LINES: LazyLock<Lines> = LazyLock::new(|| {
            let ((wants, wanted), (found, lines)) = (channel(), unbounded_channel());
            std::thread::spawn(move || read(&wanted, &found));
            let (are_wanted, are_typed) = (AtomicBool::new(false), stdin().is_terminal());
            Lines { wants, lines: Mutex::new(lines), are_wanted, are_typed }
        });
        &LINES
    }

    fn want(&self, read: InputRead) {
        if !self.are_wanted.swap(true, Ordering::Relaxed) {
            self.wants.send(read).ok();
        }
    }

    fn are_wanted(&self) -> bool {
        self.are_wanted.load(Ordering::Relaxed)
    }

    async fn next(&self) -> Option<Vec<u8>> {
        let line = self.lines.lock().await.recv().await.flatten();
        self.are_wanted.store(false, Ordering::Relaxed);
        line
    }
}

fn read(wanted: &Receiver<InputRead>, found: &UnboundedSender<Option<Vec<u8>>>) {
    while let Ok(wanted) = wanted.recv() {
        let read = match wanted {
            InputRead::Line => Some(read_line()).filter(|line| !line.is_empty()),
            InputRead::Lines => Some(read_lines()).filter(|lines| !lines.is_empty()),
            InputRead::Rest => Some(read_rest()),
        };
        if found.send(read).is_err() {
            return;
        }
    }
}

/// All that is left, which may be nothing; what could be read where reading fails.
fn read_rest() -> Vec<u8> {
    let mut rest = Vec::new();
    stdin().lock().read_to_end(&mut rest).ok();
    rest
}

/// What is there, at most so much, and what is missing of its last line, unless that is long.
fn read_lines() -> Vec<u8> {
    const CHUNK: usize = 64 * 1024;
    const TAIL: usize = 4 * 1024;
    let mut lines = vec![0; CHUNK];
    let count = read_some(&mut lines);
    lines.truncate(count);
    if lines.last().is_some_and(|last| *last != b'\n') {
        lines.extend(read_line_of(TAIL));
    }
    lines
}

/// A line with its end, which the last may not have. Nothing behind its end is taken: that is for whoever has the same input next, as in a
/// loop of a shell.
fn read_line() -> Vec<u8> {
    read_line_of(usize::MAX)
}

fn read_line_of(most: usize) -> Vec<u8> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < most && line.last() != Some(&b'\n') && read_some(&mut byte) > 0 {
        line.extend(byte);
    }
    line
}

/// How much of what is there was read; nothing at the end, and where reading fails.
fn read_some(buffer: &mut [u8]) -> usize {
    loop {
        match rustix::io::read(stdin(), &mut *buffer) {
            Err(Errno::INTR) => {}
            read => return read.unwrap_or_default(),
        }
    }
}

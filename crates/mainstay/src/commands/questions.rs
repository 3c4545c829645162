//! Passing on to the person who runs `mainstay eval` what its code asks: on standard error, with the answer read from the terminal. Where
//! standard input is none, how to answer from elsewhere is said instead.

use std::io::{IsTerminal, Write, stdin};
use std::sync::mpsc::{Receiver, Sender, channel};

use mainstay_gateway::rpc::client::Client;
use mainstay_model::ask::{Ask, AskEnding};
use mainstay_model::{AskId, CommandId, Error, Event, EventBody};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::ask::question_text;
use super::events::{describe, who};
use crate::asking::{News, OwnAsks};
use crate::terminal::{BegunLine, note, printable, show_error};

/// What the code asks, and the person who may answer.
pub(super) struct Questions {
    asks: OwnAsks,
    /// The one that was asked last.
    asked: Option<AskId>,
    /// None where nobody can type.
    lines: Option<Lines>,
    /// Who asks, in words.
    asker: &'static str,
}

impl Questions {
    /// Of whom this names: `the code`.
    pub(super) fn new(asker: &'static str) -> Self {
        let lines = stdin().is_terminal().then(Lines::new);
        Self { asks: OwnAsks::default(), asked: None, lines, asker }
    }

    /// Takes in an event, and asks where there is something to ask. `begun` is what stands on the screen before it.
    pub(super) fn observe(&mut self, event: &Event, command: &CommandId, begun: &mut BegunLine) {
        if self.asks.observe(event, command) == Some(News::Ended) {
            self.tell_end(event);
        }
        self.ask(begun);
    }

    /// Says that someone else answered, or nobody in time. That code was cancelled is told as what came of it.
    fn tell_end(&self, event: &Event) {
        if self.lines.as_ref().is_some_and(|lines| lines.are_wanted) {
            eprintln!(); // the question stands there
        }
        if !matches!(event.body, EventBody::AskEnded { ending: AskEnding::Cancelled, .. }) {
            let (who, what) = (who(&event.metadata.source), describe(&event.body).1);
            note(&printable(&format!("{who} {what}")));
        }
    }

    fn ask(&mut self, begun: &mut BegunLine) {
        let Some(ask) = self.asks.open().filter(|ask| self.asked != Some(ask.ask)) else { return };
        self.asked = Some(ask.ask);
        match &mut self.lines {
            Some(lines) => {
                show(ask, begun);
                lines.want();
            }
            None => tell_how_to_answer(self.asker, ask, begun),
        }
    }

    /// The line that answers what was asked; none where no more can be typed. Dropping the future loses nothing.
    pub(super) async fn line(&mut self) -> Option<String> {
        match &mut self.lines {
            Some(lines) if lines.are_wanted => lines.next().await,
            Some(_) | None => std::future::pending().await,
        }
    }

    /// Takes what was typed for the answer. What is none is asked again.
    pub(super) async fn answer(&mut self, client: &Client, line: Option<String>) -> Result<(), Error> {
        // What was typed when the ask had ended answers the next one, if there is one.
        let Some(ask) = self.asks.open().map(|ask| ask.ask) else { return Ok(()) };
        self.asked = None;
        match line {
            Some(line) => match self.asks.answer(client, ask, &line).await {
                Err(error @ Error::DaemonNotRunning) => return Err(error),
                Err(error) => show_error(&error),
                Ok(()) => {}
            },
            None => self.lines = None,
        }
        self.ask(&mut BegunLine::default());
        Ok(())
    }
}

/// A prompt that the code has printed itself is not shown twice.
fn show(ask: &Ask, begun: &mut BegunLine) {
    let question = printable(&question_text(&ask.question)).into_owned();
    if !begun.says(&question) {
        end_line(begun);
        eprint!("{question} ");
        std::io::stderr().flush().ok();
    }
    // What is typed ends the line.
    begun.take();
}

fn tell_how_to_answer(asker: &str, ask: &Ask, begun: &mut BegunLine) {
    end_line(begun);
    let (question, id) = (question_text(&ask.question), ask.ask.short());
    note(&format!("{asker} asks: {}\n  `mainstay ask answer {id} ANSWER` answers it", printable(&question)));
}

fn end_line(begun: &mut BegunLine) {
    if begun.take() {
        println!();
    }
}

/// Lines of the terminal, each read only when it is wanted: what is typed later belongs to whoever reads next. A thread that waits for one
/// when the program ends does not hold it up.
struct Lines {
    wants: Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
    are_wanted: bool,
}

impl Lines {
    fn new() -> Self {
        let ((wants, wanted), (found, lines)) = (channel(), unbounded_channel());
        std::thread::spawn(move || read(&wanted, &found));
        Self { wants, lines, are_wanted: false }
    }

    fn want(&mut self) {
        if !std::mem::replace(&mut self.are_wanted, true) {
            self.wants.send(()).ok();
        }
    }

    async fn next(&mut self) -> Option<String> {
        let line = self.lines.recv().await.flatten();
        self.are_wanted = false;
        line
    }
}

fn read(wanted: &Receiver<()>, found: &UnboundedSender<Option<String>>) {
    while wanted.recv().is_ok() {
        let mut line = String::new();
        let is_one = stdin().read_line(&mut line).is_ok_and(|count| count > 0);
        let line = line.trim_end_matches(['\n', '\r']).to_owned();
        if found.send(is_one.then_some(line)).is_err() {
            return;
        }
    }
}

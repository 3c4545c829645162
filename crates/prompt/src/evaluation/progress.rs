//! What is known of a command while it runs, and what is shown of it.

use std::io::Write;

use mainstay_client::Client;
use mainstay_model::ask::Ask;
use mainstay_model::{AskId, CommandId, Display, Error, Event, EventBody, OutputStream};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{DisplaySequence, OpenLine, ProgressLine, Surface};
use mainstay_terminal_client::own_asks::OwnAsks;

use crate::agent_turn::AgentTurn;

/// What is known of a submission while it runs.
pub(crate) struct Progress {
    /// The command that runs, or is the next to run.
    pub(super) command: CommandId,
    /// The command that it is a part of.
    pub(super) whole: Option<CommandId>,
    pub(super) has_begun: bool,
    /// How far the session is that it waits for.
    pub(super) waits: ProgressLine,
    /// Whether Ctrl-C was pressed.
    pub(super) is_unwanted: bool,
    /// It has been asked to stop.
    pub(super) is_stopping: bool,
    pub(super) was_killed: bool,
    /// What is shown of its output.
    pub(super) begun: OpenLine,
    pub(super) displays: DisplaySequence,
    pub(super) asks: OwnAsks,
    /// Who was asked here leaves the answer to others.
    pub(super) is_left_to_others: bool,
    /// The beginning of an answer that was typed when the daemon was lost.
    unsent_answer: Option<(AskId, String)>,
    /// What is known of it where an agent does it.
    pub(super) turn: Option<AgentTurn>,
}

impl Progress {
    /// Nothing is known yet of this command.
    pub(super) fn of(command: CommandId) -> Self {
        Self {
            command,
            whole: None,
            has_begun: false,
            waits: ProgressLine::default(),
            is_unwanted: false,
            is_stopping: false,
            was_killed: false,
            begun: OpenLine::default(),
            displays: DisplaySequence::default(),
            asks: OwnAsks::default(),
            is_left_to_others: false,
            unsent_answer: None,
            turn: None,
        }
    }

    /// Nothing is known yet of this command of the agent of this session.
    pub(crate) fn of_turn(command: CommandId, session: &SessionView) -> Self {
        Self { turn: Some(AgentTurn::new(session)), ..Self::of(command) }
    }

    pub(crate) fn command(&self) -> &CommandId {
        &self.command
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(crate) fn turn(&mut self) -> Option<&mut AgentTurn> {
        self.turn.as_mut()
    }

    /// Whether an agent works on it that can be told something meanwhile.
    pub(super) fn can_be_steered(&self) -> bool {
        !self.is_unwanted && self.turn.as_ref().is_some_and(AgentTurn::can_be_steered)
    }

    /// Nothing is known yet of the parts of this command.
    pub(super) fn of_parts(whole: CommandId) -> Result<Self, Error> {
        Ok(Self { whole: Some(whole.clone()), ..Self::of(whole.part(1)?) })
    }

    /// Where an event is of the next part of the command, it is that which runs, or waits for its turn.
    pub(super) fn go_on_with(&mut self, event: &Event) {
        let (Some(whole), Some(command)) = (&self.whole, &event.metadata.correlation) else { return };
        if command.is_part_of(whole) && *command != self.command {
            self.command = command.clone();
            self.has_begun = false;
            self.is_stopping = false;
        }
    }

    pub(super) fn is_to_be_stopped(&self) -> bool {
        self.has_begun && self.is_unwanted && !self.is_stopping
    }

    /// Prints what code that was typed prints.
    pub(super) fn print(&mut self, stream: OutputStream, text: &str) {
        if self.whole.is_some() {
            return;
        }
        // A terminal that is gone ends the client elsewhere.
        match stream {
            OutputStream::Stdout => {
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
            }
            OutputStream::Stderr => std::io::stderr().write_all(text.as_bytes()).unwrap_or(()),
        }
        self.begun.push(text);
    }

    /// Shows what code that was typed shows, on lines of its own.
    pub(super) fn show(&mut self, display: &Display) {
        if self.whole.is_some() {
            return;
        }
        let text = self.displays.text(display, Surface::stdout());
        if !text.is_empty() {
            self.end_line();
            self.print(OutputStream::Stdout, &text);
        }
        // A line that has no end yet would be written over, and so would a question.
        if !self.begun.is_begun() && self.open_ask().is_none() {
            self.displays.show_status(display);
        }
    }

    /// Whether an event follows from our code or our Ctrl-C.
    pub(super) fn is_own_event(&self, event: &Event) -> bool {
        if self.turn.as_ref().is_some_and(|turn| turn.is_own_event(event)) {
            return true;
        }
        match event.body {
            EventBody::EnvironmentChanged { .. } => true,
            EventBody::CancelRequested { .. } => self.is_unwanted,
            EventBody::WarmUpStarted { .. } | EventBody::WarmUpCompleted { .. } => self.was_killed,
            _ => false,
        }
    }

    /// What follows begins on a line of its own.
    pub(crate) fn end_line(&mut self) {
        self.turn.iter_mut().for_each(AgentTurn::end_line);
        if self.begun.take() {
            println!();
        }
    }

    /// Whether this is what the code has begun to print; then it is no longer.
    pub(crate) fn has_begun_line(&mut self, text: &str) -> bool {
        self.begun.says(text) && self.begun.take()
    }

    /// What the code asks and is to be answered here.
    pub(crate) fn open_ask(&self) -> Option<&Ask> {
        self.asks.open().filter(|_| !self.is_unwanted && !self.is_left_to_others)
    }

    /// Nothing more is asked here.
    pub(crate) fn leave_asks_to_others(&mut self) {
        self.is_left_to_others = true;
    }

    /// What was typed so far of the answer to an ask is kept for when it is asked again.
    pub(crate) fn keep_answer(&mut self, ask: AskId, text: String) {
        self.unsent_answer = Some((ask, text));
    }

    /// What was typed of the answer to this ask before the daemon was lost.
    pub(crate) fn take_kept_answer(&mut self, ask: AskId) -> String {
        let kept = self.unsent_answer.take();
        kept.filter(|(kept, _)| *kept == ask).map_or_else(String::new, |(_, text)| text)
    }

    /// What an earlier daemon was asked to do is lost with it.
    pub(super) fn begin_again(&mut self) {
        self.is_stopping = false;
    }

    /// Answers an ask with what was typed.
    ///
    /// # Errors
    /// As [`OwnAsks::answer`].
    pub(crate) async fn answer(&mut self, client: &Client, ask: AskId, text: &str) -> Result<(), Error> {
        self.asks.answer(client, ask, text).await
    }

    /// Sends the answer that a daemon which was lost may not have taken.
    ///
    /// # Errors
    /// As [`OwnAsks::answer`].
    pub(super) async fn answer_again(&mut self, client: &Client) -> Result<(), Error> {
        self.asks.answer_again(client).await
    }
}

//! Running code that was typed, and cells of another session: output as it comes, Ctrl-C, and what came of it. What is common to that and
//! to what an agent does is here too: following a command to its end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use mainstay_gateway::view::{BroughtView, EvalView, SessionView};
use mainstay_model::ask::{Ask, AskEnding};
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    Admission, AskId, CommandId, Display, Error, EvalEnding, Event, EventBody, OutputStream, Seq,
};
use mainstay_rpc::api::{CancelSession, Cancelling, Eval, GetSession, MergeSession, Sent};
use mainstay_rpc::client::Client;
use tokio::time::sleep;

use super::Repl;
use super::agent_turn::{AgentTurn, typed_ahead};
use crate::commands::exit::own_exit_code;
use crate::commands::merge::{Entries, show_merged};
use crate::link::{SessionUpdate, is_loss};
use crate::own_asks::{AskChange, OwnAsks};
use crate::terminal::{
    DisplaySequence, OpenLine, Paint, ProgressLine, Surface, Tone, eval_summary, note, result_text,
};

/// Code that has not begun after this long is said to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two tries to run code that cannot wait in the session.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What is to be run, under what name.
pub(super) struct Submission {
    command: CommandId,
    work: RunRequest,
}

/// What there is to run.
enum RunRequest {
    /// Code that was typed, or the text of a file.
    Code { code: String, file: Option<String>, withheld: bool },
    /// Cells of another session, one after the other. Each is a part of the command.
    Merge { from: String, entries: Entries },
}

/// What is known of a submission while it runs.
pub(super) struct Progress {
    /// The command that runs, or is the next to run.
    command: CommandId,
    /// The command that it is a part of.
    whole: Option<CommandId>,
    has_begun: bool,
    /// How far the session is that it waits for.
    waits: ProgressLine,
    /// Whether Ctrl-C was pressed.
    is_unwanted: bool,
    /// It has been asked to stop.
    is_stopping: bool,
    was_killed: bool,
    /// What is shown of its output.
    begun: OpenLine,
    displays: DisplaySequence,
    asks: OwnAsks,
    /// Who was asked here leaves the answer to others.
    is_left_to_others: bool,
    /// What is known of it where an agent does it.
    talk: Option<AgentTurn>,
}

impl Submission {
    /// Code that was typed, or the text of a file.
    pub(super) fn new(code: String, file: Option<String>) -> Self {
        Self::of(RunRequest::Code { code, file, withheld: false })
    }

    /// Code that is to be stored nowhere.
    pub(super) fn withheld(code: String) -> Self {
        Self::of(RunRequest::Code { code, file: None, withheld: true })
    }

    /// Cells of another session.
    pub(super) fn merge(from: String, entries: Entries) -> Self {
        Self::of(RunRequest::Merge { from, entries })
    }

    fn of(work: RunRequest) -> Self {
        Self { command: CommandId::from_uuid(uuid::Uuid::now_v7()), work }
    }
}

impl Repl {
    /// Runs code and shows what comes of it. Where the connection is lost meanwhile the same command is given again: it has
    /// one outcome, and runs only if it never began. A merge goes on where it was cut off.
    pub(super) async fn evaluate(&mut self, submission: Submission) -> Result<(), Error> {
        match self.run(&submission).await {
            Err(error) if is_loss(&error) && self.reconnect().await => self.run(&submission).await,
            Err(error @ Error::Cancelled) => {
                eprintln!("{}", Paint::stderr().tone(Tone::Warning, &error.to_string()));
                Ok(())
            }
            done => done,
        }
    }

    /// Runs a cell of a file under its own name; says how it ended.
    pub(super) async fn evaluate_cell(
        &mut self,
        command: CommandId,
        code: String,
        file: String,
    ) -> Result<String, Error> {
        let file = Some(file);
        match self.run_code(&command, &code, file.as_ref()).await {
            Err(error) if is_loss(&error) && self.reconnect().await => {
                self.run_code(&command, &code, file.as_ref()).await
            }
            Err(error @ Error::Cancelled) => {
                eprintln!("{}", Paint::stderr().tone(Tone::Warning, &error.to_string()));
                Ok(EvalEnding::Cancelled.name().to_owned())
            }
            done => done,
        }
    }

    async fn run(&mut self, submission: &Submission) -> Result<(), Error> {
        let Submission { command, work } = submission;
        match work {
            RunRequest::Code { code, withheld: true, .. } => self.run_withheld(command, code).await,
            RunRequest::Code { code, file, .. } => {
                self.run_code(command, code, file.as_ref()).await.map(drop)
            }
            RunRequest::Merge { from, entries } => self.run_merge(command, from, entries).await,
        }
    }

    async fn run_code(
        &mut self,
        command: &CommandId,
        code: &str,
        file: Option<&String>,
    ) -> Result<String, Error> {
        let mut progress = Progress::of(command.clone());
        let client = Arc::clone(&self.link.client);
        let eval = client.call(Eval {
            session: self.link.reference(),
            code: code.to_owned(),
            file: file.cloned(),
            command_line: None,
            withheld: false,
            admission: Admission::Queue,
            sent: Sent::named(command.clone()),
        });
        let eval = self.follow(eval, &mut progress).await?;
        self.observe_until(eval.seq, &mut progress).await;
        let own_exit = own_exit_code(&self.link.client, &eval).await?;
        progress.end_line();
        let ending = eval.ending.clone();
        show(eval, own_exit, code, progress.was_killed);
        self.rebuilt(&progress).await.map(|()| ending)
    }

    /// Code that is stored nowhere cannot wait in the session: it waits here. What it prints comes with its answer.
    async fn run_withheld(&mut self, command: &CommandId, code: &str) -> Result<(), Error> {
        let mut progress = Progress::of(command.clone());
        let client = Arc::clone(&self.link.client);
        let mut is_told = false;
        let eval = loop {
            let eval = client.call(Eval {
                session: self.link.reference(),
                code: code.to_owned(),
                file: None,
                command_line: None,
                withheld: true,
                admission: Admission::Queue,
                sent: Sent::named(command.clone()),
            });
            match self.follow(eval, &mut progress).await {
                Err(Error::Withheld { .. }) if progress.is_unwanted => return Err(Error::Cancelled),
                Err(Error::Withheld { .. }) => {}
                answered => break answered?,
            }
            if !std::mem::replace(&mut is_told, true) {
                note(&self.reason_to_wait());
            }
            let session = client.call(GetSession { session: self.link.reference() }).await?;
            self.settled(&client, session).await?;
            let pause = async {
                sleep(BETWEEN_TRIES).await;
                Ok(())
            };
            self.follow(pause, &mut progress).await?;
        };
        self.observe_until(eval.seq, &mut progress).await;
        let own_exit = own_exit_code(&self.link.client, &eval).await?;
        if eval.replayed {
            note("it has run already, and what it gave is not known any more");
        }
        progress.print(OutputStream::Stdout, &eval.put_out());
        progress.print(OutputStream::Stderr, &eval.stderr);
        progress.end_line();
        show(eval, own_exit, code, progress.was_killed);
        self.rebuilt(&progress).await
    }

    /// What the cells print is shown with what comes of them.
    async fn run_merge(&mut self, command: &CommandId, from: &str, entries: &Entries) -> Result<(), Error> {
        let mut progress = Progress::of_parts(command.clone())?;
        let client = Arc::clone(&self.link.client);
        let merged = client.call(MergeSession {
            session: self.link.reference(),
            command: Some(command.clone()),
            from: from.to_owned(),
            entries: entries.0.clone(),
        });
        let merged = self.follow(merged, &mut progress).await?;
        if let Some(BroughtView { eval, .. }) = merged.ran.last() {
            self.observe_until(eval.seq, &mut progress).await;
        }
        show_merged(&merged);
        self.rebuilt(&progress).await
    }

    /// Observes events up to one: an answer may overtake the last of the output.
    pub(super) async fn observe_until(&mut self, last: Seq, progress: &mut Progress) {
        while self.link.seen() < last {
            let Some(event) = self.link.next().await else { break };
            self.observe(&event, progress);
        }
    }

    pub(super) async fn follow<T>(
        &mut self,
        answer: impl Future<Output = Result<T, Error>>,
        progress: &mut Progress,
    ) -> Result<T, Error> {
        tokio::pin!(answer);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut is_patient = true;
        let client = Arc::clone(&self.link.client);
        let mut warm_up = client.warm_up();
        loop {
            tokio::select! {
                answer = &mut answer => {
                    progress.waits.clear();
                    return answer;
                }
                heard = self.link.hear(), if !self.link.is_lost() => {
                    match (heard, &mut progress.talk) {
                        (Some(SessionUpdate::Event(event)), _) => {
                            self.observe(&event, progress);
                            self.ask_person(progress).await?;
                        }
                        (Some(SessionUpdate::Live(live)), Some(talk)) => talk.hear(&live),
                        (Some(SessionUpdate::Live(_)), None) | (None, _) => {}
                    }
                    if progress.is_to_be_stopped() {
                        self.stop(progress).await;
                    }
                }
                _ = self.interrupts.recv() => {
                    progress.waits.clear();
                    progress.end_line();
                    self.want_stop(progress).await;
                }
                () = typed_ahead(), if progress.can_be_steered() => self.steer_by_line(progress).await?,
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    if !progress.has_begun {
                        note(&self.reason_to_wait());
                    }
                }
                Ok(()) = warm_up.changed(), if !is_patient && !progress.has_begun => {
                    match warm_up.borrow_and_update().and_then(|notice| notice.progress) {
                        Some(far) => progress.waits.show(&far.to_string()),
                        None => progress.waits.clear(),
                    }
                }
            }
        }
    }

    /// Shows what an event has to show: our output as it is, what others do in words.
    pub(super) fn observe(&mut self, event: &Event, progress: &mut Progress) {
        progress.waits.clear();
        progress.go_on_with(event);
        // What code has begun to print may be the question itself; what an agent has begun to say is none.
        if matches!(event.body, EventBody::AskRaised(_)) {
            progress.talk.iter_mut().for_each(AgentTurn::end_line);
        }
        let news = progress.asks.observe(event, &progress.command);
        // Word of our own answer may come behind what the agent has begun to say to it.
        if matches!(event.body, EventBody::AskEnded { .. }) && !matches!(news, Some(AskChange::Answered)) {
            progress.talk.iter_mut().for_each(AgentTurn::end_line);
        }
        match news {
            Some(AskChange::Raised | AskChange::Answered) => return,
            Some(AskChange::Ended) if is_cancelled(event) => return,
            Some(AskChange::Ended) | None => {}
        }
        if event.metadata.correlation.as_ref() != Some(&progress.command) {
            if !progress.is_our_doing(event) {
                progress.end_line();
                self.hear(event);
                self.tell_heard();
            }
            return;
        }
        if let Some(talk) = &mut progress.talk {
            talk.observe(event);
            progress.has_begun |= talk.has_begun();
            return;
        }
        progress.displays.clear_status();
        match &event.body {
            EventBody::EvalRequested { .. } => progress.has_begun = true,
            EventBody::OutputProduced { stream, text, .. } => progress.print(*stream, text),
            EventBody::OutputDisplayed { display, .. } if display.is_put_out() => {
                progress.show(display);
            }
            // What stands on a terminal stays; what takes its place begins on a line of its own.
            EventBody::OutputCleared { .. } => progress.end_line(),
            EventBody::EvalCancelled { ending: CancelEnding::Killed, .. } => progress.was_killed = true,
            _ => {}
        }
    }

    /// Reacts to Ctrl-C while code runs.
    pub(super) async fn want_stop(&mut self, progress: &mut Progress) {
        progress.is_unwanted = true;
        self.stop(progress).await;
    }

    /// Stops our code, or takes it back where it waits for its turn; never somebody else's.
    async fn stop(&mut self, progress: &mut Progress) {
        let target = Some(progress.command.clone());
        let cancel = CancelSession { session: self.link.reference(), target, sent: Sent::default() };
        match self.link.client.call(cancel).await {
            Ok(Cancelling { job: Some(_), .. }) => {
                progress.is_stopping = true;
                note("cancelling …");
            }
            // Its own answer says that it does not run.
            Ok(Cancelling { job: None, .. }) => {}
            // It has just ended, or is on its way to the session: then it is stopped when it begins.
            Err(Error::NotRunning { .. }) => {}
            Err(error) if is_loss(&error) => {}
            Err(error) => crate::terminal::show_error(&error),
        }
    }

    fn reason_to_wait(&self) -> String {
        match self.guests.running() {
            Some(name) => format!("waits for the code of {name} to end …"),
            None => "waits for the session to be ready …".to_owned(),
        }
    }

    /// Waits until a session whose worker was killed has its definitions again.
    async fn rebuilt(&mut self, progress: &Progress) -> Result<(), Error> {
        if !progress.was_killed {
            return Ok(());
        }
        self.settle().await?;
        note("the session is rebuilt from its earlier definitions");
        Ok(())
    }
}

impl Progress {
    /// Nothing is known yet of this command.
    fn of(command: CommandId) -> Self {
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
            talk: None,
        }
    }

    /// Nothing is known yet of this command of the agent of this session.
    pub(super) fn of_talk(command: CommandId, session: &SessionView) -> Self {
        Self { talk: Some(AgentTurn::new(session)), ..Self::of(command) }
    }

    pub(super) fn command(&self) -> &CommandId {
        &self.command
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn talk(&mut self) -> Option<&mut AgentTurn> {
        self.talk.as_mut()
    }

    /// Whether an agent works on it that can be told something meanwhile.
    fn can_be_steered(&self) -> bool {
        !self.is_unwanted && self.talk.as_ref().is_some_and(AgentTurn::can_be_steered)
    }

    /// Nothing is known yet of the parts of this command.
    fn of_parts(whole: CommandId) -> Result<Self, Error> {
        Ok(Self { whole: Some(whole.clone()), ..Self::of(whole.part(1)?) })
    }

    /// Where an event is of the next part of the command, it is that which runs, or waits for its turn.
    fn go_on_with(&mut self, event: &Event) {
        let (Some(whole), Some(command)) = (&self.whole, &event.metadata.correlation) else { return };
        if command.is_part_of(whole) && *command != self.command {
            self.command = command.clone();
            self.has_begun = false;
            self.is_stopping = false;
        }
    }

    fn is_to_be_stopped(&self) -> bool {
        self.has_begun && self.is_unwanted && !self.is_stopping
    }

    /// Prints what code that was typed prints.
    fn print(&mut self, stream: OutputStream, text: &str) {
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
    fn show(&mut self, display: &Display) {
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
    fn is_our_doing(&self, event: &Event) -> bool {
        if self.talk.as_ref().is_some_and(|talk| talk.is_our_doing(event)) {
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
    pub(super) fn end_line(&mut self) {
        self.talk.iter_mut().for_each(AgentTurn::end_line);
        if self.begun.take() {
            println!();
        }
    }

    /// Whether this is what the code has begun to print; then it is no longer.
    pub(super) fn has_begun_line(&mut self, text: &str) -> bool {
        self.begun.says(text) && self.begun.take()
    }

    /// What the code asks and is to be answered here.
    pub(super) fn open_ask(&self) -> Option<&Ask> {
        self.asks.open().filter(|_| !self.is_unwanted && !self.is_left_to_others)
    }

    /// Nothing more is asked here.
    pub(super) fn leave_asks_to_others(&mut self) {
        self.is_left_to_others = true;
    }

    /// Answers an ask with what was typed.
    ///
    /// # Errors
    /// As [`OwnAsks::answer`].
    pub(super) async fn answer(&mut self, client: &Client, ask: AskId, text: &str) -> Result<(), Error> {
        self.asks.answer(client, ask, text).await
    }
}

/// Whether it says that an ask ended because its code did; what came of that is told as such.
fn is_cancelled(event: &Event) -> bool {
    matches!(event.body, EventBody::AskEnded { ending: AskEnding::Cancelled, .. })
}

/// What came of an eval, beside what it printed.
fn show(mut eval: EvalView, own_exit: Option<i32>, code: &str, was_killed: bool) {
    print!("{}", result_text(&eval, Surface::stdout()));
    let paint = Paint::stderr();
    if eval.ending == EvalEnding::Cancelled.name() {
        eval.error = None;
        let how = if was_killed { "cancelled; the worker had to be killed" } else { "cancelled" };
        eprintln!("{}", paint.tone(Tone::Warning, how));
    }
    eprint!("{}", eval_summary(&eval, own_exit, code, paint));
}

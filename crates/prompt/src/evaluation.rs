//! Running code that was typed, and cells of another session: output as it comes, Ctrl-C, and what came of it. What is common to that and
//! to what an agent does is here too: following a command to its end.

mod progress;

use std::sync::Arc;
use std::time::Duration;

use mainstay_model::ask::AskEnding;
use mainstay_model::event::CancelEnding;
use mainstay_model::{Admission, CommandId, Error, EvalEnding, Event, EventBody, OutputStream, Seq};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CancelSession, Cancelling, Eval, GetSession, MergeSession};
use mainstay_protocol::view::{BroughtView, EvalView};
use mainstay_terminal::{Paint, Surface, Tone, eval_summary, note, result_text};
use mainstay_terminal_client::connect::MOST_LOSSES;
use mainstay_terminal_client::exit::own_exit_code;
use mainstay_terminal_client::link::{SessionUpdate, is_loss};
use mainstay_terminal_client::merge::{Entries, show_merged};
use mainstay_terminal_client::own_asks::AskChange;
use tokio::time::sleep;

use crate::agent_turn::{AgentTurn, typed_ahead};
use crate::prompt_loop::PromptLoop;

pub(crate) use self::progress::Progress;

/// Code that has not begun after this long is said to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two tries to run code that cannot wait in the session.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What is to be run, under what name.
pub(crate) struct Submission {
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

impl Submission {
    /// Code that was typed, or the text of a file.
    pub(crate) fn new(code: String, file: Option<String>) -> Self {
        Self::of(RunRequest::Code { code, file, withheld: false })
    }

    /// Code that is to be stored nowhere.
    pub(crate) fn withheld(code: String) -> Self {
        Self::of(RunRequest::Code { code, file: None, withheld: true })
    }

    /// Cells of another session.
    pub(crate) fn merge(from: String, entries: Entries) -> Self {
        Self::of(RunRequest::Merge { from, entries })
    }

    fn of(work: RunRequest) -> Self {
        Self { command: CommandId::from_uuid(uuid::Uuid::now_v7()), work }
    }

    /// Nothing is known yet of how far it is.
    fn progress(&self) -> Result<Progress, Error> {
        match self.work {
            RunRequest::Code { .. } => Ok(Progress::of(self.command.clone())),
            RunRequest::Merge { .. } => Progress::of_parts(self.command.clone()),
        }
    }
}

impl PromptLoop {
    /// Runs code and shows what comes of it. Where a daemon is lost meanwhile the same command is given again: it has one outcome, and
    /// runs only if it never began. A merge goes on where it was cut off.
    pub(crate) async fn evaluate(&mut self, submission: Submission) -> Result<(), Error> {
        let mut progress = submission.progress()?;
        let run = async |prompt: &mut Self, progress: &mut Progress| prompt.run(&submission, progress).await;
        match self.over_losses(&mut progress, run).await {
            Ok(()) => self.rebuilt(&progress).await,
            Err(error) => tell_cancelled(error),
        }
    }

    /// Runs a cell of a file under its own name; says how it ended.
    pub(crate) async fn evaluate_cell(
        &mut self,
        command: CommandId,
        code: String,
        file: String,
    ) -> Result<String, Error> {
        let file = Some(file);
        let mut progress = Progress::of(command);
        let run = async |prompt: &mut Self, progress: &mut Progress| {
            prompt.run_code(&code, file.as_ref(), progress).await
        };
        match self.over_losses(&mut progress, run).await {
            Ok(ending) => self.rebuilt(&progress).await.map(|()| ending),
            Err(error) => tell_cancelled(error).map(|()| EvalEnding::Cancelled.name().to_owned()),
        }
    }

    /// Has something done, and done again with the next daemon where one is lost meanwhile; `progress` is what is known of it all the
    /// while.
    pub(crate) async fn over_losses<T>(
        &mut self,
        progress: &mut Progress,
        mut run: impl AsyncFnMut(&mut Self, &mut Progress) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut losses = 0;
        loop {
            let ran = run(self, progress).await;
            if losses == MOST_LOSSES || !ran.as_ref().is_err_and(is_loss) {
                return ran;
            }
            losses += 1;
            if ran.as_ref().is_err_and(|error| *error == Error::DaemonStopping) {
                self.observe_until_lost(progress).await;
            }
            progress.end_line();
            if !self.reconnect().await {
                return ran;
            }
            progress.begin_again();
        }
    }

    /// A daemon that stops answers nothing more, but may still say what happens.
    async fn observe_until_lost(&mut self, progress: &mut Progress) {
        loop {
            tokio::select! {
                event = self.link.next(), if !self.link.is_lost() => match event {
                    Some(event) => self.observe(&event, progress),
                    None => return,
                },
                _ = self.interrupts.recv() => return,
            }
        }
    }

    async fn run(&mut self, submission: &Submission, progress: &mut Progress) -> Result<(), Error> {
        let Submission { command, work } = submission;
        match work {
            RunRequest::Code { code, withheld: true, .. } => self.run_withheld(code, progress).await,
            RunRequest::Code { code, file, .. } => {
                self.run_code(code, file.as_ref(), progress).await.map(drop)
            }
            RunRequest::Merge { from, entries } => self.run_merge(command, from, entries, progress).await,
        }
    }

    async fn run_code(
        &mut self,
        code: &str,
        file: Option<&String>,
        progress: &mut Progress,
    ) -> Result<String, Error> {
        let client = Arc::clone(&self.link.client);
        let eval = client.call(Eval {
            session: self.link.reference(),
            code: code.to_owned(),
            file: file.cloned(),
            command_line: None,
            withheld: false,
            admission: Admission::Queue,
            sent: Sent::named(progress.command().clone()),
        });
        let eval = self.follow(eval, progress).await?;
        self.observe_until(eval.seq, progress).await;
        let own_exit = own_exit_code(&self.link.client, &eval).await?;
        progress.end_line();
        let ending = eval.ending.clone();
        show(eval, own_exit, code, progress.was_killed);
        Ok(ending)
    }

    /// Code that is stored nowhere cannot wait in the session: it waits here. What it prints comes with its answer.
    async fn run_withheld(&mut self, code: &str, progress: &mut Progress) -> Result<(), Error> {
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
                sent: Sent::named(progress.command().clone()),
            });
            match self.follow(eval, progress).await {
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
            self.follow(pause, progress).await?;
        };
        self.observe_until(eval.seq, progress).await;
        let own_exit = own_exit_code(&self.link.client, &eval).await?;
        if eval.replayed {
            note("it has run already, and what it gave is not known any more");
        }
        progress.print(OutputStream::Stdout, &eval.put_out());
        progress.print(OutputStream::Stderr, &eval.stderr);
        progress.end_line();
        show(eval, own_exit, code, progress.was_killed);
        Ok(())
    }

    /// What the cells print is shown with what comes of them.
    async fn run_merge(
        &mut self,
        command: &CommandId,
        from: &str,
        entries: &Entries,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let client = Arc::clone(&self.link.client);
        let merged = client.call(MergeSession {
            session: self.link.reference(),
            command: Some(command.clone()),
            from: from.to_owned(),
            entries: entries.0.clone(),
        });
        let merged = self.follow(merged, progress).await?;
        if let Some(BroughtView { eval, .. }) = merged.ran.last() {
            self.observe_until(eval.seq, progress).await;
        }
        show_merged(&merged);
        Ok(())
    }

    /// Observes events up to one: an answer may overtake the last of the output. What a daemon that is lost has not told, the next one does.
    pub(crate) async fn observe_until(&mut self, last: Seq, progress: &mut Progress) {
        while self.link.seen() < last {
            if let Some(event) = self.link.next().await {
                self.observe(&event, progress);
                continue;
            }
            progress.end_line();
            if !self.reconnect().await {
                return;
            }
        }
    }

    /// What is still to be done after a daemon was lost: what it may not have taken, a question that stands, a Ctrl-C.
    async fn take_up(&mut self, progress: &mut Progress) -> Result<(), Error> {
        if progress.is_to_be_stopped() {
            self.stop(progress).await;
        }
        match progress.answer_again(&self.link.client).await {
            Err(error) if is_loss(&error) => return Err(error),
            Err(error) => mainstay_terminal::show_error(&error),
            Ok(()) => {}
        }
        if let Some(turn) = progress.turn() {
            self.steer_again(turn).await?;
        }
        self.ask_person(progress).await
    }

    /// Waits for the answer to something, and shows meanwhile what happens.
    pub(crate) async fn follow<T>(
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
        self.take_up(progress).await?;
        loop {
            tokio::select! {
                answer = &mut answer => {
                    progress.waits.clear();
                    return answer;
                }
                heard = self.link.hear(), if !self.link.is_lost() => {
                    match (heard, &mut progress.turn) {
                        (Some(SessionUpdate::Event(event)), _) => {
                            self.observe(&event, progress);
                            self.ask_person(progress).await?;
                        }
                        (Some(SessionUpdate::Live(live)), Some(turn)) => turn.hear(&live),
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
                () = typed_ahead(), if progress.can_be_steered() && !self.link.is_lost() => self.steer_by_line(progress).await?,
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
    pub(crate) fn observe(&mut self, event: &Event, progress: &mut Progress) {
        progress.waits.clear();
        progress.go_on_with(event);
        // What code has begun to print may be the question itself; what an agent has begun to say is none.
        if matches!(event.body, EventBody::AskRaised(_)) {
            progress.turn.iter_mut().for_each(AgentTurn::end_line);
        }
        let news = progress.asks.observe(event, &progress.command);
        // Word of our own answer may come behind what the agent has begun to say to it.
        if matches!(event.body, EventBody::AskEnded { .. }) && !matches!(news, Some(AskChange::Answered)) {
            progress.turn.iter_mut().for_each(AgentTurn::end_line);
        }
        match news {
            Some(AskChange::Raised | AskChange::Answered) => return,
            Some(AskChange::Ended) if is_cancelled(event) => return,
            Some(AskChange::Ended | AskChange::Voted) | None => {}
        }
        if event.metadata.correlation.as_ref() != Some(&progress.command) {
            if !progress.is_own_event(event) {
                progress.end_line();
                self.hear(event);
                self.show_pending_text();
            }
            return;
        }
        if let Some(turn) = &mut progress.turn {
            turn.observe(event);
            progress.has_begun |= turn.has_begun();
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
    pub(crate) async fn want_stop(&mut self, progress: &mut Progress) {
        progress.is_unwanted = true;
        self.stop(progress).await;
    }

    /// Stops our code, or takes it back where it waits for its turn; never somebody else's.
    async fn stop(&mut self, progress: &mut Progress) {
        let target = Some(progress.command.clone());
        let cancel =
            CancelSession { session: self.link.reference(), target, grace_ms: None, sent: Sent::default() };
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
            Err(error) => mainstay_terminal::show_error(&error),
        }
    }

    fn reason_to_wait(&self) -> String {
        match self.other_clients.running() {
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

/// Says that it was cancelled, where that is why nothing came of it.
pub(crate) fn tell_cancelled(error: Error) -> Result<(), Error> {
    if error != Error::Cancelled {
        return Err(error);
    }
    eprintln!("{}", Paint::stderr().tone(Tone::Warning, &error.to_string()));
    Ok(())
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

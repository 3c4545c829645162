//! Running code: its output as it comes, Ctrl-C, and what came of it.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use mainstay_gateway::rpc::api::{CancelSession, Cancelling, Conditions, Eval};
use mainstay_gateway::view::EvalView;
use mainstay_model::event::CancelEnding;
use mainstay_model::{Admission, CommandId, Error, EvalEnding, Event, EventBody, OutputStream};
use tokio::time::sleep;

use super::{Repl, is_loss};
use crate::commands::exit::own_exit_code;
use crate::terminal::{Paint, Tone, eval_summary, note, printable};

/// Code that has not begun after this long is said to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Code to run.
pub(super) struct Submission {
    command: CommandId,
    code: String,
    file: Option<String>,
}

/// What is known of a submission while it runs.
#[derive(Default)]
struct Progress {
    has_begun: bool,
    /// Ctrl-C was pressed.
    is_unwanted: bool,
    /// It has been asked to stop.
    is_stopping: bool,
    was_killed: bool,
    is_inside_line: bool,
}

impl Submission {
    /// Code that was typed, or the text of a file.
    pub(super) fn new(code: String, file: Option<String>) -> Self {
        let command = CommandId::from_uuid(uuid::Uuid::now_v7());
        Self { command, code, file }
    }
}

impl Repl {
    /// Runs code and shows what comes of it. Where the connection is lost meanwhile the same command is given again: it has
    /// one outcome, and runs only if it never began.
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

    async fn run(&mut self, submission: &Submission) -> Result<(), Error> {
        let mut progress = Progress::default();
        let eval = self.follow(submission, &mut progress).await?;
        // The answer may overtake the last of the output.
        while self.link.seen() < eval.seq {
            let Some(event) = self.link.next().await else { break };
            self.observe(&event, submission, &mut progress);
        }
        let own_exit = own_exit_code(&self.link.client, &eval).await?;
        progress.end_line();
        show(eval, own_exit, &submission.code, progress.was_killed);
        if progress.was_killed { self.rebuilt().await } else { Ok(()) }
    }

    async fn follow(&mut self, submission: &Submission, progress: &mut Progress) -> Result<EvalView, Error> {
        let client = Arc::clone(&self.link.client);
        let answer = client.call(Eval {
            session: self.link.reference(),
            command: Some(submission.command.clone()),
            code: submission.code.clone(),
            file: submission.file.clone(),
            admission: Admission::Queue,
            conditions: Conditions::default(),
        });
        tokio::pin!(answer);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut is_patient = true;
        loop {
            tokio::select! {
                eval = &mut answer => return eval,
                event = self.link.next(), if !self.link.is_lost() => {
                    if let Some(event) = event {
                        self.observe(&event, submission, progress);
                    }
                    if progress.is_to_be_stopped() {
                        self.stop(submission, progress).await;
                    }
                }
                _ = self.interrupts.recv() => {
                    progress.end_line();
                    progress.is_unwanted = true;
                    self.stop(submission, progress).await;
                }
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    if !progress.has_begun {
                        note(&self.reason_to_wait());
                    }
                }
            }
        }
    }

    /// Shows what an event has to show: our output as it is, what others do in words.
    fn observe(&mut self, event: &Event, submission: &Submission, progress: &mut Progress) {
        if event.metadata.correlation.as_ref() != Some(&submission.command) {
            if !progress.is_our_doing(event) {
                progress.end_line();
                self.hear(event);
                self.tell_heard();
            }
            return;
        }
        match &event.body {
            EventBody::EvalRequested { .. } => progress.has_begun = true,
            EventBody::OutputProduced { stream, text, .. } => progress.print(*stream, text),
            EventBody::EvalCancelled { ending: CancelEnding::Killed, .. } => progress.was_killed = true,
            _ => {}
        }
    }

    /// Ctrl-C: stops our code, or takes it back where it waits for its turn; never somebody else's.
    async fn stop(&mut self, submission: &Submission, progress: &mut Progress) {
        let command = Some(submission.command.clone());
        match self.link.client.call(CancelSession { session: self.link.reference(), command }).await {
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
    async fn rebuilt(&mut self) -> Result<(), Error> {
        self.settle().await?;
        note("the session is rebuilt from its earlier definitions");
        Ok(())
    }
}

impl Progress {
    fn is_to_be_stopped(&self) -> bool {
        self.has_begun && self.is_unwanted && !self.is_stopping
    }

    fn print(&mut self, stream: OutputStream, text: &str) {
        // A terminal that is gone ends the client elsewhere.
        match stream {
            OutputStream::Stdout => {
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
            }
            OutputStream::Stderr => std::io::stderr().write_all(text.as_bytes()).unwrap_or(()),
        }
        self.is_inside_line = !text.ends_with('\n');
    }

    /// Whether an event follows from our Ctrl-C.
    fn is_our_doing(&self, event: &Event) -> bool {
        match event.body {
            EventBody::CancelRequested { .. } => self.is_unwanted,
            EventBody::WarmUpStarted { .. } | EventBody::WarmUpCompleted { .. } => self.was_killed,
            _ => false,
        }
    }

    /// What follows begins on a line of its own.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_inside_line) {
            println!();
        }
    }
}

/// What came of an eval, beside what it printed.
fn show(mut eval: EvalView, own_exit: Option<i32>, code: &str, was_killed: bool) {
    if !eval.display.trim().is_empty() {
        println!("{}", printable(eval.display.trim_end()));
    }
    let paint = Paint::stderr();
    if eval.ending == EvalEnding::Cancelled.name() {
        eval.error = None;
        let how = if was_killed { "cancelled; the worker had to be killed" } else { "cancelled" };
        eprintln!("{}", paint.tone(Tone::Warning, how));
    }
    eprint!("{}", eval_summary(&eval, own_exit, code, paint));
}

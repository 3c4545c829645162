//! The loop of the prompt: read, carry out, read again.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{Divergence, Error, Event, EventBody, JobSpec, Seq, SessionId, Timestamp, WarmUpReason};
use mainstay_protocol::operations::GetSession;
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Paint, Tone, note, printable};
use mainstay_terminal_client::connect::Connection;
use mainstay_terminal_client::fault::{HardReset, fault_text, show_refusal};
use mainstay_terminal_client::link::{Link, is_loss};
use mainstay_terminal_client::sessions::{bring_into_use, settle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::command::{Command, PromptLanguage};
use crate::completion::{CompletionContext, Source};
use crate::echo_off::EchoOff;
use crate::editor::{Editor, ReadResult, Reading, Typed};
use crate::evaluation::Submission;
use crate::history_cache::{HistoryCache, is_secret};
use crate::line_prompt::{Bell, LinePrompt};
use crate::other_clients::OtherClients;

/// What the daemon knows this client as.
pub(crate) const CLIENT_NAME: &str = "terminal";
/// What others do is gathered this long before it interrupts someone who types.
const GATHER: Duration = Duration::from_millis(150);

/// Attaches a person to a session, until they leave.
///
/// # Errors
/// Standard output is no terminal, or the session cannot be followed.
pub async fn run(home: &Home, connection: Connection, session: SessionView) -> Result<ExitCode, Error> {
    if !std::io::stdout().is_terminal() {
        return Err(no_terminal(&std::io::Error::other(
            "standard output is none; pipe a script in, or use `mainstay eval`",
        )));
    }
    let link = Link::open(connection, session).await?;
    let mut prompt = PromptLoop::new(home, link).map_err(|error| no_terminal(&error))?;
    prompt.greet();
    while let Some(text) = prompt.read().await.map_err(|error| no_terminal(&error))? {
        let prompt_language = prompt.prompt_language();
        match (crate::command::read(&text, prompt_language), prompt_language) {
            (Some(Ok(Command::Quit)), _) => break,
            (Some(Ok(command)), _) => prompt.carry_out(Input::Command(command)).await,
            (Some(Err(error)), _) => {
                eprintln!("{}", Paint::stderr().tone(Tone::Error, &printable(&error.to_string())))
            }
            (None, PromptLanguage::Fsharp | PromptLanguage::Foreign) if is_secret(&text) => {
                prompt.carry_out(Input::Withheld(text.trim().to_owned())).await;
            }
            (None, PromptLanguage::Fsharp | PromptLanguage::Foreign) => {
                prompt.carry_out(Input::Code(text.trim_end().to_owned())).await
            }
            (None, PromptLanguage::Words) if is_secret(&text) => {
                note("it was not sent: all that is said to an agent is stored, also behind a blank");
            }
            (None, PromptLanguage::Words) => {
                prompt.carry_out(Input::Work(crate::agent_turn::work_from_text(&text))).await
            }
        }
    }
    prompt.update_history();
    prompt.history.finish().await;
    if !prompt.link.is_deleted() {
        note(&format!(
            "left {}; it goes on, and `mainstay` attaches to it again",
            printable(&prompt.link.session.name)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn no_terminal(error: &std::io::Error) -> Error {
    Error::InvalidArgument { argument: "terminal".to_owned(), reason: error.to_string() }
}

/// What the user typed at the prompt.
pub(crate) enum Input {
    Command(Command),
    Code(String),
    /// Code that is to be stored nowhere.
    Withheld(String),
    /// Something for an agent.
    Work(JobSpec),
}

/// A person at a terminal.
pub(crate) struct PromptLoop {
    pub(crate) home: Home,
    pub(crate) link: Link,
    pub(crate) editor: Editor,
    pub(crate) history: HistoryCache,
    pub(crate) source: Source,
    pub(crate) other_clients: OtherClients,
    /// What others did, not yet shown.
    pub(crate) pending_text: String,
    /// What was typed and not sent: it stands in the next line.
    pub(crate) unsent_text: String,
    /// The sessions that were listed last, by whose numbers they can be switched to.
    pub(crate) listed: Vec<SessionId>,
    /// Ctrl-C while the editor does not read.
    pub(crate) interrupts: Signal,
    /// The agent starts, which is not told.
    pub(crate) is_starting: bool,
    /// The daemon was stopped, or cannot be reached; the next input tries again.
    pub(crate) is_disconnected: bool,
    pub(crate) paint: Paint,
    /// Dropped last: then the terminal is as it was.
    pub(crate) echo_off: Option<EchoOff>,
}

impl PromptLoop {
    pub(crate) fn new(home: &Home, link: Link) -> std::io::Result<Self> {
        let (paint, source) = (Paint::stdout(), Source::default());
        let history = HistoryCache::open(home);
        let mut prompt = Self {
            home: home.clone(),
            editor: Editor::new(&link.session, history.clone(), Arc::clone(&source), paint)?,
            history,
            other_clients: OtherClients::new(paint),
            link,
            source,
            pending_text: String::new(),
            unsent_text: String::new(),
            listed: Vec::new(),
            interrupts: signal(SignalKind::interrupt())?,
            is_starting: false,
            is_disconnected: false,
            paint,
            echo_off: EchoOff::begin(),
        };
        prompt.update_source();
        Ok(prompt)
    }

    pub(crate) fn greet(&self) {
        print!("{}", crate::banner::banner(&self.link.session, self.paint, Timestamp::now()));
    }

    /// What is typed in this session.
    pub(crate) fn prompt_language(&self) -> PromptLanguage {
        PromptLanguage::of(&self.link.session.kind)
    }

    /// Goes over to another session.
    pub(crate) fn attach(&mut self, link: Link) -> std::io::Result<()> {
        let before = std::mem::replace(&mut self.link, link);
        let (now, before) = (&self.link.session, &before.session);
        if (&now.kind, &now.language) != (&before.kind, &before.language) {
            let (history, source) = (self.history.clone(), Arc::clone(&self.source));
            self.editor = Editor::new(now, history, source, self.paint)?;
        }
        self.other_clients = OtherClients::new(self.paint);
        self.update_source();
        self.greet();
        Ok(())
    }

    /// Reads until something was typed; none when the person leaves.
    pub(crate) async fn read(&mut self) -> std::io::Result<Option<String>> {
        loop {
            if self.link.is_deleted() {
                note("the session was deleted; `mainstay` opens another");
                return Ok(None);
            }
            if self.link.is_lost() && !self.is_disconnected {
                self.reconnect().await;
            }
            self.update_history();
            let prompt = LinePrompt::session(&self.link.session.name).searching(self.history.is_elsewhere());
            let unsent_text = std::mem::take(&mut self.unsent_text);
            if !unsent_text.is_empty() {
                self.editor.put(unsent_text)?;
            }
            let mut reading = self.editor.read(prompt)?;
            let hear = |prompt: &mut Self, event: Event| {
                prompt.hear(&event);
                !prompt.pending_text.is_empty()
            };
            let done = self.listen(&mut reading, &self.editor.bell(), hear).await;
            let typed = self.editor.finish(done, reading.prompt())?;
            self.show_pending_text();
            match typed {
                Typed::Text(text) if text.trim().is_empty() => {}
                Typed::Text(text) => {
                    if !is_secret(&text) {
                        self.history.add(text.trim_end(), self.link.session.session);
                    }
                    return Ok(Some(text));
                }
                Typed::Dropped | Typed::Interrupted => {}
                Typed::End => return Ok(None),
            }
        }
    }

    /// Hears what happens while someone types, and interrupts them for it now and then. `take` says whether there is something
    /// to show.
    pub(crate) async fn listen(
        &mut self,
        reading: &mut Reading,
        bell: &Bell,
        mut take: impl FnMut(&mut Self, Event) -> bool,
    ) -> ReadResult {
        let mut ring_at = None;
        loop {
            tokio::select! {
                done = reading.done() => return done,
                event = self.link.next(), if !self.link.is_lost() => {
                    let is_worth_it = match event {
                        Some(event) => take(self, event),
                        None => {
                            bell.ring();
                            false
                        }
                    };
                    self.update_source();
                    if is_worth_it {
                        ring_at.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                }
                () = sleep_until(ring_at.unwrap_or_else(Instant::now)), if ring_at.is_some() => {
                    bell.ring();
                    ring_at = None;
                }
            }
        }
    }

    pub(crate) async fn carry_out(&mut self, input: Input) {
        self.forget_interrupt().await;
        if self.is_disconnected && !self.reconnect().await {
            return;
        }
        let done = match input {
            Input::Command(command) => self.act(command).await,
            Input::Withheld(code) => self.evaluate(Submission::withheld(code)).await,
            Input::Code(code) => self.evaluate(Submission::new(code, None)).await,
            Input::Work(work) => self.do_work(work).await,
        };
        match done {
            // The lost connection is spoken of before the next prompt.
            Err(error) if is_loss(&error) && self.link.is_lost() => {}
            Err(error) => {
                show_refusal(&self.link.client, &self.link.reference(), HardReset::Prompt, &error).await;
            }
            Ok(()) => {}
        }
        self.update_source();
    }

    /// A Ctrl-C that came too late for what it was meant for.
    pub(crate) async fn forget_interrupt(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupts.recv() => {}
            () = std::future::ready(()) => {}
        }
    }

    /// Keeps what others do until it can be shown.
    pub(crate) fn hear(&mut self, event: &Event) {
        if self.is_agents_start(event) {
            return;
        }
        let text = self.other_clients.show(event);
        self.pending_text.push_str(&text);
    }

    /// Whether an agent only starts, which it does when something is wanted of it, if no more than the names of its commands.
    pub(crate) fn is_agents_start(&mut self, event: &Event) -> bool {
        match &event.body {
            EventBody::WarmUpStarted { reason } => {
                self.is_starting =
                    *reason == WarmUpReason::Started && self.prompt_language() == PromptLanguage::Words;
                self.is_starting
            }
            EventBody::WarmUpCompleted { .. } => std::mem::take(&mut self.is_starting),
            _ => false,
        }
    }

    pub(crate) fn show_pending_text(&mut self) {
        let mut out = std::io::stdout();
        // A terminal that is gone ends the client at the next prompt.
        out.write_all(std::mem::take(&mut self.pending_text).as_bytes()).and_then(|()| out.flush()).ok();
    }

    /// Waits until the session takes commands again, after something that we did to it.
    pub(crate) async fn settle(&mut self) -> Result<(), Error> {
        let client = Arc::clone(&self.link.client);
        let session = client.call(GetSession { session: self.link.reference() }).await?;
        let session = self.settled(&client, session).await?;
        self.catch_up(session.last_seq).await;
        eprint!("{}", fault_text(&session, HardReset::Prompt, Paint::stderr()).unwrap_or_default());
        self.link.session = session;
        Ok(())
    }

    /// Waits until a session takes commands, or Ctrl-C.
    pub(crate) async fn settled(
        &mut self,
        client: &Client,
        session: SessionView,
    ) -> Result<SessionView, Error> {
        let reference = session.session.to_string();
        self.unless_interrupted(client, reference, settle(client, session)).await
    }

    /// Waits until a session can be used, or Ctrl-C.
    pub(crate) async fn in_use(
        &mut self,
        client: &Client,
        session: SessionView,
    ) -> Result<SessionView, Error> {
        let reference = session.session.to_string();
        self.unless_interrupted(client, reference, bring_into_use(client, session)).await
    }

    pub(crate) async fn unless_interrupted(
        &mut self,
        client: &Client,
        reference: String,
        settled: impl Future<Output = Result<SessionView, Error>>,
    ) -> Result<SessionView, Error> {
        tokio::select! {
            settled = settled => settled,
            _ = self.interrupts.recv() => {
                note("it goes on without you; code waits until it is ready");
                client.call(GetSession { session: reference }).await
            }
        }
    }

    /// Takes in events up to one; what we did ourselves is not told.
    pub(crate) async fn catch_up(&mut self, last: Seq) {
        while self.link.seen() < last {
            let Some(event) = self.link.next().await else { return };
            let is_ours = matches!(
                event.body,
                EventBody::SessionReset
                    | EventBody::SessionHardReset
                    | EventBody::SessionForked(_)
                    | EventBody::EntriesMerged(_)
                    | EventBody::SessionImported { .. }
                    | EventBody::SessionRenamed { .. }
                    | EventBody::SessionStopped
                    | EventBody::SessionDeleted
                    | EventBody::WarmUpStarted { .. }
                    | EventBody::TranscriptCompacted(_)
                    | EventBody::EntryLabeled { .. }
            );
            // That the definitions are other ones now is told, and what came of a reload.
            let is_sound = matches!(
                &event.body,
                EventBody::WarmUpCompleted { diverged, reload: None, .. } if !diverged.iter().any(Divergence::is_told)
            );
            if !is_ours && !is_sound {
                self.hear(&event);
            }
        }
        self.show_pending_text();
    }

    /// What was submitted before is known for this session's folder, as the daemon has it now.
    pub(crate) fn update_history(&self) {
        let client = if self.link.is_lost() { None } else { Some(Arc::clone(&self.link.client)) };
        self.history.go_on(&self.link.session.working_directory, client);
    }

    /// Completions are for this session as it is now.
    pub(crate) fn update_source(&mut self) {
        let asked = CompletionContext {
            client: Arc::clone(&self.link.client),
            session: self.link.session.session,
            folder: PathBuf::from(&self.link.session.working_directory),
            as_of: self.link.seen(),
        };
        let source = if self.link.is_lost() { None } else { Some(asked) };
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = source;
    }
}

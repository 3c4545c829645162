//! What Tab proposes: names in code, asked of the daemon, commands, and what follows a command; to an agent its own commands, skills and prompts,
//! and files.
//!
//! The editor waits a moment for the answer, and goes on without it if it takes longer; the menu then opens when it comes.

mod code;
mod commands;
mod entries;
mod files;
mod proposal;
mod rows;
mod sessions;
mod target;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use mainstay_client::Client;
use mainstay_model::{Error, Role, Seq, SessionId};
use mainstay_protocol::view::EntryView;
use reedline::{Completer, CompletionResult, CompletionStatus};
use tokio::runtime::Handle;
use tokio::time::timeout;

use self::code::names;
use self::commands::{agent_commands, commands, is_of_agent};
use self::entries::{entries, last_number};
use self::files::files;
use self::proposal::{Choice, Proposal, is_name_part, narrowed};
use self::rows::fresh;
use self::sessions::{all_sessions, named_in, sessions};
use self::target::{CompletionTarget, sought};
use crate::command::PromptLanguage;
use crate::mentions;

/// How long the editor stands still for an answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long the menu waits for an answer: an agent may have to be started for it, and a kernel may load its completer for the first one.
const GIVE_UP: Duration = Duration::from_secs(15);
/// What Tab inserts where nothing stands before it.
const STEP: &str = "    ";

/// Whom to ask, shared with the client, which changes it.
pub(crate) type Source = Arc<Mutex<Option<CompletionContext>>>;

/// A daemon and the session completions are for.
#[derive(Clone)]
pub(crate) struct CompletionContext {
    /// The client that asks the daemon.
    pub(crate) client: Arc<Client>,
    /// The session that completes the code.
    pub(crate) session: SessionId,
    /// The folder it works in.
    pub(crate) folder: PathBuf,
    /// The session's newest event that was seen: what comes later may have defined more.
    pub(crate) as_of: Seq,
}

/// The completer of the prompt.
pub(crate) struct DaemonCompleter {
    source: Source,
    prompt_language: PromptLanguage,
    runtime: Handle,
    flight: Option<PendingQuery>,
    answer: Option<Answer>,
}

/// A question under way.
struct PendingQuery {
    line: String,
    as_of: Seq,
    answer: mpsc::Receiver<Proposal>,
}

/// A question and its answer.
struct Answer {
    line: String,
    as_of: Seq,
    proposal: Proposal,
}

impl DaemonCompleter {
    /// A completer that asks whom `source` names, on `runtime`.
    pub(crate) fn new(source: Source, prompt_language: PromptLanguage, runtime: Handle) -> Self {
        Self { source, prompt_language, runtime, flight: None, answer: None }
    }

    fn asked(&self) -> Option<CompletionContext> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts to ask what could stand at the end of `line`, the text before the cursor.
    fn ask(&mut self, asked: CompletionContext, line: &str, code: &str) {
        let (sender, answer) = mpsc::channel();
        let (line, code, prompt_language) = (line.to_owned(), code.to_owned(), self.prompt_language);
        self.flight = Some(PendingQuery { line: line.clone(), as_of: asked.as_of, answer });
        self.runtime.spawn(async move {
            let proposal = match timeout(GIVE_UP, propose(&asked, prompt_language, &line, code)).await {
                Ok(Ok(proposal)) => proposal,
                // What is known without asking is worth the more.
                Ok(Err(_)) | Err(_) if is_of_agent(&line, prompt_language) => {
                    commands(&line, prompt_language)
                }
                Ok(Err(_)) | Err(_) => Proposal::none(&line),
            };
            // Nobody waits for it where the line has changed.
            sender.send(proposal).ok();
        });
    }

    fn land(&mut self, proposal: Proposal) {
        if let Some(flight) = self.flight.take() {
            self.answer = Some(Answer { line: flight.line, as_of: flight.as_of, proposal });
        }
    }

    /// What is known of `line`: its own answer, or one it is a narrower case of.
    fn known(&self, line: &str, now: Seq) -> Option<Proposal> {
        let Answer { line: asked, proposal, .. } =
            self.answer.as_ref().filter(|answer| answer.as_of == now)?;
        if asked == line {
            return Some(proposal.clone());
        }
        let more = line.strip_prefix(asked.as_str())?;
        let is_narrower = more.chars().all(is_name_part) && !proposal.is_partial;
        is_narrower.then(|| narrowed(proposal, &line[proposal.start..]))
    }
}

impl Completer for DaemonCompleter {
    fn complete(&mut self, code: &str, cursor: usize) -> CompletionResult {
        let line = code.get(..cursor).unwrap_or(code);
        if let Some(proposal) = at_once(line, self.prompt_language) {
            return fresh(&proposal, cursor);
        }
        let Some(asked) = self.asked() else { return CompletionResult::fresh(Vec::new()) };
        if let Some(proposal) = self.known(line, asked.as_of) {
            return fresh(&proposal, cursor);
        }
        if !self.flight.as_ref().is_some_and(|flight| flight.line == line && flight.as_of == asked.as_of) {
            self.ask(asked, line, code);
        }
        match self.flight.as_ref().map(|flight| flight.answer.recv_timeout(PATIENCE)) {
            Some(Ok(proposal)) => {
                let result = fresh(&proposal, cursor);
                self.land(proposal);
                result
            }
            _ => CompletionResult::Pending,
        }
    }

    fn poll_completion(&mut self) -> CompletionStatus {
        let Some(flight) = &self.flight else { return CompletionStatus::Idle };
        match flight.answer.try_recv() {
            Ok(proposal) => {
                self.land(proposal);
                CompletionStatus::Ready
            }
            Err(mpsc::TryRecvError::Empty) => CompletionStatus::Pending,
            Err(mpsc::TryRecvError::Disconnected) => {
                self.flight = None;
                CompletionStatus::Idle
            }
        }
    }
}

/// What needs no asking: indentation, commands, files.
fn at_once(line: &str, prompt_language: PromptLanguage) -> Option<Proposal> {
    let here = line.rsplit('\n').next().unwrap_or_default();
    if line.len() > here.len() && here.trim().is_empty() {
        let choice = Choice { value: STEP.to_owned(), note: String::new(), documentation: None };
        return Some(Proposal::whole(line.len(), vec![choice]));
    }
    if let Some(CompletionTarget::File { path, endings }) = sought(line, prompt_language) {
        return Some(files(path, endings, line.len()));
    }
    if is_of_agent(line, prompt_language)
        || prompt_language == PromptLanguage::Words && mentions::begun(line).is_some()
    {
        return None;
    }
    let is_command = line.is_empty() || (line.starts_with([':', '/']) && !line.contains(char::is_whitespace));
    is_command.then(|| commands(line, prompt_language))
}

/// Asks the daemon for completions of code.
async fn propose(
    asked: &CompletionContext,
    prompt_language: PromptLanguage,
    line: &str,
    code: String,
) -> Result<Proposal, Error> {
    if is_of_agent(line, prompt_language) {
        return agent_commands(asked, line).await;
    }
    if let Some((start, typed)) = mentions::begun(line).filter(|_| prompt_language == PromptLanguage::Words) {
        let found = mentions::found(&asked.folder, typed).await;
        let choices = found.iter().map(|path| Choice::plain(mentions::mention(path))).collect();
        return Ok(Proposal { start, choices, is_partial: true });
    }
    match sought(line, prompt_language) {
        Some(CompletionTarget::Session { begun }) => {
            Ok(sessions(&all_sessions(asked).await?, asked, begun, line.len()))
        }
        Some(CompletionTarget::EntriesOf { text }) => {
            let all = all_sessions(asked).await?;
            match named_in(&all, text) {
                Some((session, numbers)) => {
                    entries(asked, session, last_number(numbers), line.len(), |_| true).await
                }
                None => Ok(sessions(&all, asked, text, line.len())),
            }
        }
        Some(CompletionTarget::Entry { begun }) => {
            entries(asked, asked.session, begun, line.len(), |_| true).await
        }
        Some(CompletionTarget::ToolResult { begun }) => {
            let is_result = |entry: &EntryView| entry.placed.entry.role == Role::ToolResult;
            entries(asked, asked.session, begun, line.len(), is_result).await
        }
        Some(CompletionTarget::Nothing | CompletionTarget::File { .. }) => Ok(Proposal::none(line)),
        None if line.starts_with(':') || prompt_language == PromptLanguage::Words => Ok(Proposal::none(line)),
        None => names(asked, line, code).await,
    }
}

#[cfg(test)]
mod tests;

//! What an editor asks of code that does not run: diagnostics and completions. Nothing of it is stored; who subscribes hears of it, and the
//! diagnostics of each file are kept until they are others, so that whoever comes later sees them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::Response;
use mainstay_model::{Action, CommandId, Diagnostic, Error, Principal, Seq, SessionId, TextPosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, broadcast};

use super::bare::{record, told};
use super::body::Body;
use super::caller::Caller;
use super::prefer::Prefer;
use super::signals::CompletionsSignal;
use super::submission::{AT_ONCE, Accepted, waited};
use mainstay_gateway::command::id_of;
use mainstay_gateway::problem::Problem;

/// Results that a subscriber may be behind with; then it is told only the newest.
const BEHIND: usize = 256;
/// Files of a session whose diagnostics are kept.
const FILES: usize = 200;
/// Sessions of whose files they are.
const SESSIONS: usize = 200;
/// Diagnostics of one file that are kept.
const DIAGNOSTICS: usize = 500;
/// Bytes of a file's name. Source: protocols/pi.md, "Limits", has the same for paths.
const NAME_BYTES: usize = 4096;
/// Pieces of code that are looked at at once, whoever asks.
const UNDER_WAY: usize = 256;

/// Whose code it is, and the session in which it was looked at: nobody else is told of it.
pub(super) type Place = (Principal, SessionId);

/// The diagnostics of each file.
pub(super) type Files = BTreeMap<String, Vec<Diagnostic>>;

/// What is found out from now on.
pub(super) type Findings = broadcast::Receiver<Arc<(Place, Finding)>>;

/// What was found out about code.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// The diagnostics of a file; of code that is in none, under an empty name.
    Diagnostics { file: String, diagnostics: Vec<Diagnostic> },
    /// What could stand at a cursor.
    Completions { signal: CompletionsSignal },
}

/// What was found out lately, and who listens.
pub(super) struct Checks {
    diagnostics: Mutex<HashMap<Place, SessionDiagnostics>>,
    findings: broadcast::Sender<Arc<(Place, Finding)>>,
    /// Places for what is being found out.
    under_way: Arc<Semaphore>,
}

/// The diagnostics of a session's files, behind its last reset then.
#[derive(Default)]
struct SessionDiagnostics {
    since: Seq,
    files: Files,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            diagnostics: Mutex::default(),
            findings: broadcast::channel(BEHIND).0,
            under_way: Arc::new(Semaphore::new(UNDER_WAY)),
        }
    }
}

impl Checks {
    /// The diagnostics there are behind this reset, and what is found out from now on.
    pub(super) fn listen(&self, place: &Place, since: Seq) -> (Files, Findings) {
        let kept = self.kept();
        let files = kept.get(place).filter(|kept| kept.since == since).map(|kept| kept.files.clone());
        (files.unwrap_or_default(), self.findings.subscribe())
    }

    /// Something was found out, behind this reset.
    fn found(&self, place: Place, since: Seq, finding: Finding) {
        let mut all = self.kept();
        if let Finding::Diagnostics { file, diagnostics } = &finding {
            if all.len() >= SESSIONS && !all.contains_key(&place) {
                all.clear();
            }
            let kept = all.entry(place.clone()).or_default();
            if kept.since > since {
                // The session was reset meanwhile.
                return;
            }
            if kept.since < since || kept.files.len() >= FILES && !kept.files.contains_key(file) {
                *kept = SessionDiagnostics { since, files: Files::default() };
            }
            kept.files.insert(file.clone(), diagnostics.clone());
        }
        // There may be nobody.
        self.findings.send(Arc::new((place, finding))).ok();
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Place, SessionDiagnostics>> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks code without running it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Check {
    /// The code to be checked.
    code: String,
    /// The file whose text it is, absolute.
    #[serde(default)]
    file: Option<String>,
    /// The client's name for what it asks.
    #[serde(default)]
    command_id: Option<CommandId>,
}

record!(Check { code, file, command_id });

/// The diagnostics of code.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checked {
    diagnostics: Vec<Diagnostic>,
}

told!(Checked { diagnostics });

pub(super) async fn check(
    caller: Caller,
    prefer: Prefer,
    Body(check): Body<Check>,
) -> Result<Response, Problem> {
    let Check { code, file, command_id } = check;
    if file.as_ref().is_some_and(|file| file.len() > NAME_BYTES) {
        let reason = format!("it must have at most {NAME_BYTES} bytes");
        return Err(Error::InvalidArgument { argument: "file".to_owned(), reason }.into());
    }
    let session = caller.session(Some(Action::Check)).await?;
    let since = caller.client.status(session).await?.session.definitions_since;
    let id = id_of(command_id)?;
    let (client, shared, media) = (caller.client.clone(), Arc::clone(&caller.daemon.http), caller.answers());
    let found = async move {
        let mut diagnostics = client.check(session, code, file.clone()).await?;
        diagnostics.truncate(DIAGNOSTICS);
        let place = (client.principal().clone(), session);
        let file = file.unwrap_or_default();
        shared.checks.found(place, since, Finding::Diagnostics { file, diagnostics: diagnostics.clone() });
        Ok(media.answer(&Checked { diagnostics }))
    };
    answered(&caller, session, id, prefer, found).await
}

/// Asks what could stand at a cursor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Complete {
    /// The code to be completed.
    code: String,
    /// The line of the cursor, from 1; by default the last.
    #[serde(default)]
    line: Option<u32>,
    /// Its column, from 1, in UTF-16 code units; by default behind the end of its line.
    #[serde(default)]
    column: Option<u32>,
    /// The client's name for what it asks.
    #[serde(default)]
    command_id: Option<CommandId>,
}

record!(Complete { code, line, column, command_id });

impl Complete {
    /// The cursor that is meant.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is not in the code.
    fn cursor(&self) -> Result<TextPosition, Error> {
        TextPosition::named(&self.code, self.line, self.column)
    }
}

pub(super) async fn complete(
    caller: Caller,
    prefer: Prefer,
    Body(complete): Body<Complete>,
) -> Result<Response, Problem> {
    let session = caller.session(Some(Action::Complete)).await?;
    let cursor = complete.cursor()?;
    let id = id_of(complete.command_id)?;
    let (client, shared, media) = (caller.client.clone(), Arc::clone(&caller.daemon.http), caller.answers());
    let (code, asked) = (complete.code, id.clone());
    let found = async move {
        let completions = client.complete(session, code, cursor).await?;
        let signal = CompletionsSignal { command_id: asked, completions };
        let place = (client.principal().clone(), session);
        shared.checks.found(place, Seq::ZERO, Finding::Completions { signal: signal.clone() });
        Ok(media.answer(&signal))
    };
    answered(&caller, session, id, prefer, found).await
}

/// Finds something out. What takes long goes on behind the answer, which subscribers hear of.
async fn answered(
    caller: &Caller,
    session: SessionId,
    command_id: CommandId,
    Prefer(wait): Prefer,
    found: impl Future<Output = Result<Response, Error>> + Send + 'static,
) -> Result<Response, Problem> {
    let place = Arc::clone(&caller.daemon.http.checks.under_way).try_acquire_owned();
    let place = place.map_err(|_| Error::TooManyRequests { what: "checks".to_owned(), limit: UNDER_WAY })?;
    let seq = caller.client.status(session).await?.session.last_seq;
    let accepted = Accepted { command_id, session, seq };
    let found = tokio::spawn(async move {
        let found = found.await;
        drop(place);
        found
    });
    match (tokio::time::timeout(wait.unwrap_or_default().max(AT_ONCE), found).await, wait) {
        (Err(_), _) => Ok(accepted.answer(caller.answers())),
        (Ok(Err(error)), _) => Err(Error::DaemonFailed { reason: error.to_string() }.into()),
        (Ok(Ok(Err(error))), _) => Err(error.into()),
        (Ok(Ok(Ok(response))), Some(_)) => Ok(waited(response)),
        (Ok(Ok(Ok(_))), None) => Ok(accepted.answer(caller.answers())),
    }
}

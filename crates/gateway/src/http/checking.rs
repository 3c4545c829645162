//! What an editor asks of code that does not run: diagnostics and completions. Nothing of it is stored; who subscribes hears of it, and the
//! diagnostics of each file are kept until they are others, so that whoever comes later sees them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use mainstay_model::{Action, CommandId, Diagnostic, Error, Principal, SessionId, TextPosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::body::Said;
use super::caller::Caller;
use super::prefer::Prefer;
use super::problem::Problem;
use super::signals::CompletionsSignal;
use super::submitting::{Accepted, waited};
use crate::command::id_of;

/// Results that a subscriber may be behind with; then it is told only the newest.
const BEHIND: usize = 256;
/// Files whose diagnostics are kept, and sessions.
const KEPT: usize = 1000;
/// What is that quick is refused in the answer.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Whose code it is, and the session in which it was looked at: nobody else is told of it.
pub(super) type Place = (Principal, SessionId);

/// The diagnostics of each file.
type Files = BTreeMap<String, Vec<Diagnostic>>;

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
    diagnostics: Mutex<HashMap<Place, Files>>,
    findings: broadcast::Sender<Arc<(Place, Finding)>>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { diagnostics: Mutex::default(), findings: broadcast::channel(BEHIND).0 }
    }
}

impl Checks {
    /// The diagnostics there are, and what is found out from now on.
    pub(super) fn listen(&self, place: &Place) -> (Files, broadcast::Receiver<Arc<(Place, Finding)>>) {
        let kept = self.kept();
        (kept.get(place).cloned().unwrap_or_default(), self.findings.subscribe())
    }

    /// Forgets them: the session was reset.
    pub(super) fn forget(&self, place: &Place) {
        self.kept().remove(place);
    }

    fn found(&self, place: Place, finding: Finding) {
        let mut kept = self.kept();
        if let Finding::Diagnostics { file, diagnostics } = &finding {
            if kept.len() >= KEPT && !kept.contains_key(&place) {
                kept.clear();
            }
            let files = kept.entry(place.clone()).or_default();
            if files.len() >= KEPT && !files.contains_key(file) {
                files.clear();
            }
            files.insert(file.clone(), diagnostics.clone());
        }
        // There may be nobody.
        self.findings.send(Arc::new((place, finding))).ok();
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Place, Files>> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks code without running it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    /// The code.
    code: String,
    /// The file whose text it is, absolute.
    #[serde(default)]
    file: Option<String>,
    /// The client's name for what it asks.
    #[serde(default)]
    command_id: Option<CommandId>,
}

/// The diagnostics of code.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checked {
    diagnostics: Vec<Diagnostic>,
}

pub(super) async fn check(
    caller: Caller,
    prefer: Prefer,
    Said(check): Said<Check>,
) -> Result<Response, Problem> {
    let Check { code, file, command_id } = check;
    let session = caller.session(Some(Action::Check)).await?;
    let id = id_of(command_id)?;
    let (client, shared) = (caller.client.clone(), Arc::clone(&caller.daemon.http));
    let found = async move {
        let diagnostics = client.check(session, code, file.clone()).await?;
        let place = (client.principal().clone(), session);
        let file = file.unwrap_or_default();
        shared.checks.found(place, Finding::Diagnostics { file, diagnostics: diagnostics.clone() });
        Ok(Json(Checked { diagnostics }).into_response())
    };
    answered(&caller, session, id, prefer, found).await
}

/// Asks what could stand at a cursor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Complete {
    /// The code.
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

impl Complete {
    fn cursor(&self) -> TextPosition {
        let lines: Vec<&str> = self.code.split('\n').collect();
        let line = self.line.unwrap_or(lines.len() as u32).max(1);
        let text = lines.get(line as usize - 1).copied().unwrap_or_default();
        let end = text.encode_utf16().count() as u32;
        TextPosition { line, column: self.column.unwrap_or(end.saturating_add(1)) }
    }
}

pub(super) async fn complete(
    caller: Caller,
    prefer: Prefer,
    Said(complete): Said<Complete>,
) -> Result<Response, Problem> {
    let session = caller.session(Some(Action::Complete)).await?;
    let cursor = complete.cursor();
    let id = id_of(complete.command_id)?;
    let (client, shared) = (caller.client.clone(), Arc::clone(&caller.daemon.http));
    let (code, asked) = (complete.code, id.clone());
    let found = async move {
        let completions = client.complete(session, code, cursor).await?;
        let signal = CompletionsSignal { command_id: asked, completions };
        let place = (client.principal().clone(), session);
        shared.checks.found(place, Finding::Completions { signal: signal.clone() });
        Ok(Json(signal).into_response())
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
    let seq = caller.client.status(session).await?.session.last_seq;
    let accepted = Accepted { command_id, session, seq };
    let found = tokio::spawn(found);
    match (tokio::time::timeout(wait.unwrap_or_default().max(AT_ONCE), found).await, wait) {
        (Err(_), _) => Ok(accepted.into_response()),
        (Ok(Err(error)), _) => Err(Error::DaemonFailed { reason: error.to_string() }.into()),
        (Ok(Ok(Err(error))), _) => Err(error.into()),
        (Ok(Ok(Ok(response))), Some(_)) => Ok(waited(response)),
        (Ok(Ok(Ok(_))), None) => Ok(accepted.into_response()),
    }
}

//! What an editor asks of code that does not run: diagnostics and completions. Nothing of it is stored; whoever subscribes hears of it, from
//! [`super::checks`].

use std::sync::Arc;

use axum::response::Response;
use mainstay_model::{Action, CommandId, Diagnostic, Error, Seq, SessionId, TextPosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bare::{record, told};
use super::body::Body;
use super::caller::Caller;
use super::checks::Finding;
use super::prefer::Prefer;
use super::signals::CompletionsSignal;
use super::submission::{AT_ONCE, Accepted, waited};
use mainstay_gateway::command::id_of;
use mainstay_gateway::problem::Problem;

/// Diagnostics of one file that are kept.
const DIAGNOSTICS: usize = 500;
/// Bytes of a file's name. Source: protocols/pi.md, "Limits", has the same for paths.
const NAME_BYTES: usize = 4096;

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
    let place = caller.daemon.http.checks.place()?;
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

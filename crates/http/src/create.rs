//! The endpoints that create sessions.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Creation, CreationSource};
use mainstay_model::{
    Answered, CommandId, CreateSession, ForkSession, Outcome, ProjectChoice, Response as Done, Seq, SessionId,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bare::record;
use super::body::Body;
use super::caller::Caller;
use super::prefer::{Key, Prefer};
use super::requested_kind::RequestedKind;
use super::submission::{Accepted, unexpected, waited};
use mainstay_gateway::command::{arguments_in, id_of};
use mainstay_gateway::problem::Problem;
use mainstay_gateway::view::session_view;

/// Creates a session and starts its runner.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Create {
    /// What does its work: a language like `fsharp` or `python`, or an agent. By default the language of the folder's project.
    #[serde(default)]
    kind: RequestedKind,
    /// The folder its code runs in, absolute.
    working_directory: String,
    /// The project it is for, or the folder that one lies in, absolute; by default that of its own folder, where it has one.
    #[serde(default)]
    project: Option<String>,
    /// For no project, whatever lies in its folder.
    #[serde(default)]
    no_project: bool,
    /// Options of the F# compiler, parted by spaces.
    #[serde(default)]
    fsi_args: Option<String>,
    /// What people call it; by default the folder's name.
    #[serde(default)]
    name: Option<String>,
    #[serde(flatten)]
    terms: Terms,
}

record!(Create { kind, working_directory, project, name | terms; without no_project, fsi_args });

/// Under what name and conditions a session is brought.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Terms {
    /// The client's name for the command: sent again under it, it gets the first answer.
    command_id: Option<CommandId>,
    /// Commands that must have succeeded before.
    depends_on: Vec<CommandId>,
}

record!(Terms { command_id, depends_on });

pub(super) async fn create(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    Body(create): Body<Create>,
) -> Result<Response, Problem> {
    let Create { kind, working_directory, project, no_project, fsi_args, name, terms } = create;
    let project = ProjectChoice::of(project, no_project)?;
    let kind = kind.or(&caller.daemon.kind_resolver, &caller.client, &working_directory).await;
    let arguments = arguments_in(fsi_args.as_deref());
    let create = CreateSession { kind, working_directory, project, arguments, name, alias: None };
    bring(&caller, CreationSource::Empty(create), terms, key, prefer).await
}

/// Creates a session that begins with entries of another, and has its values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Fork {
    /// How many entries of its transcript, from the first; all where it does not say.
    #[serde(default)]
    entries: Option<u64>,
    /// What people call the new one; by default the other's name, numbered.
    #[serde(default)]
    name: Option<String>,
    /// With what there was before the other's last reset, instead of a number of entries.
    #[serde(default)]
    before_reset: bool,
    #[serde(flatten)]
    terms: Terms,
}

record!(Fork { entries, name | terms; without before_reset });

pub(super) async fn fork(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    Body(fork): Body<Fork>,
) -> Result<Response, Problem> {
    let Fork { entries, name, before_reset, terms } = fork;
    let from = caller.session(None).await?;
    bring(
        &caller,
        CreationSource::Fork(ForkSession { from, entries, name, before_reset }),
        terms,
        key,
        prefer,
    )
    .await
}

/// The session is there with the answer; who waits is told of it once it is ready.
async fn bring(
    caller: &Caller,
    beginning: CreationSource,
    terms: Terms,
    Key(key): Key,
    Prefer(wait): Prefer,
) -> Result<Response, Problem> {
    let Terms { command_id, depends_on } = terms;
    let id = id_of(command_id)?;
    let client = &caller.client;
    let begun = client.begin_creation(Creation { id: id.clone(), key, depends_on, beginning }).await?;
    let Answered { outcome, .. } = client.created(begun).await?;
    let session = match outcome {
        Outcome::Done { response: Done::Created { session } | Done::Forked { session, .. } } => session,
        outcome => return Err(unexpected(&outcome).into()),
    };
    let Some(limit) = wait else {
        let accepted = Accepted { command_id: id, session, seq: Seq::ZERO };
        return Ok((place(session), accepted.answer(caller.answers())).into_response());
    };
    let status = client.status(session).await?;
    if !status.session.is_agent() {
        client.settled(session, limit).await?;
    }
    let view = session_view(client.status(session).await?);
    Ok(waited((StatusCode::CREATED, place(session), caller.answers().answer(&view)).into_response()))
}

/// Where a session is.
pub(super) fn place(session: SessionId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(place) = HeaderValue::try_from(format!("/sessions/{session}")) {
        headers.insert(header::LOCATION, place);
    }
    headers
}

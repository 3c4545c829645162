//! Sessions as files: exports, and sessions that are read from a file.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Creation, CreationSource, ImportSession};
use mainstay_formats::exchange::{self, Format, ImportFormat, SessionFile};
use mainstay_model::{Action, Answered, CommandId, Outcome, Response as Done, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::JsonBody;
use super::caller::Caller;
use super::create::place;
use super::params::QueryParams;
use super::prefer::{Key, Prefer};
use super::submission::{unexpected, waited};
use mainstay_gateway::command::id_of;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::session_file::exported;
use mainstay_gateway::view::session_view;
use mainstay_protocol::view::SessionView;

/// How a session is exported.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Export {
    /// `jsonl`, which can be imported; `markdown`, `ipynb`; or a script of a session of its language: `fsx`, `dib`, `py`, `ts`, `js`, `sh`.
    /// By default `jsonl`.
    format: Option<String>,
}

pub(super) async fn export(
    caller: Caller,
    QueryParams(export): QueryParams<Export>,
) -> Result<Response, Problem> {
    let session = caller.session(Some(Action::Events)).await?;
    let format: Format = export.format.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    let (header, items) = exported(&caller.client, session).await?;
    let text = format.write(&header, &items)?;
    // The name of a session may be nothing that a header can say.
    let file = format!("attachment; filename=\"{}.{}\"", session.short(), format.name());
    let headers = [
        (header::CONTENT_TYPE, Ok(HeaderValue::from_static("text/plain; charset=utf-8"))),
        (header::CONTENT_DISPOSITION, HeaderValue::try_from(file)),
    ];
    let mut response = text.into_response();
    for (name, value) in headers {
        if let Ok(value) = value {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// Creates a session of a session file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Import {
    /// The text of the file: an export as `jsonl`, or a session file of Claude Code or pi.
    file: String,
    /// The folder its code runs in, absolute; by default the one it ran in before.
    #[serde(default)]
    working_directory: Option<String>,
    /// What people call it; by default what the file calls it.
    #[serde(default)]
    name: Option<String>,
    /// The client's name for the command: sent again under it, it gets the first answer.
    #[serde(default)]
    command_id: Option<CommandId>,
    /// Commands that must have succeeded before.
    #[serde(default)]
    depends_on: Vec<CommandId>,
}

/// A session that was read from a file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportView {
    /// The session that was created.
    session: SessionView,
    /// What wrote the file.
    format: ImportFormat,
    /// How many entries came of it.
    entries: u64,
    /// What did not come along, and how often.
    left_out: BTreeMap<String, u64>,
}

pub(super) async fn import(
    caller: Caller,
    Prefer(wait): Prefer,
    Key(key): Key,
    JsonBody(import): JsonBody<Import>,
) -> Result<Response, Problem> {
    let Import { file, working_directory, name, command_id, depends_on } = import;
    let file = exchange::read_session_file(&file, Timestamp::now())?;
    let entries = file.entries();
    let create = file.creation(working_directory, name);
    let SessionFile { imported, format, left_out } = file;
    let beginning = CreationSource::Import(ImportSession { create, imported });
    let client = &caller.client;
    let creation = Creation { id: id_of(command_id)?, key, depends_on, beginning };
    let begun = client.begin_creation(creation).await?;
    let Answered { outcome, .. } = client.created(begun).await?;
    let Outcome::Done { response: Done::Created { session } } = outcome else {
        return Err(unexpected(&outcome).into());
    };
    let status = client.status(session).await?;
    if let Some(limit) = wait
        && !status.session.is_agent()
    {
        client.settled(session, limit).await?;
    }
    let session_view = session_view(client.status(session).await?);
    let view = ImportView { session: session_view, format, entries, left_out };
    let response = (StatusCode::CREATED, place(session), Json(view)).into_response();
    Ok(if wait.is_some() { waited(response) } else { response })
}

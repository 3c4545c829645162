//! Texts that an editor has not saved, and the results of the tests that reach them.

use axum::Json;
use mainstay_engine::NewBuffer;
use mainstay_model::{Action, BufferRun, UnsavedBuffer};
use mainstay_protocol::operations::Nothing;
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::JsonBody;
use super::caller::Caller;
use super::params::QueryParams;
use mainstay_gateway::problem::Problem;

type Answer<T> = Result<Json<T>, Problem>;

/// A text of a source file that is not saved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PutBuffer {
    /// The path of the file, absolute.
    path: String,
    /// The version of the text: of two, the higher one is newer.
    version: u64,
    /// The whole text of the file.
    text: String,
}

pub(super) async fn put(caller: Caller, JsonBody(put): JsonBody<PutBuffer>) -> Answer<BufferRun> {
    let PutBuffer { path, version, text } = put;
    let session = caller.session(Some(Action::Test)).await?;
    Ok(Json(caller.client.put_buffer(session, NewBuffer { path, version, text }).await?))
}

/// Names the file whose text is thrown away.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ChooseBuffer {
    /// The path of the file, absolute.
    path: String,
}

pub(super) async fn discard(
    caller: Caller,
    QueryParams(choose): QueryParams<ChooseBuffer>,
) -> Answer<Nothing> {
    let session = caller.session(None).await?;
    caller.client.discard_buffer(session, choose.path).await?;
    Ok(Json(Nothing {}))
}

pub(super) async fn list(caller: Caller) -> Answer<Vec<UnsavedBuffer>> {
    let session = caller.session(None).await?;
    Ok(Json(caller.client.buffers(session).await?))
}

//! The history of what the principal submitted at prompts, on the page too.

use axum::Json;
use mainstay_log::HistoryFilter;
use mainstay_model::{Error, HistoryPage, LineNumber, NewLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bare::told;
use super::body::Body;
use super::caller::Caller;
use super::params::{PathParams, QueryParams};
use mainstay_gateway::problem::Problem;

/// Lines of one answer, where it is not said how many.
const USUAL: usize = 100;
/// Lines of one answer at most.
const MOST: usize = 1000;

type Answer<T> = Result<Json<T>, Problem>;

/// A line was kept.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "KeptLine")]
pub(super) struct StoredLine {
    /// Its place in the history.
    number: LineNumber,
}

told!(StoredLine { number });

/// Keeps a line, once under its id.
pub(super) async fn keep(caller: Caller, Body(line): Body<NewLine>) -> Answer<StoredLine> {
    Ok(Json(StoredLine { number: caller.client.add_history(line).await? }))
}

/// Chooses the lines of history that are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListHistory {
    /// Only those of this folder, and those of no folder.
    folder: Option<String>,
    /// Only those of this session.
    session: Option<String>,
    /// Only those in which each of these words stands; of an object only the beginning is looked at.
    q: Option<String>,
    /// Only older ones than this.
    before: Option<u64>,
    /// At most so many.
    limit: Option<usize>,
}

/// The principal's own lines, newest first.
pub(super) async fn list(caller: Caller, QueryParams(list): QueryParams<ListHistory>) -> Answer<HistoryPage> {
    let ListHistory { folder, session, q, before, limit } = list;
    let session = match session {
        Some(_) => Some(caller.session(None).await?),
        None => None,
    };
    let filter = HistoryFilter {
        folder,
        session,
        words: words(q.as_deref().unwrap_or_default()),
        before: before.map(LineNumber),
        limit: Some(limit.unwrap_or(USUAL).min(MOST)),
        ..caller.client.own_history()
    };
    Ok(Json(caller.client.history(filter).await?))
}

/// The words of what is looked for.
pub(crate) fn words(q: &str) -> Vec<String> {
    q.split_whitespace().map(str::to_owned).collect()
}

/// A line of the history.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    /// All that it says.
    text: String,
}

/// All that one line says.
pub(super) async fn line(caller: Caller, PathParams(number): PathParams) -> Answer<Line> {
    let number = number.parse().map_err(|_| Error::InvalidArgument {
        argument: "number".to_owned(),
        reason: format!("`{number}` is no number of a line"),
    })?;
    Ok(Json(Line { text: caller.client.history_text(LineNumber(number)).await? }))
}

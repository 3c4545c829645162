//! What a session has and refers to, as its worker knows it; nothing runs in the session for it.

use axum::Json;
use mainstay_engine::CoverageQuestion;
use mainstay_model::{Action, Binding, Coverage};
use mainstay_runner::query::{KernelAnswer, KernelQuery, Members, SYMBOLS, Symbols, Tests};
use schemars::JsonSchema;
use serde::Deserialize;

use super::caller::Caller;
use super::params::QueryParams;
use mainstay_gateway::problem::Problem;

type Answer<T> = Result<Json<T>, Problem>;

async fn ask(caller: &Caller, query: KernelQuery) -> Result<KernelAnswer, Problem> {
    let session = caller.session(Some(Action::Explore)).await?;
    Ok(caller.client.query(session, query).await?)
}

/// Names the type, module or namespace whose members are listed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListMembers {
    /// A namespace, module or type, as code would write it.
    name: String,
}

pub(super) async fn members(caller: Caller, QueryParams(list): QueryParams<ListMembers>) -> Answer<Members> {
    Ok(Json(ask(&caller, KernelQuery::Members { name: list.name }).await?.members()?))
}

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FindSymbols {
    /// A part of a name, in any case; with a dot it is looked for in full names.
    text: String,
    /// At most so many.
    limit: Option<u32>,
}

pub(super) async fn symbols(caller: Caller, QueryParams(find): QueryParams<FindSymbols>) -> Answer<Symbols> {
    let query = KernelQuery::Symbols { text: find.text, limit: find.limit.unwrap_or(SYMBOLS) };
    Ok(Json(ask(&caller, query).await?.symbols()?))
}

pub(super) async fn values(caller: Caller) -> Answer<Vec<Binding>> {
    Ok(Json(ask(&caller, KernelQuery::Values).await?.values()?))
}

/// Chooses the tests that are listed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListTests {
    /// Those with this in their names, in any case; with `*` it is the whole name.
    pattern: Option<String>,
    /// Those of this category, or with this trait, written `name=value`.
    category: Option<String>,
}

pub(super) async fn tests(caller: Caller, QueryParams(list): QueryParams<ListTests>) -> Answer<Tests> {
    let query = KernelQuery::Tests { pattern: list.pattern, category: list.category };
    Ok(Json(ask(&caller, query).await?.tests()?))
}

/// Chooses the lines that are told of.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ChooseLines {
    /// A file, or the end of its path: its lines are told.
    file: Option<String>,
    /// A function, value or member, as `Module.name`: its lines are told, with what calls it and what it calls.
    name: Option<String>,
    /// Whether the lines that the tests run are to be measured first: the tests run in a process beside the session's, and the answer waits.
    #[serde(default)]
    measure: bool,
}

pub(super) async fn coverage(
    caller: Caller,
    QueryParams(choose): QueryParams<ChooseLines>,
) -> Answer<Coverage> {
    let session = caller.session(Some(Action::Test)).await?;
    let ChooseLines { file, name, measure } = choose;
    let asked = CoverageQuestion { file, name, measure };
    Ok(Json(caller.client.coverage(session, asked).await?))
}

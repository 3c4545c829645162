//! What is there now: sessions, transcripts, asks, outcomes, and what was said anywhere.

use axum::Json;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::search::Words;
use mainstay_model::{Action, CommandId, Event, Role, Seq, Startup, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::caller::Caller;
use super::params::{PathParams, QueryParams};
use mainstay_gateway::KnownKind;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::view::{
    ask_view, command_view, found_view, orphaned_view, relative_view, session_view,
};
use mainstay_protocol::view::{AskView, CommandView, EntryView, FoundView, RelativeView, SessionView};

/// Items of one answer, where it is not said how many.
const USUAL: usize = 100;
/// Items of one answer at most.
const MOST: usize = 1000;
/// Found entries of one answer at most.
const FOUND: usize = 100;

type Answer<T> = Result<Json<T>, Problem>;

/// Chooses the sessions that are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListSessions {
    /// Only those that run in this folder or below it, or are for a project that lies there.
    within: Option<String>,
    /// Only those that are not idle.
    #[serde(default)]
    live: bool,
    /// At most so many.
    limit: Option<usize>,
}

pub(super) async fn sessions(
    caller: Caller,
    QueryParams(list): QueryParams<ListSessions>,
) -> Answer<Vec<SessionView>> {
    let ListSessions { within, live, limit } = list;
    let limit = Some(limit.unwrap_or(USUAL).min(MOST));
    let sessions =
        caller.client.sessions(SessionFilter { within, live, limit, ..SessionFilter::default() }).await?;
    let view = |session| SessionView {
        warm_up: caller.client.warm_up(session),
        orphaned: orphaned_view(&caller.client, session),
        ..SessionView::new(session, None)
    };
    Ok(Json(sessions.iter().map(view).collect()))
}

pub(super) async fn startup(caller: Caller) -> Answer<Startup> {
    let session = caller.session(None).await?;
    let status = caller.client.status(session).await?;
    Ok(Json(status.session.startup.map(|startup| *startup).unwrap_or_default()))
}

pub(super) async fn session(caller: Caller) -> Answer<SessionView> {
    let session = caller.session(None).await?;
    let validity = caller.client.validity(session).await?;
    let status = caller.client.status(session).await?;
    Ok(Json(SessionView { validity, ..session_view(status) }))
}

/// Chooses the entries that are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListEntries {
    /// From the one with this index on.
    #[serde(default)]
    from: u64,
    /// At most so many.
    limit: Option<usize>,
}

pub(super) async fn entries(
    caller: Caller,
    QueryParams(list): QueryParams<ListEntries>,
) -> Answer<Vec<EntryView>> {
    let session = caller.session(None).await?;
    let limit = list.limit.unwrap_or(USUAL).min(MOST);
    let entries = caller.client.entries(session, list.from, limit).await?;
    let validities = caller.client.validities_of_entries(&entries).await?;
    let labels = caller.client.labels_of(session, &entries).await?;
    let view = |((placed, validity), label)| EntryView { placed, validity, label };
    Ok(Json(entries.into_iter().zip(validities).zip(labels).map(view).collect()))
}

/// Chooses the events that are returned.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RecentEvents {
    /// Only those behind the event with this `seq`; without it the newest.
    after: Option<Seq>,
    /// At most so many.
    limit: Option<usize>,
}

pub(super) async fn recent_events(
    caller: Caller,
    QueryParams(recent): QueryParams<RecentEvents>,
) -> Answer<Vec<Event>> {
    let session = caller.session(Some(Action::Events)).await?;
    let limit = recent.limit.unwrap_or(USUAL).min(MOST);
    let newest = caller.client.status(session).await?.session.last_seq;
    let after = match recent.after {
        Some(after) => after.min(newest),
        None => Seq(newest.0.saturating_sub(limit as u64)),
    };
    Ok(Json(caller.client.events(session, after, limit).await?))
}

/// The daemon, and how much it has to do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DaemonView {
    /// The version of the daemon.
    version: &'static str,
    /// Since when it runs.
    started_at: Timestamp,
    /// Its resident memory, in bytes, where that can be told.
    resident_bytes: Option<u64>,
    /// How many commands are under way in all sessions.
    commands: usize,
    /// How many sessions are being created, or wait for that.
    creations: usize,
    /// How many subscriptions there are.
    subscribers: usize,
    /// How many asks wait for an answer, of the sessions that the caller may see.
    asks: usize,
    /// How many sessions the caller may see.
    sessions: usize,
    /// How many of these are not idle.
    live: usize,
}

pub(super) async fn daemon(caller: Caller) -> Answer<DaemonView> {
    let (daemon, client) = (&caller.daemon, &caller.client);
    let live = SessionFilter { live: true, ..SessionFilter::default() };
    Ok(Json(DaemonView {
        version: daemon.version,
        started_at: daemon.started_at,
        resident_bytes: mainstay_os::system::own_resident_bytes(),
        commands: daemon.engine.commands_under_way(),
        creations: daemon.engine.creations_under_way(),
        subscribers: daemon.engine.subscribers(),
        asks: client.asks().await?.len(),
        sessions: client.count_sessions(SessionFilter::default()).await?,
        live: client.count_sessions(live).await?,
    }))
}

pub(super) async fn lineage(caller: Caller) -> Answer<Vec<RelativeView>> {
    let session = caller.session(None).await?;
    let relatives = caller.client.lineage(session).await?;
    Ok(Json(relatives.into_iter().map(relative_view).collect()))
}

/// For whom the kinds are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListKinds {
    /// The folder that sessions are to work in, absolute: the kernels of its project's environment are listed too.
    working_directory: Option<String>,
}

pub(super) async fn kinds(
    caller: Caller,
    QueryParams(list): QueryParams<ListKinds>,
) -> Answer<Vec<KnownKind>> {
    Ok(Json(caller.daemon.kinds.known(&caller.client, list.working_directory).await?))
}

/// Chooses the asks that are listed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListAsks {
    /// Only those of this session.
    session: Option<String>,
}

pub(super) async fn asks(caller: Caller, QueryParams(list): QueryParams<ListAsks>) -> Answer<Vec<AskView>> {
    let session = match &list.session {
        Some(_) => Some(caller.session(None).await?),
        None => None,
    };
    let mut asks = caller.client.asks().await?;
    asks.retain(|waiting| session.is_none_or(|session| session == waiting.session.id));
    Ok(Json(asks.into_iter().map(ask_view).collect()))
}

pub(super) async fn command(caller: Caller, PathParams(command): PathParams) -> Answer<CommandView> {
    let command = CommandId::new(command)?;
    let status = caller.client.command(&command).await?;
    Ok(Json(command_view(command, status)))
}

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Search {
    /// Words that must be in it, the last one maybe only begun; `"quoted"` ones stand together.
    q: String,
    /// Only in this session.
    session: Option<String>,
    /// Only entries of this part: `input`, `output`, `user`, …
    role: Option<Role>,
    /// Behind so many found before.
    #[serde(default)]
    offset: usize,
    /// At most so many.
    limit: Option<usize>,
}

pub(super) async fn search(
    caller: Caller,
    QueryParams(search): QueryParams<Search>,
) -> Answer<Vec<FoundView>> {
    let Search { q, session, role, offset, limit } = search;
    let words = Words::parse(&q)?;
    let id = match session {
        Some(_) => Some(caller.session(None).await?),
        None => None,
    };
    let roles = role.into_iter().collect();
    let sessions = SessionFilter { id, ..SessionFilter::default() };
    let limit = limit.unwrap_or(FOUND).min(FOUND);
    let filter = EntryFilter { words, roles, sessions, since: None, until: None, offset, limit };
    let found = caller.client.search(filter).await?;
    Ok(Json(found.into_iter().map(found_view).collect()))
}

//! Sessions: finding, creating, changing and deleting them.

use super::call::{Call, unexpected};
use mainstay_gateway::command::{arguments_in, id_of};
use mainstay_gateway::view::{orphaned_view, relative_view, statistics_view};
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Outcome, ProjectChoice, Response, SessionCommand, Startup, command};
use mainstay_protocol::operations::{
    CreateSession, DeleteSession, Deleted, ForkSession, Forked, GetLineage, GetSession, GetSessionStatistics,
    GetStartup, ListSessions, RenameSession, ResetSession, SettleSession, StartSession, StopSession,
};
use mainstay_protocol::view::{RelativeView, SessionView, StatisticsView};
use std::time::Duration;

pub(crate) async fn list(call: Call, list: ListSessions) -> Result<Vec<SessionView>, Error> {
    let ListSessions { working_directory, within, live, limit } = list;
    let filter = SessionFilter { working_directory, within, live, limit, ..SessionFilter::default() };
    let sessions = call.client.sessions(filter).await?;
    let view = |session| SessionView {
        warm_up: call.client.warm_up(session),
        orphaned: orphaned_view(&call.client, session),
        ..SessionView::new(session, None)
    };
    Ok(sessions.iter().map(view).collect())
}

pub(crate) async fn create(call: Call, create: CreateSession) -> Result<SessionView, Error> {
    let CreateSession { command, kind, working_directory, project, no_project, fsi_args, name } = create;
    let project = ProjectChoice::of(project, no_project)?;
    let arguments = arguments_in(fsi_args.as_deref());
    let create =
        mainstay_model::CreateSession { kind, working_directory, project, arguments, name, alias: None };
    let command = id_of(command)?;
    match call.client.create(command, create).await? {
        Outcome::Done { response: Response::Created { session } } => call.view(session).await,
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn fork(call: Call, fork: ForkSession) -> Result<Forked, Error> {
    let ForkSession { command, session, entries, name, before_reset } = fork;
    let from = call.resolve(&session).await?;
    let fork = mainstay_model::ForkSession { from, entries, name, before_reset };
    match call.client.fork(id_of(command)?, fork).await? {
        Outcome::Done { response: Response::Forked { session, entries, asked } } => {
            Ok(Forked { session: call.view(session).await?, entries, asked })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn settle(call: Call, settle: SettleSession) -> Result<SessionView, Error> {
    let session = call.resolve(&settle.session).await?;
    call.client.settled(session, Duration::from_millis(settle.timeout_ms)).await?;
    call.view(session).await
}

pub(crate) async fn delete(call: Call, delete: DeleteSession) -> Result<Deleted, Error> {
    let DeleteSession { session: reference, sent } = delete;
    let session = call.resolve_known(&reference).await?;
    match call.submit(session, SessionCommand::Delete, sent).await? {
        Outcome::Done { response: Response::Recorded { seq } } => Ok(Deleted { session, seq }),
        outcome => Err(unexpected(&outcome)),
    }
}

pub(crate) async fn lineage(call: Call, asked: GetLineage) -> Result<Vec<RelativeView>, Error> {
    let relatives = call.client.lineage(call.resolve(&asked.session).await?).await?;
    Ok(relatives.into_iter().map(relative_view).collect())
}

pub(crate) async fn get(call: Call, asked: GetSession) -> Result<SessionView, Error> {
    call.view(call.resolve(&asked.session).await?).await
}

pub(crate) async fn statistics(call: Call, asked: GetSessionStatistics) -> Result<StatisticsView, Error> {
    Ok(statistics_view(call.client.statistics(call.resolve(&asked.session).await?).await?))
}

pub(crate) async fn startup(call: Call, asked: GetStartup) -> Result<Startup, Error> {
    let status = call.client.status(call.resolve(&asked.session).await?).await?;
    Ok(status.session.startup.map(|startup| *startup).unwrap_or_default())
}

pub(crate) async fn start(call: Call, asked: StartSession) -> Result<SessionView, Error> {
    let StartSession { session, sent } = asked;
    call.change(&session, SessionCommand::Start, sent).await
}

pub(crate) async fn stop(call: Call, asked: StopSession) -> Result<SessionView, Error> {
    let StopSession { session, sent } = asked;
    call.change(&session, SessionCommand::Stop, sent).await
}

pub(crate) async fn rename(call: Call, asked: RenameSession) -> Result<SessionView, Error> {
    let RenameSession { session, name, sent } = asked;
    call.change(&session, SessionCommand::Rename(command::Rename { name }), sent).await
}

pub(crate) async fn reset(call: Call, asked: ResetSession) -> Result<SessionView, Error> {
    let ResetSession { session, hard, sent } = asked;
    let body = if hard { SessionCommand::HardReset } else { SessionCommand::Reset };
    call.change(&session, body, sent).await
}

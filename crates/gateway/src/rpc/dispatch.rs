//! From a method's name to the engine and back.

use std::time::Duration;

use super::api::{
    CancelSession, Cancelling, Check, Complete, Conditions, CreateSession, DaemonStatus, Eval, Explore,
    GetCommand, GetSession, GetStatus, ListAllEvents, ListEvents, ListSessions, Method, Nothing,
    RenameSession, ResetSession, SettleSession, StartSession, StopDaemon, StopSession,
};
use super::codec::Request;
use super::server::Daemon;
use crate::command::{anonymous, id_of};
use crate::view::{CommandView, EvalView, SessionView};
use mainstay_log::SessionFilter;
use mainstay_model::{Command, Error, Event, Outcome, Response, SessionCommand, SessionId, Source};
use serde::Serialize;
use serde_json::Value;

/// Events in one page at most.
const PAGE_LIMIT: usize = 1000;
/// Where a page ends early, in bytes of JSON.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Carries out one request.
pub(super) async fn dispatch(daemon: &Daemon, source: &Source, request: &Request) -> Result<Value, Error> {
    let call = Call { daemon, source };
    match request.method.as_str() {
        GetStatus::NAME => written(call.status().await?),
        StopDaemon::NAME => {
            daemon.stop.cancel();
            written(Nothing {})
        }
        ListSessions::NAME => written(call.list(params(request)?).await?),
        CreateSession::NAME => written(call.create(params(request)?).await?),
        GetSession::NAME => {
            written(call.view(call.resolve(&params::<GetSession>(request)?.session).await?).await?)
        }
        SettleSession::NAME => written(call.settle(params(request)?).await?),
        StartSession::NAME => {
            written(call.change(&params::<StartSession>(request)?.session, SessionCommand::Start).await?)
        }
        StopSession::NAME => {
            written(call.change(&params::<StopSession>(request)?.session, SessionCommand::Stop).await?)
        }
        RenameSession::NAME => {
            let RenameSession { session, name } = params(request)?;
            written(call.change(&session, SessionCommand::Rename { name }).await?)
        }
        ResetSession::NAME => {
            let ResetSession { session, hard } = params(request)?;
            let command = if hard { SessionCommand::HardReset } else { SessionCommand::Reset };
            written(call.change(&session, command).await?)
        }
        CancelSession::NAME => written(call.cancel(params(request)?).await?),
        Eval::NAME => written(call.eval(params(request)?).await?),
        GetCommand::NAME => written(call.command(params(request)?).await?),
        Check::NAME => {
            let Check { session, code, file } = params(request)?;
            written(daemon.engine.check(call.resolve(&session).await?, code, file).await?)
        }
        Complete::NAME => {
            let Complete { session, code, cursor } = params(request)?;
            written(daemon.engine.complete(call.resolve(&session).await?, code, cursor).await?)
        }
        Explore::NAME => {
            let Explore { session, name } = params(request)?;
            written(daemon.engine.explore(call.resolve(&session).await?, name).await?)
        }
        ListEvents::NAME => {
            let ListEvents { session, after, limit } = params(request)?;
            let limit = limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
            page(&daemon.engine.events(call.resolve(&session).await?, after, limit).await?)
        }
        ListAllEvents::NAME => {
            let ListAllEvents { after_position, limit } = params(request)?;
            let limit = limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
            page(&daemon.engine.all_events(after_position, limit).await?)
        }
        unknown => Err(Error::BadRequest { reason: format!("there is no method `{unknown}`") }),
    }
}

/// Reads the parameters of a request.
pub(super) fn params<M: Method>(request: &Request) -> Result<M, Error> {
    let text = request.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(text).map_err(|error| Error::BadRequest { reason: format!("{}: {error}", M::NAME) })
}

fn written(result: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(result).map_err(|error| Error::BadRequest { reason: error.to_string() })
}

/// As many of the events as one message should hold, and at least one. The next page begins after the last of them.
fn page(events: &[Event]) -> Result<Value, Error> {
    let mut page = Vec::with_capacity(events.len());
    let mut bytes = 0;
    for event in events {
        let event = written(event)?;
        bytes += event.to_string().len();
        if bytes > PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(event);
    }
    Ok(Value::Array(page))
}

/// One request, and on whose behalf.
struct Call<'a> {
    daemon: &'a Daemon,
    source: &'a Source,
}

impl Call<'_> {
    async fn resolve(&self, reference: &str) -> Result<SessionId, Error> {
        self.daemon.engine.resolve(reference).await
    }

    async fn view(&self, session: SessionId) -> Result<SessionView, Error> {
        self.daemon.engine.status(session).await.map(SessionView::from)
    }

    async fn status(&self) -> Result<DaemonStatus, Error> {
        let engine = &self.daemon.engine;
        let live = engine.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
        let mut views = Vec::with_capacity(live.len());
        for session in live {
            let usage = engine.usage(session.id).await;
            views.push(SessionView::new(&session, usage));
        }
        Ok(DaemonStatus {
            version: self.daemon.version.to_owned(),
            pid: std::process::id(),
            port: self.daemon.port,
            started_at: self.daemon.started_at,
            home: self.daemon.home.display().to_string(),
            resident_bytes: own_resident_bytes(),
            limits: engine.limits().clone(),
            commands: engine.commands_under_way(),
            live: views,
            stored: engine.sessions(SessionFilter::default()).await?.len(),
        })
    }

    async fn list(&self, list: ListSessions) -> Result<Vec<SessionView>, Error> {
        let ListSessions { working_directory, live, limit } = list;
        let sessions = self.daemon.engine.sessions(SessionFilter { working_directory, live, limit }).await?;
        Ok(sessions.iter().map(|session| SessionView::new(session, None)).collect())
    }

    async fn create(&self, create: CreateSession) -> Result<SessionView, Error> {
        let CreateSession { command, kind, working_directory, project, name } = create;
        let create = mainstay_model::CreateSession { kind, working_directory, project, name };
        let command = id_of(command)?;
        match self.daemon.engine.create(command, self.source.clone(), create).await? {
            Outcome::Done { response: Response::Created { session } } => self.view(session).await,
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn settle(&self, settle: SettleSession) -> Result<SessionView, Error> {
        let session = self.resolve(&settle.session).await?;
        self.daemon.engine.settled(session, Duration::from_millis(settle.timeout_ms)).await?;
        self.view(session).await
    }

    async fn change(&self, session: &str, body: SessionCommand) -> Result<SessionView, Error> {
        let session = self.resolve(session).await?;
        match self.submit(session, body).await? {
            Outcome::Done { .. } => self.view(session).await,
            Outcome::Failed { error } => Err(error),
        }
    }

    async fn cancel(&self, cancel: CancelSession) -> Result<Cancelling, Error> {
        let session = self.resolve(&cancel.session).await?;
        let body = SessionCommand::Cancel { target: cancel.command };
        let job = match self.submit(session, body).await? {
            Outcome::Done { response: Response::Cancelling { job } } => Some(job),
            Outcome::Done { response: Response::Withdrawn { .. } } => None,
            outcome => return Err(unexpected(&outcome)),
        };
        Ok(Cancelling { session: self.view(session).await?, job })
    }

    async fn eval(&self, eval: Eval) -> Result<EvalView, Error> {
        let Eval { session, command, code, file, admission, conditions } = eval;
        let Conditions { key, depends_on, if_version, timeout_ms } = conditions;
        let session = self.resolve(&session).await?;
        let id = id_of(command)?;
        let (source, body) = (self.source.clone(), SessionCommand::Eval { code, file });
        let command =
            Command { id: id.clone(), key, source, admission, depends_on, if_version, timeout_ms, body };
        let answered = self.daemon.engine.submit(session, command).await?;
        match answered.outcome {
            Outcome::Done { response: Response::Evaluated(outcome) } => {
                let view = EvalView::load(&self.daemon.engine, session, id, outcome).await?;
                Ok(EvalView { version: answered.version, replayed: answered.is_replay, ..view })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn command(&self, get: GetCommand) -> Result<CommandView, Error> {
        let status = self.daemon.engine.command(&self.source.principal(), &get.command).await?;
        Ok(CommandView::new(get.command, status))
    }

    async fn submit(&self, session: SessionId, body: SessionCommand) -> Result<Outcome, Error> {
        let command = Command::new(anonymous(), self.source.clone(), body);
        self.daemon.engine.submit(session, command).await.map(|answered| answered.outcome)
    }
}

fn unexpected(outcome: &Outcome) -> Error {
    match outcome {
        Outcome::Failed { error } => error.clone(),
        Outcome::Done { response } => {
            Error::BadRequest { reason: format!("the command's outcome is {response:?}") }
        }
    }
}

/// This process's resident memory.
#[cfg(target_os = "linux")]
fn own_resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(not(target_os = "linux"))]
fn own_resident_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{EventBody, Metadata, Position, Seq, Timestamp};
    use uuid::Uuid;

    fn event(bytes: usize) -> Event {
        let metadata =
            Metadata { source: Source::System, correlation: None, causation: None, environment: None };
        Event {
            session: SessionId::from_uuid(Uuid::nil()),
            seq: Seq(1),
            position: Position::ZERO,
            at: Timestamp::now(),
            metadata,
            body: EventBody::SessionRenamed { name: "x".repeat(bytes) },
        }
    }

    #[test]
    fn a_page_of_large_events_ends_early_and_is_never_empty() {
        let length = |events: &[Event]| page(events).unwrap().as_array().unwrap().len();
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[event(1), event(1)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES / 2), event(PAGE_BYTES / 3), event(PAGE_BYTES / 2)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES + 1), event(1)]), 1);
    }
}

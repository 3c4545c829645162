//! From a method's name to its handler and back: the registry of handlers.

use std::collections::HashMap;
use std::sync::LazyLock;

use futures::FutureExt;
use futures::future::BoxFuture;
use mainstay_model::Error;
use mainstay_protocol::json_rpc::{Request, params};
use mainstay_protocol::{Operation, operations};
use serde::Serialize;
use serde_json::Value;

use crate::handlers;
use crate::handlers::call::Call;

/// The handlers of all methods but those that the connection itself carries out: `client/attach` and the subscriptions.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let subjects =
        [daemon, sessions, exchange, transcripts, history, store, jobs, asks, queries, schedules, events];
    subjects.iter().fold(Registry::default(), |registry, subject| subject(registry))
});

/// Carries out one request.
pub(super) async fn dispatch(call: Call, request: &Request) -> Result<Value, Error> {
    match REGISTRY.0.get(request.method.as_str()) {
        Some(handler) => handler(call, request).await,
        None => Err(Error::BadRequest { reason: format!("there is no method `{}`", request.method) }),
    }
}

type Handler = Box<dyn Fn(Call, &Request) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync>;

/// The handlers by the names of their methods.
#[derive(Default)]
struct Registry(HashMap<&'static str, Handler>);

impl Registry {
    /// With the handler of a method. Its types are checked against the method's.
    fn on<O: Operation>(mut self, handler: impl Handles<O>) -> Self {
        let handler: Handler = Box::new(move |call, request| match params::<O>(request) {
            Ok(params) => {
                let answer = handler.handle(call, params);
                async { written(answer.await?) }.boxed()
            }
            Err(error) => std::future::ready(Err(error)).boxed(),
        });
        self.0.insert(O::NAME, handler);
        self
    }
}

/// An async function that carries a method out.
trait Handles<O: Operation>: Send + Sync + 'static {
    fn handle(
        &self,
        call: Call,
        params: O,
    ) -> impl Future<Output = Result<O::Answer, Error>> + Send + 'static;
}

impl<O, F, Answer> Handles<O> for F
where
    O: Operation,
    F: Fn(Call, O) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<O::Answer, Error>> + Send + 'static,
{
    fn handle(
        &self,
        call: Call,
        params: O,
    ) -> impl Future<Output = Result<O::Answer, Error>> + Send + 'static {
        self(call, params)
    }
}

fn written(result: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(result).map_err(|error| Error::BadRequest { reason: error.to_string() })
}

fn daemon(registry: Registry) -> Registry {
    registry
        .on::<operations::GetStatus>(handlers::daemon::status)
        .on::<operations::GetLink>(handlers::daemon::link)
        .on::<operations::StopDaemon>(handlers::daemon::stop)
        .on::<operations::RestartDaemon>(handlers::daemon::restart)
        .on::<operations::Discover>(handlers::daemon::discover)
}

fn sessions(registry: Registry) -> Registry {
    registry
        .on::<operations::ListSessions>(handlers::sessions::list)
        .on::<operations::FindSession>(handlers::session_choice::find)
        .on::<operations::OpenSession>(handlers::session_choice::open)
        .on::<operations::CreateSession>(handlers::sessions::create)
        .on::<operations::ForkSession>(handlers::sessions::fork)
        .on::<operations::GetLineage>(handlers::sessions::lineage)
        .on::<operations::GetSession>(handlers::sessions::get)
        .on::<operations::SettleSession>(handlers::sessions::settle)
        .on::<operations::StartSession>(handlers::sessions::start)
        .on::<operations::StopSession>(handlers::sessions::stop)
        .on::<operations::DeleteSession>(handlers::sessions::delete)
        .on::<operations::GetSessionStatistics>(handlers::sessions::statistics)
        .on::<operations::RenameSession>(handlers::sessions::rename)
        .on::<operations::ResetSession>(handlers::sessions::reset)
        .on::<operations::GetStartup>(handlers::sessions::startup)
        .on::<operations::RefreshSession>(handlers::refresh::refresh)
}

fn exchange(registry: Registry) -> Registry {
    registry
        .on::<operations::ExportSession>(handlers::exchange::export)
        .on::<operations::ImportSession>(handlers::exchange::import)
}

fn transcripts(registry: Registry) -> Registry {
    registry
        .on::<operations::ListEntries>(handlers::transcripts::entries)
        .on::<operations::MergeSession>(handlers::transcripts::merge)
        .on::<operations::InsertEntries>(handlers::transcripts::insert)
        .on::<operations::CompactSession>(handlers::transcripts::compact)
        .on::<operations::LabelEntry>(handlers::transcripts::label)
        .on::<operations::ListLabels>(handlers::transcripts::labels)
        .on::<operations::SearchEntries>(handlers::transcripts::search)
}

fn history(registry: Registry) -> Registry {
    registry
        .on::<operations::AddHistory>(handlers::history::add)
        .on::<operations::ListHistory>(handlers::history::list)
        .on::<operations::GetHistory>(handlers::history::get)
        .on::<operations::RemoveHistory>(handlers::history::remove)
}

fn store(registry: Registry) -> Registry {
    registry
        .on::<operations::GetStoreStatistics>(handlers::store::statistics)
        .on::<operations::Collect>(handlers::store::collect)
        .on::<operations::BackUp>(handlers::store::back_up)
}

fn jobs(registry: Registry) -> Registry {
    registry
        .on::<operations::CancelSession>(handlers::jobs::cancel)
        .on::<operations::Eval>(handlers::jobs::eval)
        .on::<operations::DoWork>(handlers::jobs::work)
        .on::<operations::SteerSession>(handlers::jobs::steer)
        .on::<operations::PauseSession>(handlers::jobs::pause)
        .on::<operations::AskAgent>(handlers::jobs::question)
        .on::<operations::GetCommand>(handlers::jobs::command)
}

fn schedules(registry: Registry) -> Registry {
    registry
        .on::<operations::AddSchedule>(handlers::schedules::add)
        .on::<operations::ListSchedules>(handlers::schedules::list)
        .on::<operations::RemoveSchedule>(handlers::schedules::remove)
}

fn asks(registry: Registry) -> Registry {
    registry
        .on::<operations::RaiseAsk>(handlers::asks::raise)
        .on::<operations::ListAsks>(handlers::asks::list)
        .on::<operations::AnswerAsk>(handlers::asks::answer)
        .on::<operations::DeclineAsk>(handlers::asks::decline)
}

fn queries(registry: Registry) -> Registry {
    registry
        .on::<operations::Check>(handlers::queries::check)
        .on::<operations::ReviewCode>(handlers::queries::review)
        .on::<operations::ScaffoldTest>(handlers::queries::scaffold)
        .on::<operations::Complete>(handlers::queries::complete)
        .on::<operations::IsComplete>(handlers::queries::is_complete)
        .on::<operations::Inspect>(handlers::queries::inspect)
        .on::<operations::ListComms>(handlers::queries::comms)
        .on::<operations::Explore>(handlers::queries::explore)
        .on::<operations::FindSymbols>(handlers::queries::symbols)
        .on::<operations::ListValues>(handlers::queries::values)
        .on::<operations::ListTests>(handlers::queries::tests)
        .on::<operations::GetCoverage>(handlers::queries::coverage)
        .on::<operations::PutBuffer>(handlers::buffers::put)
        .on::<operations::DiscardBuffer>(handlers::buffers::discard)
        .on::<operations::ListBuffers>(handlers::buffers::list)
}

fn events(registry: Registry) -> Registry {
    registry
        .on::<operations::ListEvents>(handlers::events::of_session)
        .on::<operations::ListAllEvents>(handlers::events::of_log)
}

#[cfg(test)]
mod tests {
    use mainstay_protocol::OperationId;

    use super::*;

    #[test]
    fn every_method_has_a_handler() {
        let of_connection = [
            OperationId::of::<operations::Attach>(),
            OperationId::of::<operations::Follow>(),
            OperationId::of::<operations::Listen>(),
        ];
        let all = operations::all().map(|operation| operation.id);
        let wanted = all.filter(|id| !of_connection.contains(id));
        let mut wanted: Vec<&str> = wanted.map(OperationId::as_str).collect();
        let mut registered: Vec<&str> = REGISTRY.0.keys().copied().collect();
        wanted.sort_unstable();
        registered.sort_unstable();
        assert_eq!(registered, wanted);
    }
}

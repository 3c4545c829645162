//! From a method's name to its handler and back: the registry of handlers.

use std::collections::HashMap;
use std::sync::LazyLock;

use futures::FutureExt;
use futures::future::BoxFuture;
use mainstay_gateway::json_rpc::{Method, Request, params};
use mainstay_model::Error;
use serde::Serialize;
use serde_json::Value;

use crate::handlers::call::Call;
use crate::{api, handlers};

/// The handlers of all methods but those that the connection itself carries out: `client/attach` and the subscriptions.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let subjects = [daemon, sessions, exchange, transcripts, history, store, jobs, asks, queries, events];
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
    fn on<M: Method>(mut self, handler: impl Handles<M>) -> Self {
        let handler: Handler = Box::new(move |call, request| match params::<M>(request) {
            Ok(params) => {
                let answer = handler.handle(call, params);
                async { written(answer.await?) }.boxed()
            }
            Err(error) => std::future::ready(Err(error)).boxed(),
        });
        self.0.insert(M::NAME, handler);
        self
    }
}

/// An async function that carries a method out.
trait Handles<M: Method>: Send + Sync + 'static {
    fn handle(
        &self,
        call: Call,
        params: M,
    ) -> impl Future<Output = Result<M::Answer, Error>> + Send + 'static;
}

impl<M, F, Answer> Handles<M> for F
where
    M: Method,
    F: Fn(Call, M) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<M::Answer, Error>> + Send + 'static,
{
    fn handle(
        &self,
        call: Call,
        params: M,
    ) -> impl Future<Output = Result<M::Answer, Error>> + Send + 'static {
        self(call, params)
    }
}

fn written(result: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(result).map_err(|error| Error::BadRequest { reason: error.to_string() })
}

fn daemon(registry: Registry) -> Registry {
    registry
        .on::<api::GetStatus>(handlers::daemon::status)
        .on::<api::GetLink>(handlers::daemon::link)
        .on::<api::StopDaemon>(handlers::daemon::stop)
        .on::<api::Discover>(handlers::daemon::discover)
}

fn sessions(registry: Registry) -> Registry {
    registry
        .on::<api::ListSessions>(handlers::sessions::list)
        .on::<api::FindSession>(handlers::session_choice::find)
        .on::<api::OpenSession>(handlers::session_choice::open)
        .on::<api::CreateSession>(handlers::sessions::create)
        .on::<api::ForkSession>(handlers::sessions::fork)
        .on::<api::GetLineage>(handlers::sessions::lineage)
        .on::<api::GetSession>(handlers::sessions::get)
        .on::<api::SettleSession>(handlers::sessions::settle)
        .on::<api::StartSession>(handlers::sessions::start)
        .on::<api::StopSession>(handlers::sessions::stop)
        .on::<api::DeleteSession>(handlers::sessions::delete)
        .on::<api::GetSessionStatistics>(handlers::sessions::statistics)
        .on::<api::RenameSession>(handlers::sessions::rename)
        .on::<api::ResetSession>(handlers::sessions::reset)
        .on::<api::GetStartup>(handlers::sessions::startup)
        .on::<api::RefreshSession>(handlers::refresh::refresh)
}

fn exchange(registry: Registry) -> Registry {
    registry
        .on::<api::ExportSession>(handlers::exchange::export)
        .on::<api::ImportSession>(handlers::exchange::import)
}

fn transcripts(registry: Registry) -> Registry {
    registry
        .on::<api::ListEntries>(handlers::transcripts::entries)
        .on::<api::MergeSession>(handlers::transcripts::merge)
        .on::<api::InsertEntries>(handlers::transcripts::insert)
        .on::<api::CompactSession>(handlers::transcripts::compact)
        .on::<api::LabelEntry>(handlers::transcripts::label)
        .on::<api::ListLabels>(handlers::transcripts::labels)
        .on::<api::SearchEntries>(handlers::transcripts::search)
}

fn history(registry: Registry) -> Registry {
    registry
        .on::<api::AddHistory>(handlers::history::add)
        .on::<api::ListHistory>(handlers::history::list)
        .on::<api::GetHistory>(handlers::history::get)
        .on::<api::RemoveHistory>(handlers::history::remove)
}

fn store(registry: Registry) -> Registry {
    registry
        .on::<api::GetStoreStatistics>(handlers::store::statistics)
        .on::<api::Collect>(handlers::store::collect)
        .on::<api::BackUp>(handlers::store::back_up)
}

fn jobs(registry: Registry) -> Registry {
    registry
        .on::<api::CancelSession>(handlers::jobs::cancel)
        .on::<api::Eval>(handlers::jobs::eval)
        .on::<api::DoWork>(handlers::jobs::work)
        .on::<api::SteerSession>(handlers::jobs::steer)
        .on::<api::AskAgent>(handlers::jobs::question)
        .on::<api::GetCommand>(handlers::jobs::command)
}

fn asks(registry: Registry) -> Registry {
    registry
        .on::<api::RaiseAsk>(handlers::asks::raise)
        .on::<api::ListAsks>(handlers::asks::list)
        .on::<api::AnswerAsk>(handlers::asks::answer)
}

fn queries(registry: Registry) -> Registry {
    registry
        .on::<api::Check>(handlers::queries::check)
        .on::<api::ReviewCode>(handlers::queries::review)
        .on::<api::ScaffoldTest>(handlers::queries::scaffold)
        .on::<api::Complete>(handlers::queries::complete)
        .on::<api::IsComplete>(handlers::queries::is_complete)
        .on::<api::Inspect>(handlers::queries::inspect)
        .on::<api::ListComms>(handlers::queries::comms)
        .on::<api::Explore>(handlers::queries::explore)
        .on::<api::FindSymbols>(handlers::queries::symbols)
        .on::<api::ListValues>(handlers::queries::values)
        .on::<api::ListTests>(handlers::queries::tests)
}

fn events(registry: Registry) -> Registry {
    registry
        .on::<api::ListEvents>(handlers::events::of_session)
        .on::<api::ListAllEvents>(handlers::events::of_log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_handler() {
        let of_connection = [api::Attach::NAME, api::Follow::NAME, api::Listen::NAME];
        let all = api::NAMES.iter().copied().flatten().copied();
        let mut wanted: Vec<&str> = all.filter(|name| !of_connection.contains(name)).collect();
        let mut registered: Vec<&str> = REGISTRY.0.keys().copied().collect();
        wanted.sort_unstable();
        registered.sort_unstable();
        assert_eq!(registered, wanted);
    }
}

//! What `rmcp` calls: who we are, which tools there are, and one call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use futures::future::{BoxFuture, join_all};
use mainstay_engine::Client;
use mainstay_model::{Access, Error, Principal, SessionId};
use mainstay_runner::Environment;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, RequestId,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::daemon::McpDaemon;
use super::ended::EndedSessions;
use super::eval::SendCode;
use super::events::GetRecentEvents;
use super::get_result::GetResult;
use super::offer::of_principal;
use super::orphans::FirstAnswer;
use super::places::Places;
use super::resources::uri::Address;
use super::subscriptions::{self, NotifyChange, Subscribable, Subscriptions};
use super::tool::{self, TOOLS, Tool as _, Waits};
use super::{completion, deadline, error, logging, prompts, repeats, resources, state, tasks};

/// What a model is told once. What changes is said by the session's status and by refusals.
const INSTRUCTIONS: &str = "send_code runs code in a session: a REPL (F#, Python, other languages) or their notebooks. Definitions stay until a \
reset, across crashes and restarts; people and other agents may share them. `sessionId` is a session's id, the end of it, or its name; \
without it a tool takes the session you used last, else the most recently active one, and runs code in a new one if there is none. A refused \
call says what is offered instead. A call that takes longer than its `wait` is answered `still running` with an id: get_result waits on, and \
nothing is lost. Give an answer's `seq` or `cursor` as `since` to get_recent_events to see only what is new. Lines and columns count from 1. \
F#: `Mainstay.display` shows people tables, charts (`Mainstay.line xs ys`) and pictures; you see its text, and pictures.";

/// MCP for one connection, or for all that come over HTTP.
#[derive(Clone)]
pub struct Server {
    pub(super) daemon: McpDaemon,
    /// The client's folder, where it is known.
    pub(super) working_directory: Option<String>,
    /// The session that the connection used last, or the transport's session; a request without either uses it once.
    last_used: Arc<Mutex<Option<SessionId>>>,
    /// Which connection it is, or which session of the transport.
    pub(super) connection: Uuid,
    /// Why the latest calls were cancelled, by their requests.
    reasons: Arc<watch::Sender<VecDeque<Cancelled>>>,
    /// Whether nobody sees what its client is asked: it declined an ask faster than a person can.
    declines_unseen: Arc<AtomicBool>,
    /// Whom a connection stands for; requests over HTTP each say it.
    whose: Option<Arc<Connected>>,
    /// How many calls may be under way: of the connection, or of all that come over HTTP.
    places: Arc<Places>,
    /// Held while a session is created for want of one, so that two calls at once share it.
    pub(super) creation: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled when the client goes, or the daemon has stopped. A call that is cancelled before that is cancelled by the client.
    pub(super) closing: CancellationToken,
    /// Whether the connection, or the transport's session, has had an answer.
    pub(super) first_answer: FirstAnswer,
    /// What the connection follows, or the transport's session: it ends with the last copy of this.
    followers: Arc<Subscriptions>,
    /// The sessions of the transport that their clients have ended.
    ended: EndedSessions,
}

/// A request that was cancelled, and why, where its client says it.
type Cancelled = (RequestId, Option<String>);

/// How long the reason of a cancellation is waited for, which comes with it.
const REASON_COMES: Duration = Duration::from_secs(1);
/// How many such reasons are kept.
const REASONS: usize = 64;

/// A connection: whom it stands for, and the client it was at its last call.
struct Connected {
    access: Access,
    environment: Option<Environment>,
    client: Mutex<Option<Client>>,
}

impl Server {
    /// Creates the server of one connection.
    pub(super) fn for_connection(
        daemon: McpDaemon,
        access: Access,
        (working_directory, environment): (Option<String>, Option<Environment>),
        closing: CancellationToken,
    ) -> Self {
        let whose = Some(Arc::new(Connected { access, environment, client: Mutex::default() }));
        let places = Arc::new(Places::new(daemon.engine.limits().connection_requests, 1));
        Self::new(daemon, working_directory, whose, (places, closing))
    }

    /// Serves requests that have nothing to do with each other.
    pub(super) fn for_all(daemon: McpDaemon) -> Self {
        let closing = daemon.stopped.clone();
        // Requests over HTTP have no connection of their own.
        let principals = daemon.tokens.principals();
        let places = Arc::new(Places::new(daemon.engine.limits().connections, principals));
        Self::new(daemon, None, None, (places, closing))
    }

    fn new(
        daemon: McpDaemon,
        working_directory: Option<String>,
        whose: Option<Arc<Connected>>,
        (places, closing): (Arc<Places>, CancellationToken),
    ) -> Self {
        Self {
            daemon,
            working_directory,
            last_used: Arc::default(),
            connection: Uuid::now_v7(),
            reasons: Arc::default(),
            declines_unseen: Arc::default(),
            whose,
            places,
            creation: Arc::default(),
            closing,
            first_answer: FirstAnswer::default(),
            followers: Arc::default(),
            ended: EndedSessions::default(),
        }
    }

    /// For one session of the transport over HTTP, or one request without: it follows and remembers for itself, and shares all else.
    pub(super) fn for_transport_session(&self) -> Self {
        let Self { daemon, working_directory, whose, places, closing, creation, ended, .. } = self.clone();
        Self { creation, ended, ..Self::new(daemon, working_directory, whose, (places, closing)) }
    }

    /// The sessions of the transport that their clients have ended.
    pub(super) fn ended_sessions(&self) -> &EndedSessions {
        &self.ended
    }

    /// Whether a call is cancelled because its client has gone, and not because anybody wants it to stop.
    pub(super) fn has_lost_client(&self, request: Option<&Parts>) -> bool {
        let session = request.and_then(|parts| parts.headers.get(HEADER_SESSION_ID)?.to_str().ok());
        self.closing.is_cancelled() || session.is_some_and(|session| self.ended.has(session))
    }

    /// The client that makes a call, as it calls itself. A connection stays the client it was at its last call.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] where nothing says whom it stands for.
    pub(super) fn client(&self, request: Option<&Parts>, name: &str) -> Result<Client, Error> {
        let Some(connected) = &self.whose else {
            let access = request.and_then(|parts| parts.extensions.get::<Access>());
            let access = access.cloned().ok_or(Error::Unauthorized)?;
            return Ok(self.daemon.engine.attach(access, name));
        };
        let mut client = connected.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().filter(|client| client.name() == name) {
            return Ok(client.clone());
        }
        let attached = self.daemon.engine.attach(connected.access.clone(), name).as_connection();
        Ok(client.insert(attached.with_environment(connected.environment.clone())).clone())
    }

    /// Notes that the client of this connection has left, though its calls may still be under way.
    pub(super) fn leave(&self) {
        let Some(connected) = &self.whose else { return };
        if let Some(client) = connected.client.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            client.leave();
        }
    }

    /// Notes that the answer to a request has come to the client, which sends nothing more.
    pub(super) fn note_delivered(&self, request: &RequestId) {
        self.daemon.mcp.calls.mark_delivered(self.connection, request);
    }

    /// A place for one more call of whoever makes it.
    fn place(&self, context: &RequestContext<RoleServer>) -> Result<OwnedSemaphorePermit, ErrorData> {
        let request = context.extensions.get::<Parts>();
        let access = match &self.whose {
            Some(connected) => Some(&connected.access),
            None => request.and_then(|parts| parts.extensions.get::<Access>()),
        };
        let principal = access.map_or_else(Principal::local, |access| access.principal.clone());
        self.places.take(&principal).ok_or_else(|| {
            let refused = Error::TooManyRequests { what: "calls".to_owned(), limit: self.places.share() };
            ErrorData::invalid_request(format!("{refused}. {}", refused.next_step()), None)
        })
    }

    fn call(&self, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        self.call_of("", context)
    }

    fn call_of(&self, tool: &str, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        Call::new(self, context, tool).map_err(|error| ErrorData::invalid_request(error.to_string(), None))
    }

    /// Whether all that comes is of one connection.
    pub(super) fn is_connection(&self) -> bool {
        self.whose.is_some()
    }

    /// The session the connection used last.
    pub(super) fn last_used(&self) -> Option<SessionId> {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on in the session that the client used over an earlier connection, where it is still there and may be seen.
    pub(super) async fn use_again(&self, session: SessionId) {
        let Some(connected) = &self.whose else { return };
        let client = self.daemon.engine.attach(connected.access.clone(), "mcp:bridge");
        if client.status(session).await.is_ok() {
            self.use_session(session);
        }
    }

    /// Goes back to the session that the connection used before this one, which is withdrawn.
    pub(super) fn use_instead(&self, withdrawn: SessionId, before: Option<SessionId>) {
        let mut last_used = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        if *last_used == Some(withdrawn) {
            *last_used = before;
        }
    }

    /// Remembers the session the connection uses.
    pub(super) fn use_session(&self, session: SessionId) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Why a call was cancelled, where its client says it.
    pub(super) async fn reason_of_cancel(&self, call: &Call) -> Option<String> {
        // It is said by a notification, which the newest protocol has none of over HTTP: its connection ends.
        if call.is_of_newest() && !self.is_connection() {
            return None;
        }
        self.cancelled_by_client(call.request()).await?
    }

    /// What a client said as it cancelled this request; none where it said nothing of the kind.
    pub(super) async fn cancelled_by_client(&self, request: &RequestId) -> Option<Option<String>> {
        let is_of = |(cancelled, _): &Cancelled| cancelled == request;
        let mut reasons = self.reasons.subscribe();
        let said = timeout(REASON_COMES, reasons.wait_for(|reasons| reasons.iter().any(is_of)));
        let reasons = said.await.ok()?.ok()?;
        reasons.iter().find(|reason| is_of(reason)).map(|(_, reason)| reason.clone())
    }

    /// What a model is told once, by the names that it is shown.
    fn instructions(&self) -> String {
        let names = self.daemon.mcp.settings.names;
        INSTRUCTIONS
            .replace(SendCode::NAME, names.of::<SendCode>())
            .replace(GetRecentEvents::NAME, names.of::<GetRecentEvents>())
    }

    /// Whether nobody sees what its client is asked.
    pub(super) fn declines_unseen(&self) -> bool {
        self.declines_unseen.load(Ordering::Relaxed)
    }

    /// Nobody sees what its client is asked.
    pub(super) fn note_unseen_decline(&self) {
        self.declines_unseen.store(true, Ordering::Relaxed);
    }

    /// Carries out a call of a tool, and answers it in time.
    async fn called(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let is_urgent = [CancelEval::NAME, AnswerAsk::NAME, GetResult::NAME].contains(&&*request.name);
        let place = match self.place(&context) {
            Err(refused) if !is_urgent => return Err(refused),
            place => place.ok(),
        };
        let listed = TOOLS.iter().find(|tool| tool.called(&request.name).is_some());
        let waits = listed.map(|tool| tool.waits);
        let has_place = place.is_some() || waits != Some(Waits::Itself);
        let call = Arc::new(self.call_of(&request.name, &context)?.in_place(has_place));
        let wait = match waits {
            Some(Waits::Itself) => None,
            Some(Waits::AsAsked) => Some(tool::wait(&call, request.arguments.as_ref())),
            Some(Waits::Briefly) | None => Some(tool::wait(&call, None)),
        };
        let carried_out = {
            let call = Arc::clone(&call);
            async move {
                // What goes on behind its answer holds its place.
                let _place = place;
                let wanted = context.meta.log_level();
                let carried_out = async {
                    match request.request_state.as_deref() {
                        Some(state) => {
                            let opened = state::open(&call, state)?;
                            tasks::resume(&call, opened, request).await
                        }
                        None => {
                            tool::carry_out(&request.name, request.arguments.unwrap_or_default(), &call).await
                        }
                    }
                };
                logging::beside(&call, &context.peer, wanted, carried_out).await
            }
        };
        let answer = deadline::answer(&call, wait, carried_out).await;
        answer.map(|answer| repeats::with_session(answer, call.repeatable(), self.last_used()))
    }
}

impl ServerHandler for Server {
    #[expect(deprecated, reason = "clients of every protocol that is spoken may ask for a log")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mainstay", self.daemon.version))
            .with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let _place = self.place(&context)?;
        let call = self.call(&context)?;
        let (names, results, habits) = (call.names(), call.results(), call.habits());
        let tools = of_principal(call.client()).map(|tool| tool.described(names, results, habits)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find_map(|tool| tool.called(name)).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The futures of all tools together are too much for a thread's stack, where `rmcp` holds those of its handlers.
        Box::pin(self.called(request, context)).await
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        if let Some(request) = cancelled.request_id {
            self.reasons.send_modify(|reasons| {
                reasons.push_back((request, cancelled.reason));
                if reasons.len() > REASONS {
                    reasons.pop_front();
                }
            });
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let _place = self.place(&context)?;
        tasks::get(&self.call(&context)?, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A task that waits for this may have taken the last place.
        let _place = self.place(&context).ok();
        tasks::update(&self.call(&context)?, &request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let _place = self.place(&context).ok();
        tasks::cancel(&self.call(&context)?, &request.task_id).await
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let _place = self.place(&context)?;
        let call = self.call(&context)?;
        // Clients of the newest protocol listen where they want to hear it.
        if context.meta.protocol_version().is_none() {
            let peer = context.peer.clone();
            let tell = told(move || {
                let peer = peer.clone();
                async move { peer.notify_resource_list_changed().await }
            });
            let followed = self.followers.follow_list(call.client(), tell).await;
            followed.map_err(|error| error::of_protocol(&error))?;
        }
        let listed = resources::list(&call).await;
        Ok(ListResourcesResult::with_all_items(listed.map_err(|error| error::of_protocol(&error))?))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _place = self.place(&context)?;
        resources::read(&self.call(&context)?, &request.uri).await.map(ReadResourceResponse::from)
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let _place = self.place(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        prompts::get(&self.call(&context)?, &request.name, arguments).await.map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let _place = self.place(&context)?;
        let completed = completion::complete(&self.call(&context)?, &request).await;
        completed.map(CompleteResult::new).map_err(|error| error::of_protocol(&error))
    }

    #[expect(deprecated, reason = "clients of the older protocols say it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let _place = self.place(&context)?;
        let call = self.call(&context)?;
        let followed = self.followers.follow_log(call.client(), &context.peer, request.level).await;
        followed.map_err(|error| error::of_protocol(&error))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (_place, uri) = (self.place(&context)?, request.uri);
        let address = resources::address(&uri)?;
        let (peer, name) = (context.peer.clone(), uri.clone());
        let tell = told(move || {
            let (peer, uri) = (peer.clone(), name.clone());
            async move { peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await }
        });
        let call = self.call(&context)?;
        let followed = self.followers.follow(call.client(), (&uri, &address), tell).await;
        followed.map_err(|error| resources::refused(&uri, &error))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.followers.let_go(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.resources_list_changed = requested.resources_list_changed;
        let is_ours = |uri: &&String| Address::read(uri).is_some();
        let of_ours =
            |uris: &Vec<String>| uris.iter().filter(is_ours).take(subscriptions::MOST).cloned().collect();
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(of_ours);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _place = self.place(context.request_context())?;
        let call = self.call(context.request_context())?;
        let accepted = context.accepted();
        let mut followed: Vec<BoxFuture<'_, ()>> = Vec::new();
        for uri in accepted.resource_subscriptions.iter().flatten() {
            let (sink, name) = (context.sink().clone(), uri.clone());
            let tell = told(move || {
                let (sink, uri) = (sink.clone(), name.clone());
                async move { sink.notify_resource_updated(uri).await }
            });
            let found = Subscribable::of(call.client(), &resources::address(uri)?).await;
            let found = found.map_err(|error| resources::refused(uri, &error))?;
            followed.push(Box::pin(found.tell_of_changes(tell)));
        }
        if accepted.resources_list_changed == Some(true) {
            let sink = context.sink().clone();
            let tell = told(move || {
                let sink = sink.clone();
                async move { sink.notify_resource_list_changed().await }
            });
            let list = Subscribable::list(call.client()).await.map_err(|error| error::of_protocol(&error))?;
            followed.push(Box::pin(list.tell_of_changes(tell)));
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.closing.cancelled() => {}
            // What is gone stays followed by nobody; the client ends the request.
            () = async { join_all(followed).await; std::future::pending().await } => {}
        }
        Ok(())
    }
}

/// Tells by sending this.
fn told<F, E>(send: impl Fn() -> F + Send + Sync + 'static) -> NotifyChange
where
    F: Future<Output = Result<(), E>> + Send + 'static,
{
    Box::new(move || {
        let sent = send();
        Box::pin(async move { sent.await.is_ok() })
    })
}

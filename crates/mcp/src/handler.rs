//! What `rmcp` calls: who we are, which tools there are, and one call.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::eval::SendCode;
use super::events::GetRecentEvents;
use super::get_result::GetResult;
use super::needs::Waits;
use super::offer::of_principal;
use super::resources::uri::Address;
use super::server::Server;
use super::subscriptions::{self, NotifyChange, Subscribable};
use super::tool::Tool as _;
use super::tools::{self, TOOLS};
use super::{completion, deadline, error, logging, prompts, repeats, resources, state, tasks};

/// What a model is told once. What changes is said by the session's status and by refusals.
const INSTRUCTIONS: &str = "send_code runs code in a session: a REPL (F#, Python, other languages) or their notebooks. Definitions stay until a \
reset, across crashes and restarts; people and other agents may share them. `sessionId` is a session's id, the end of it, or its name; \
without it a tool takes the session you used last, else the most recently active one, and runs code in a new one if there is none. A refused \
call says what is offered instead. A call that takes longer than its `wait` is answered `still running` with an id: get_result waits on, and \
nothing is lost. Give an answer's `seq` or `cursor` as `since` to get_recent_events to see only what is new. Lines and columns count from 1. \
F#: `Mainstay.display` shows people tables, charts (`Mainstay.line xs ys`) and pictures; you see its text, and pictures.";

impl Server {
    fn call(&self, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        self.call_of("", context)
    }

    fn call_of(&self, tool: &str, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        Call::new(self, context, tool, &TOOLS)
            .map_err(|error| ErrorData::invalid_request(error.to_string(), None))
    }

    /// What a model is told once, by the names that it is shown.
    fn instructions(&self) -> String {
        let names = self.daemon.mcp.settings.names;
        INSTRUCTIONS
            .replace(SendCode::NAME, names.of::<SendCode>())
            .replace(GetRecentEvents::NAME, names.of::<GetRecentEvents>())
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
            Some(Waits::AsAsked) => Some(tools::wait(&call, request.arguments.as_ref())),
            Some(Waits::Briefly) | None => Some(tools::wait(&call, None)),
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
                            tools::carry_out(&request.name, request.arguments.unwrap_or_default(), &call)
                                .await
                        }
                    }
                };
                logging::beside(call.client(), &context.peer, wanted, carried_out).await
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
        let tools = of_principal(call.client(), call.tools())
            .map(|tool| tool.described(names, results, habits))
            .collect();
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
            self.note_cancel(request, cancelled.reason);
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
        self.followers.accept(self.daemon.engine.published());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let since = self.followers.listen();
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
            let found = Subscribable::of(call.client(), &resources::address(uri)?, since).await;
            let found = found.map_err(|error| resources::refused(uri, &error))?;
            followed.push(Box::pin(found.tell_of_changes(tell)));
        }
        if accepted.resources_list_changed == Some(true) {
            let sink = context.sink().clone();
            let tell = told(move || {
                let sink = sink.clone();
                async move { sink.notify_resource_list_changed().await }
            });
            let list = Subscribable::list(call.client(), since).await;
            let list = list.map_err(|error| error::of_protocol(&error))?;
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

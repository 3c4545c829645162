//! The product's handler, and before it the tools, resources and prompts that the suite knows by name. What is none of them is the
//! product's, and so is what stands behind most of them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_mcp::Server;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ContentBlock, DetailedTask, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, InputRequiredResult, InputResponses, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, TaskPayload, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::kernel::{self, Step};
use crate::tools::{self, Behind};
use crate::{prompts, resources};

/// The handler that answers with fixtures.
pub(crate) struct Fixtures {
    pub(crate) ours: Server,
    /// Where sessions are made.
    pub(crate) folder: PathBuf,
    /// The tasks that fail behind the product's back.
    pub(crate) broken_tasks: Arc<Mutex<HashSet<String>>>,
}

type Context = RequestContext<RoleServer>;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// That a client must be able to do this.
fn missing(capabilities: Value) -> ErrorData {
    ErrorData::missing_required_client_capability(read(capabilities))
}

impl Fixtures {
    /// Has the product carry out a call of its own tool.
    async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = CallToolRequestParams::new(tool).with_arguments(read(arguments));
        // Without a box, unoptimized code has more on the stack than a thread of the runtime has.
        Box::pin(self.ours.call_tool(call, context.clone())).await
    }

    /// What the answer to a call of the product's own tool says in `member`.
    async fn told(
        &self,
        tool: &'static str,
        arguments: Value,
        member: &str,
        context: &Context,
    ) -> Result<Value, ErrorData> {
        match self.call(tool, arguments, context).await? {
            CallToolResponse::Complete(result) => {
                Ok(result.structured_content.map(|mut told| told[member].take()).unwrap_or_default())
            }
            other => Err(ErrorData::internal_error(format!("{tool} gave {other:?}"), None)),
        }
    }

    /// A session of its own, in a folder.
    async fn session(&self, folder: &str, context: &Context) -> Result<Value, ErrorData> {
        let folder = self.folder.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        self.told("create_session", json!({ "workingDirectory": folder }), "sessionId", context).await
    }

    /// What the product answers where this code runs.
    async fn eval(&self, steps: &[Step], context: &Context) -> Result<CallToolResponse, ErrorData> {
        let session = self.session("work", context).await?;
        self.call("send_code", json!({ "sessionId": session, "code": kernel::code(steps) }), context).await
    }

    async fn carry_out(
        &self,
        behind: Behind,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let declared = context.client_capabilities().unwrap_or_default();
        match behind {
            // What the product sealed it opens again.
            Behind::Code(_) | Behind::Task(_) if request.request_state.is_some() => {
                Box::pin(self.ours.call_tool(request, context)).await
            }
            Behind::Code(steps) => self.eval(&steps, &context).await,
            Behind::Task(_) | Behind::BrokenTask(_) if !declared.supports_tasks() => {
                Err(missing(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })))
            }
            Behind::Task(steps) => self.eval(&steps, &context).await,
            Behind::BrokenTask(steps) => {
                let answer = self.eval(&steps, &context).await?;
                if let CallToolResponse::Task(created) = &answer {
                    let mut broken = self.broken_tasks.lock().unwrap_or_else(PoisonError::into_inner);
                    broken.insert(created.task.task_id.clone());
                }
                Ok(answer)
            }
            Behind::Restart => {
                let session = self.session("work", &context).await?;
                self.call("hard_reset_session", json!({ "sessionId": session }), &context).await?;
                Ok(text("started anew"))
            }
            Behind::Content(content) => Ok(CallToolResult::success(read(content)).into()),
            Behind::Sampling => sample(&declared, request, &context).await,
            Behind::Input(requests) => {
                let requests = requests(&serde_json::to_value(&declared).unwrap());
                Ok(match input(&requests, request.input_responses.as_ref()) {
                    Some(required) => required.into(),
                    None => text(&format!("{:?}", request.input_responses)),
                })
            }
            Behind::NeedsSampling if declared.sampling.is_none() => Err(missing(json!({ "sampling": {} }))),
            Behind::NeedsSampling => Ok(text("done")),
        }
    }
}

/// What the client's model says.
#[expect(deprecated, reason = "the suite asks for it in the versions that have it")]
async fn sample(
    declared: &ClientCapabilities,
    request: CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    if declared.sampling.is_none() {
        return Err(missing(json!({ "sampling": {} })));
    }
    let prompt =
        request.arguments.as_ref().and_then(|arguments| arguments["prompt"].as_str()).unwrap_or_default();
    let answered = context.peer.create_message(read(tools::sampling(prompt)["params"].take())).await;
    match answered {
        Ok(answer) => Ok(text(&format!("LLM response: {answer:?}"))),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// What is still to be asked; none where all was answered.
pub(crate) fn input(requests: &Value, responses: Option<&InputResponses>) -> Option<InputRequiredResult> {
    let is_answered = |name: &String| {
        let answer = responses.and_then(|responses| responses.get(name));
        answer.is_some_and(Value::is_object)
    };
    if requests.as_object().unwrap().keys().all(is_answered) && !requests.as_object().unwrap().is_empty() {
        return None;
    }
    Some(InputRequiredResult::new(Some(read(requests.clone())), Some("asked".to_owned())))
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.ours.get_info()
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.ours.list_tools(page, context).await?;
        listed.tools.splice(0..0, tools::all().iter().map(tools::Fixture::listed));
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name).map(|tool| tool.listed()).or_else(|| self.ours.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match tools::named(&request.name) {
            Some(tool) => {
                let behind = tool.behind(&request.arguments.clone().unwrap_or_default());
                Box::pin(self.carry_out(behind, request, context)).await
            }
            None => Box::pin(self.ours.call_tool(request, context)).await,
        }
    }

    async fn get_task(&self, request: GetTaskParams, context: Context) -> Result<GetTaskResult, ErrorData> {
        let id = request.task_id.clone();
        let found = self.ours.get_task(request, context).await?;
        let is_broken = self.broken_tasks.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
        if !is_broken || !matches!(found.task.payload, TaskPayload::Completed { .. }) {
            return Ok(found);
        }
        let error: JsonObject = read(json!({ "code": ErrorCode::INTERNAL_ERROR.0, "message": "it broke" }));
        Ok(GetTaskResult::new(DetailedTask::new(found.task.task, TaskPayload::Failed { error })))
    }

    async fn update_task(&self, request: UpdateTaskParams, context: Context) -> Result<(), ErrorData> {
        self.ours.update_task(request, context).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: Context) -> Result<(), ErrorData> {
        self.ours.cancel_task(request, context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.ours.list_resources(page, context).await?;
        listed.resources.extend(resources::listed());
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.ours.list_resource_templates(page, context).await?;
        listed.resource_templates.push(resources::template());
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resources::read(&request.uri) {
            Some(found) => Ok(found.into()),
            None => self.ours.read_resource(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.ours.list_prompts(page, context).await?;
        listed.prompts.extend(prompts::listed());
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        match prompts::get(&request) {
            Some(found) => Ok(found),
            None => self.ours.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        self.ours.complete(request, context).await
    }

    #[expect(deprecated, reason = "clients of the older protocols say it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.ours.set_level(request, context).await
    }

    #[expect(deprecated, reason = "clients of the older protocols say it")]
    async fn subscribe(
        &self,
        mut request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        request.uri = resources::followed(request.uri);
        self.ours.subscribe(request, context).await
    }

    #[expect(deprecated, reason = "clients of the older protocols say it")]
    async fn unsubscribe(
        &self,
        mut request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        request.uri = resources::followed(request.uri);
        self.ours.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.ours.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.ours.listen(context).await
    }
}

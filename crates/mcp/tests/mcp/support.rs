//! A daemon over a store of its own, and agents that speak MCP to it.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use mainstay_engine::{Client, Engine};
use mainstay_gateway::Daemon;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_mcp::{Mcp, McpDaemon, Shared, serve_stream};
use mainstay_model::{Access, Limits, Principal, Rights, SessionId, Timestamp};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, GetMeta,
    Implementation, ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
    ServerResult,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService, ServiceError,
};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceExt};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, DuplexStream, ReadBuf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use mainstay_runner::RunnerFactory;
use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};
use mainstay_test_support::scripted_kernel::Scripted;

/// The local principal's token is `secret`, and `ada`, who sees and drives her own sessions, has `hers`.
fn tokens() -> Tokens {
    let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
    let ada = Access { principal: Principal::new("ada").unwrap(), rights };
    Tokens::new("secret", [(TokenHash::of("hers"), ada)])
}

/// A daemon in a home folder of its own.
pub(crate) struct Home {
    pub(crate) daemon: Daemon,
    /// What the connections of MCP share.
    pub(crate) mcp: Arc<Shared>,
    folder: TempDir,
}

impl Home {
    pub(crate) async fn new() -> Self {
        Self::on_port(0).await
    }

    /// With the loopback port it listens on.
    pub(crate) async fn on_port(port: u16) -> Self {
        Self::open(port, Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::open(0, limits).await
    }

    /// With agents, which do what the test says.
    pub(crate) async fn of_agents() -> (Self, Script) {
        let (agents, script) = ScriptedAgents::new();
        (Self::open_with(0, Limits::default(), vec![Arc::new(agents)]).await, script)
    }

    async fn open(port: u16, limits: Limits) -> Self {
        Self::open_with(port, limits, vec![Arc::new(Scripted)]).await
    }

    async fn open_with(port: u16, limits: Limits, factories: Vec<Arc<dyn RunnerFactory>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let engine = Engine::open(
            Arc::new(log),
            factories,
            Limits { cancel_grace_ms: 1_000, drain_ms: 100, ..limits },
        )
        .await
        .unwrap();
        let daemon = Daemon {
            engine,
            tokens: Arc::new(tokens()),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port,
            remote: None,
            own_ports: Arc::default(),
            links: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver: Default::default(),
            kinds: Default::default(),
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        Self { daemon, mcp: Arc::default(), folder }
    }

    /// The daemon as the connections of MCP see it.
    pub(crate) fn of_mcp(&self) -> McpDaemon {
        McpDaemon::new(self.daemon.clone(), Arc::clone(&self.mcp))
    }

    /// A daemon that serves MCP alone.
    pub(crate) fn protocols(&self) -> Protocols {
        Protocols::from(Mcp::sharing(Arc::clone(&self.mcp)))
    }

    /// A folder for sessions, which need not exist.
    pub(crate) fn folder(&self, name: &str) -> String {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder.display().to_string()
    }

    /// An agent on a stream, at work in the folder `work`.
    pub(crate) async fn agent(&self) -> Agent {
        self.agent_in("work").await
    }

    /// An agent on a stream, at work in a folder.
    pub(crate) async fn agent_in(&self, folder: &str) -> Agent {
        let (theirs, _) = self.stream(Some(self.folder(folder)));
        Agent::over(theirs).await
    }

    /// An agent of a principal that sees and drives its own sessions only.
    pub(crate) async fn agent_of(&self, principal: &str) -> Agent {
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        let access = Access { principal: Principal::new(principal).unwrap(), rights };
        let (theirs, _) = self.stream_of(access, Some(self.folder("work")));
        Agent::over(theirs).await
    }

    /// An agent of a principal that sees the sessions of this name, and drives its own only.
    pub(crate) async fn agent_who_sees(&self, principal: &str, name: &str) -> Agent {
        let rights = Rights::Some { see: vec![name.parse().unwrap()], drive: Vec::new() };
        let access = Access { principal: Principal::new(principal).unwrap(), rights };
        let (theirs, _) = self.stream_of(access, Some(self.folder("work")));
        Agent::over(theirs).await
    }

    /// One of the newest protocol, which shows no forms and knows tasks.
    pub(crate) async fn newest_agent_of(&self, principal: &str) -> Agent {
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        self.newest_agent_with_access(Access { principal: Principal::new(principal).unwrap(), rights }).await
    }

    /// The same of a principal with these rights.
    pub(crate) async fn newest_agent_with_access(&self, access: Access) -> Agent {
        let (theirs, _) = self.stream_of(access, Some(self.folder("work")));
        Agent::newest_over(theirs, Listener { knows_tasks: true, ..Listener::default() }).await
    }

    /// An agent of which this is known when it connects.
    pub(crate) async fn agent_with_context(&self, context: ClientContext) -> Agent {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        tokio::spawn(serve_stream(read, write, self.of_mcp(), Access::local(), context));
        Agent::over(theirs).await
    }

    /// The client's end of a stream that is served.
    pub(crate) fn stream(&self, folder: Option<String>) -> (DuplexStream, JoinHandle<()>) {
        self.stream_of(Access::local(), folder)
    }

    fn stream_of(&self, access: Access, folder: Option<String>) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        let context = ClientContext { working_directory: folder, ..ClientContext::default() };
        (theirs, tokio::spawn(serve_stream(read, write, self.of_mcp(), access, context)))
    }

    /// The client's end of a stream that is served, and word of when the daemon has read all that came through it.
    pub(crate) fn watched_stream(&self, folder: &str) -> (DuplexStream, oneshot::Receiver<()>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        let (told, end) = oneshot::channel();
        let read = ToldAtEnd { read, told: Some(told) };
        tokio::spawn(serve_stream(
            read,
            write,
            self.of_mcp(),
            Access::local(),
            ClientContext { working_directory: Some(self.folder(folder)), ..ClientContext::default() },
        ));
        (theirs, end)
    }

    /// A client of the local principal.
    pub(crate) fn local(&self) -> Client {
        self.daemon.engine.attach(Access::local(), "test")
    }

    /// The one session there is.
    pub(crate) async fn session(&self) -> SessionId {
        let sessions = self.local().sessions(Default::default()).await.unwrap();
        let [session] = sessions.as_slice() else { panic!("{} sessions", sessions.len()) };
        session.id
    }

    /// Waits until the one session is in a state.
    pub(crate) async fn reaches(&self, state: &str) {
        let id = self.session().await;
        let local = self.local();
        let reached = async {
            let mut session = local.status(id).await.unwrap().session;
            let mut events = local.subscribe(id, session.last_seq).await.unwrap();
            while session.state().name() != state {
                events.next().await.unwrap();
                session = local.status(id).await.unwrap().session;
            }
        };
        timeout(Duration::from_secs(10), reached).await.unwrap();
    }

    /// Where no test looks at a folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A reader that tells when its end was read.
struct ToldAtEnd<R> {
    read: R,
    told: Option<oneshot::Sender<()>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for ToldAtEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.read).poll_read(context, buffer);
        if polled.is_ready()
            && buffer.filled().len() == before
            && let Some(told) = self.told.take()
        {
            told.send(()).ok();
        }
        polled
    }
}

/// An MCP client that the tests drive.
pub(crate) struct Agent {
    pub(crate) service: RunningService<RoleClient, Listener>,
}

impl Agent {
    pub(crate) async fn over<T, E, A>(transport: T) -> Self
    where
        T: rmcp::transport::IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        Self { service: Listener::default().serve(transport).await.unwrap() }
    }

    /// One of the newest protocol.
    pub(crate) async fn newest_over<T, E, A>(transport: T, listener: Listener) -> Self
    where
        T: rmcp::transport::IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let lifecycle =
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        Self { service: listener.serve_with_lifecycle(transport, lifecycle).await.unwrap() }
    }

    /// One that asks for a version of the protocol, in the way of that version.
    pub(crate) async fn of_version<T, E, A>(version: &ProtocolVersion, transport: T) -> Self
    where
        T: rmcp::transport::IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let listener = Listener { version: Some(version.clone()), ..Listener::default() };
        let lifecycle = match *version == ProtocolVersion::V_2026_07_28 {
            true => ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] },
            false => ClientLifecycleMode::Initialize,
        };
        Self { service: listener.serve_with_lifecycle(transport, lifecycle).await.unwrap() }
    }

    /// Calls a tool; the protocol must carry it.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Reply {
        self.try_call(tool, arguments).await.unwrap()
    }

    pub(crate) async fn try_call(&self, tool: &'static str, arguments: Value) -> Result<Reply, ServiceError> {
        let result = self.begin(tool, arguments).await.await_response().await?;
        let ServerResult::CallToolResult(result) = result else { panic!("{result:?}") };
        Ok(Reply::from(result))
    }

    /// Sends a call without waiting for its answer.
    pub(crate) async fn begin(&self, tool: &'static str, arguments: Value) -> RequestHandle<RoleClient> {
        self.begin_with(tool, arguments, &Value::Object(Default::default())).await
    }

    /// The same with these members of its `_meta`.
    pub(crate) async fn begin_with(
        &self,
        tool: &'static str,
        arguments: Value,
        meta: &Value,
    ) -> RequestHandle<RoleClient> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let call = CallToolRequest::new(CallToolRequestParams::new(tool).with_arguments(arguments));
        let mut request = ClientRequest::CallToolRequest(call);
        for (name, value) in meta.as_object().unwrap() {
            request.get_meta_mut().insert(name.clone(), value.clone());
        }
        self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
    }

    /// Runs code through the tool `send_code`.
    pub(crate) async fn send(&self, code: &str) -> Reply {
        self.call("send_code", serde_json::json!({ "code": code })).await
    }

    /// What it heard of progress.
    pub(crate) fn progress(&self) -> Vec<(f64, String)> {
        self.service.service().heard.borrow().clone()
    }

    /// Waits until it has heard of progress.
    pub(crate) async fn hears_progress(&self) {
        self.hears(|heard| !heard.is_empty()).await;
    }

    /// Waits until it has heard this after so much other progress.
    pub(crate) async fn hears_after(&self, before: usize, words: &str) {
        self.hears(|heard| heard[before..].iter().any(|(_, said)| said == words)).await;
    }

    async fn hears(&self, enough: impl FnMut(&Vec<(f64, String)>) -> bool) {
        let mut heard = self.service.service().heard.subscribe();
        timeout(Duration::from_secs(10), heard.wait_for(enough)).await.unwrap().unwrap();
    }
}

/// The answer of a tool call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) structured: Value,
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Each with its type.
    pub(crate) pictures: Vec<(String, String)>,
}

impl From<CallToolResult> for Reply {
    fn from(result: CallToolResult) -> Self {
        let [text, pictures @ ..] = result.content.as_slice() else { panic!("{:?}", result.content) };
        let picture = |content: &ContentBlock| {
            let picture = content.as_image().unwrap_or_else(|| panic!("{content:?}"));
            (picture.mime_type.clone(), picture.data.clone())
        };
        Self {
            text: text.as_text().unwrap().text.clone(),
            pictures: pictures.iter().map(picture).collect(),
            structured: result.structured_content.unwrap_or_default(),
            is_error: result.is_error == Some(true),
        }
    }
}

impl Reply {
    /// The session it names.
    pub(crate) fn session(&self) -> String {
        self.structured["sessionId"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

/// What stands for the list of tools among what has changed.
pub(crate) const TOOLS_CHANGED: &str = "tools";

/// Remembers what it heard of progress, and how often of changes: of each resource, and, without an address, of their list.
#[derive(Clone, Default)]
pub(crate) struct Listener {
    /// The version it asks for; without one the newest that begins with `initialize`.
    pub(crate) version: Option<ProtocolVersion>,
    /// What it calls itself, where not a name that nobody knows.
    pub(crate) name: Option<&'static str>,
    pub(crate) heard: Arc<watch::Sender<Vec<(f64, String)>>>,
    pub(crate) changed: Arc<watch::Sender<BTreeMap<String, usize>>>,
    /// What was logged for it.
    #[expect(deprecated, reason = "clients of every protocol that is spoken may ask for a log")]
    pub(crate) logged: Arc<watch::Sender<Vec<(rmcp::model::LoggingLevel, Value)>>>,
    /// What a person does with the forms that are shown; none where it shows none.
    pub(crate) forms: Option<Arc<Forms>>,
    pub(crate) knows_tasks: bool,
}

/// Forms that a person answers in order; what there is no answer for stays open until it is taken back.
#[derive(Default)]
pub(crate) struct Forms {
    pub(crate) answers: Mutex<VecDeque<ElicitResult>>,
    pub(crate) shown: watch::Sender<Vec<Value>>,
    pub(crate) taken_back: watch::Sender<usize>,
}

impl Forms {
    pub(crate) fn answered(answers: impl IntoIterator<Item = ElicitResult>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }
}

/// What a person filled in.
pub(crate) fn accept(content: Value) -> ElicitResult {
    ElicitResult::new(ElicitationAction::Accept).with_content(content)
}

impl Listener {
    fn note(&self, uri: String) {
        self.changed.send_modify(|changed| *changed.entry(uri).or_default() += 1);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = match self.knows_tasks {
            true => ClientCapabilities::builder().enable_tasks().build(),
            false => ClientCapabilities::default(),
        };
        capabilities.elicitation = self.forms.as_ref().map(|_| ElicitationCapability::default());
        let name = self.name.unwrap_or("tester");
        let config = ClientConfig::new(capabilities, Implementation::new(name, "1"));
        match &self.version {
            Some(version) => config.with_protocol_version(version.clone()),
            None => config,
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let forms = self.forms.as_ref().unwrap();
        forms.shown.send_modify(|shown| shown.push(serde_json::to_value(&request).unwrap()));
        let answer = forms.answers.lock().unwrap().pop_front();
        if let Some(answer) = answer {
            return Ok(answer);
        }
        context.ct.cancelled().await;
        forms.taken_back.send_modify(|count| *count += 1);
        Ok(ElicitResult::new(ElicitationAction::Cancel))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let said = (progress.progress, progress.message.unwrap_or_default());
        self.heard.send_modify(|heard| heard.push(said));
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note(updated.uri);
    }

    #[expect(deprecated, reason = "clients of every protocol that is spoken may ask for a log")]
    async fn on_logging_message(
        &self,
        message: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logged.send_modify(|logged| logged.push((message.level, message.data)));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note(TOOLS_CHANGED.to_owned());
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note(String::new());
    }
}

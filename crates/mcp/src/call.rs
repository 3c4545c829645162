//! One call: on whose behalf, on which session, and whether someone still waits for it.
//!
//! A call that names no session takes the one that [`super::session_resolver`] says. Where there is none, what runs or looks at code creates one.

mod commands;
mod progress;
mod session;

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use mainstay_engine::Client;
use mainstay_model::{AskId, Error, Limits, Response};
use rmcp::model::{CallToolResponse, ClientCapabilities, RequestId};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use super::bounds::{LONGEST_WAIT, Within};
use super::clients::{ClientProfile, RESULTS, Results};
use super::listed::Listed;
use super::names::Names;
use super::repeats::Repeatable;
use super::running_calls::{Origin, RunningCall, RunningCalls};
use super::running_command::{Continued, RunningCommand};
use super::server::Server;
use mainstay_gateway::command::anonymous;
use mainstay_gateway::trace::within;

/// The longest name of a client that is kept, in characters.
const CLIENT_NAME: usize = 60;
/// The header that says it for a request over HTTP.
const RESULTS_HEADER: &str = "mainstay-results";

/// One call of a tool, with what it needs to answer.
pub(super) struct Call {
    server: Server,
    /// Every tool, in the order in which clients list them.
    tools: &'static [Listed],
    context: RequestContext<RoleServer>,
    client: Client,
    /// What its client calls itself.
    name: String,
    /// The client's folder, where it is known.
    folder: Option<String>,
    under_way: Arc<RunningCall>,
    /// What its bridge says of it.
    repeatable: Repeatable,
    /// What is to be said of the session that was created for want of one.
    created: OnceLock<String>,
    /// Whether it counts among the calls that may be under way.
    has_place: bool,
    /// Whether a command has the call's id.
    is_id_taken: AtomicBool,
    said: AtomicU32,
    /// When its client heard of it last.
    heard: Mutex<Instant>,
    /// Cancelled when its client's user cancels it.
    cancelled: CancellationToken,
    /// What answers it before it is carried out.
    instead: SetOnce<CallToolResponse>,
    /// What it goes on with, where it repeats a call that was answered so.
    continued: OnceLock<Continued>,
}

impl Call {
    /// A call of this tool, or another request, that just came in.
    ///
    /// # Errors
    /// [`Error::Unauthorized`].
    pub(super) fn new(
        server: &Server,
        context: &RequestContext<RoleServer>,
        tool: &str,
        tools: &'static [Listed],
    ) -> Result<Self, Error> {
        let name = client_name(context);
        let request = context.extensions.get::<Parts>();
        let client = server.client(request, &format!("mcp:{name}"))?;
        let client = match request {
            Some(request) => within(client, request),
            None => client,
        };
        let folder = server.working_directory.clone();
        let folder = folder.or_else(|| folder_of(request?.uri.query()?));
        let repeatable = Repeatable::of(&context.meta);
        let id = repeatable.command().cloned().unwrap_or_else(anonymous);
        let origin = Origin {
            connection: server.connection,
            request: context.id.clone(),
            closing: server.closing.clone(),
        };
        let under_way = RunningCall::new(id, client.source(), tool, origin);
        Ok(Self {
            server: server.clone(),
            tools,
            context: context.clone(),
            client,
            name,
            folder,
            under_way: Arc::new(under_way),
            repeatable,
            created: OnceLock::new(),
            has_place: true,
            is_id_taken: AtomicBool::new(false),
            said: AtomicU32::new(0),
            heard: Mutex::new(Instant::now()),
            cancelled: CancellationToken::new(),
            instead: SetOnce::new(),
            continued: OnceLock::new(),
        })
    }

    /// The same; where there is no place for it among the calls under way, it does not wait.
    pub(super) fn in_place(self, has_place: bool) -> Self {
        Self { has_place, ..self }
    }

    /// That a session was created for want of one, in a sentence: it may be of another kind than its client meant.
    pub(super) fn created(&self) -> Option<String> {
        self.created.get().cloned()
    }

    /// What is kept of it while it is under way.
    pub(super) fn under_way(&self) -> &Arc<RunningCall> {
        &self.under_way
    }

    /// All calls that are under way.
    pub(super) fn calls(&self) -> &RunningCalls {
        &self.server.daemon.mcp.calls
    }

    /// How long it waits for what takes its time: as asked for, or as fits its client, which gives it up after some time.
    pub(super) fn patience(&self, asked: Option<Within<0, LONGEST_WAIT>>) -> Result<Duration, Error> {
        let habits = self.habits();
        let usual = self.server.daemon.mcp.settings.wait;
        let usual = usual.unwrap_or_else(|| u32::try_from(habits.wait.as_secs()).unwrap_or(LONGEST_WAIT));
        let wait = Within::given(asked, "wait", usual)?;
        // One that has no place among those under way does not wait.
        let longest = if self.has_place { habits.longest_wait } else { Duration::ZERO };
        Ok(Duration::from_secs(wait.into()).min(longest))
    }

    /// How its client treats what it is answered.
    pub(super) fn habits(&self) -> &'static ClientProfile {
        ClientProfile::of(&self.name)
    }

    /// The names of tools that its client is shown.
    pub(super) fn names(&self) -> Names {
        self.server.daemon.mcp.settings.names
    }

    /// In what form its client is given results: as the request says, else as the settings say, else as fits the client.
    pub(super) fn results(&self) -> Results {
        let meta = self.context.meta.get(RESULTS).and_then(|form| form.as_str());
        let header = || self.context.extensions.get::<Parts>()?.headers.get(RESULTS_HEADER)?.to_str().ok();
        let asked = meta.or_else(header).and_then(Results::named);
        asked
            .or(self.server.daemon.mcp.settings.results)
            .unwrap_or_else(|| self.habits().results(self.context.protocol_version().as_ref()))
    }

    /// What its bridge says of it.
    pub(super) fn repeatable(&self) -> &Repeatable {
        &self.repeatable
    }

    /// The id of the client's request that it answers, by which a cancellation names it.
    pub(super) fn request(&self) -> &RequestId {
        &self.context.id
    }

    /// The server of its connection.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Every tool, in the order in which clients list them.
    pub(super) fn tools(&self) -> &'static [Listed] {
        self.tools
    }

    /// Whether the tool of this neutral name comes after what runs in its session.
    pub(super) fn is_in_turn(&self, tool: &str) -> bool {
        self.tools.iter().any(|listed| listed.called(tool).is_some() && listed.is_in_turn())
    }

    /// The client's folder, where it is known.
    pub(super) fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// On whose behalf it came.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client's end of the connection.
    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.context.peer
    }

    /// What its client says it can do.
    pub(super) fn capabilities(&self) -> Option<ClientCapabilities> {
        self.context.client_capabilities()
    }

    /// Whether it came by the newest protocol, whose calls stand each for itself.
    pub(super) fn is_of_newest(&self) -> bool {
        self.context.meta.protocol_version().is_some()
    }

    /// A key for one purpose.
    pub(super) fn key(&self, purpose: &str) -> [u8; 32] {
        self.server.daemon.tokens.key(purpose)
    }

    /// Answers the call before it is carried out; what it began goes on.
    pub(super) fn answer_instead(&self, response: CallToolResponse) {
        // Whatever came first is as good.
        self.instead.set(response).ok();
    }

    /// What answers the call before it is carried out, once there is something.
    pub(super) async fn answered_instead(&self) -> CallToolResponse {
        self.instead.wait().await.clone()
    }

    /// The call repeats one, and goes on with what that began.
    pub(super) fn continues(&self, continued: Continued) -> &Continued {
        self.under_way.go_on_with(continued.running.command.clone());
        self.continued.get_or_init(|| continued)
    }

    /// What the call goes on with; none where it begins something.
    pub(super) fn continued(&self) -> Option<&RunningCommand> {
        self.continued.get().map(|continued| &continued.running)
    }

    /// What was wrong with the answer to an ask that the call brought.
    pub(super) fn complaint(&self, ask: AskId) -> Option<&str> {
        self.continued.get()?.invalid.get(&ask).map(String::as_str)
    }

    /// What may be asked for at once.
    pub(super) fn limits(&self) -> &Limits {
        self.server.daemon.engine.limits()
    }
}

/// An answer to a command that no command of its kind has.
pub(super) fn unexpected(response: &Response) -> Error {
    Error::BadRequest { reason: format!("the command's outcome is {response:?}") }
}

/// The folder that an address names.
pub(super) fn folder_of(query: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes())
        .find_map(|(name, value)| (name == "folder").then(|| value.into_owned()))
}

fn client_name(context: &RequestContext<RoleServer>) -> String {
    // Over HTTP, rmcp makes a client up where the request itself did not name one.
    let info = match context.meta.protocol_version() {
        Some(_) => context.meta.client_info(),
        None => context.client_info(),
    };
    let name: String = info.map(|info| info.name).unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(CLIENT_NAME).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

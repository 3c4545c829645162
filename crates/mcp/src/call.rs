//! One call: on whose behalf, on which session, and whether someone still waits for it.
//!
//! A call that names no session takes the one that [`super::session_resolver`] says. Where there is none, what runs or looks at code creates one.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use mainstay_engine::Client;
use mainstay_model::{
    Action, Admission, AskId, Capabilities, Command, CommandId, CreateSession, Error, Limits, Outcome,
    ProjectChoice, Response, Session, SessionCommand, SessionId, SessionKind, SessionState, Version,
};
use rmcp::model::{CallToolResponse, ClientCapabilities, ProgressNotificationParam, RequestId};
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
use super::session_resolver::{SessionPredicate, SessionResolver};
use mainstay_gateway::command::anonymous;
use mainstay_gateway::trace::within;

/// How long is waited for a session to get ready. Calls are answered before that; what starts a worker has limits of its own.
const SETTLE_LIMIT: Duration = Duration::from_hours(6);
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

    /// The session the call turned out to be about.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.under_way.session()
    }

    /// The session the call is about, where there is one.
    pub(super) async fn find(&self, reference: Option<&str>) -> Result<Option<SessionId>, Error> {
        self.find_for(reference, &|_| true).await
    }

    /// The same; the most recently active one counts where it fits.
    async fn find_for(
        &self,
        reference: Option<&str>,
        fits: SessionPredicate<'_>,
    ) -> Result<Option<SessionId>, Error> {
        let found = match reference {
            Some(reference) => Some(self.client.resolve(reference).await?),
            None => match self.repeatable.session_before(&self.client).await {
                Some(session) => Some(session),
                None => self.meant().find_for(fits).await?,
            },
        };
        if let Some(session) = found {
            self.is_about(session);
        }
        Ok(found)
    }

    /// The session the call is about; where there is none, `action` is refused as by a session at rest.
    pub(super) async fn existing(&self, reference: Option<&str>, action: Action) -> Result<SessionId, Error> {
        let found = self.find(reference).await?;
        let Some(session) = found else {
            let (state, kind) = (SessionState::Uninitialized, self.meant().kind().await);
            return Err(Error::NotOffered { action, state, kind, fault: None });
        };
        Ok(session)
    }

    /// The session in which the call does this, created where there is none. The connection's next calls take it too. One whose kind
    /// does not know it is left alone.
    pub(super) async fn workplace(
        &self,
        reference: Option<&str>,
        action: Action,
    ) -> Result<SessionId, Error> {
        self.workplace_for(reference, action, &|_| true, None).await
    }

    /// The same; one that is found for being active counts where it fits, and one that is created is of this kind, where it is known.
    pub(super) async fn workplace_for(
        &self,
        reference: Option<&str>,
        action: Action,
        fits: SessionPredicate<'_>,
        kind: Option<&SessionKind>,
    ) -> Result<SessionId, Error> {
        let _one_at_a_time = self.server.creation.lock().await;
        let session = match self.find_for(reference, fits).await? {
            Some(session) => {
                let found = self.client.status(session).await?.session;
                if !action.is_of(found.capabilities()) {
                    return Err(Error::NotOfKind { action, kind: found.kind.clone() });
                }
                session
            }
            None => {
                let meant = self.meant();
                let kind = match kind {
                    Some(kind) => kind.clone(),
                    None => meant.kind().await,
                };
                if !action.is_of(Capabilities::of_kind(&kind)) {
                    return Err(Error::NotOfKind { action, kind });
                }
                let working_directory = meant.folder();
                let (project, arguments) = (ProjectChoice::OfFolder, Vec::new());
                let create =
                    CreateSession { kind, working_directory, project, arguments, name: None, alias: None };
                let kind = create.kind.clone();
                let session = self.create(anonymous(), create).await?;
                let dropped = self.client.status(session).await?.dropped_environment;
                let said =
                    format!("a new {kind} session was created for this; create_session takes another kind");
                let said =
                    dropped.into_iter().fold(said, |said, dropped| format!("{said}\nwarning: {dropped}"));
                self.created.set(said).ok();
                session
            }
        };
        self.server.use_session(session);
        Ok(session)
    }

    /// Creates a session. The connection's next calls take it.
    pub(super) async fn create(&self, id: CommandId, create: CreateSession) -> Result<SessionId, Error> {
        let outcome = self.client.create(id, create).await?;
        match outcome {
            Outcome::Done { response: Response::Created { session } } => {
                self.use_session(session);
                Ok(session)
            }
            Outcome::Done { response } => Err(unexpected(&response)),
            Outcome::Failed { error } => Err(error),
        }
    }

    /// What tells which session is meant where none is named.
    pub(super) fn meant(&self) -> SessionResolver {
        SessionResolver {
            client: self.client.clone(),
            folder: self.folder.clone(),
            last_used: self.server.last_used(),
            default_kind: self.server.daemon.default_kind.clone(),
        }
    }

    /// Whether the next calls of this client remember the session that this one uses.
    pub(super) fn is_of_connection(&self) -> bool {
        self.server.is_connection() || !self.is_of_newest()
    }

    /// The call is about this session.
    pub(super) fn is_about(&self, session: SessionId) {
        self.under_way.set_session(session);
    }

    /// The call is about this session, and the connection's next calls are too.
    pub(super) fn use_session(&self, session: SessionId) {
        self.is_about(session);
        self.server.use_session(session);
    }

    /// A session that came to be: the connection's next calls take it once it is there. An agent's conversation runs
    /// no code: they go on with what they had, and it rests until someone prompts it.
    pub(super) async fn take_up(&self, session: SessionId) -> Result<Session, Error> {
        let stored = self.client.status(session).await?.session;
        if stored.kind.is_agent() {
            return Ok(stored);
        }
        self.use_session(session);
        Ok((*self.bring_up(session).await?).clone())
    }

    /// Starts a session at rest, and waits until it is done with warming up.
    pub(super) async fn bring_up(&self, session: SessionId) -> Result<Arc<Session>, Error> {
        if self.client.status(session).await?.session.state() == SessionState::Uninitialized {
            match self.submit_beside(session, SessionCommand::Start).await {
                // Someone else may have been quicker.
                Ok(_) | Err(Error::NotOffered { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut settled = pin!(self.settled(session));
        tokio::select! {
            biased;
            settled = &mut settled => return settled,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        self.say("the session is getting ready").await;
        let mut warm_up = self.client.follow_warm_up(session).await?;
        loop {
            tokio::select! {
                biased;
                settled = &mut settled => return settled,
                Some(progress) = warm_up.next() => self.say(progress.to_string()).await,
            }
        }
    }

    /// Waits until a session is neither at rest nor warming up, for as long as that takes; its call is answered before that.
    pub(super) async fn settled(&self, session: SessionId) -> Result<Arc<Session>, Error> {
        self.client.settled(session, SETTLE_LIMIT).await
    }

    /// Has the command carried out that the call is for, or refused at once.
    pub(super) async fn submit(&self, session: SessionId, body: SessionCommand) -> Result<Response, Error> {
        self.have_carried_out(session, self.command(body)).await
    }

    /// The same with one that the call needs beside it.
    pub(super) async fn submit_beside(
        &self,
        session: SessionId,
        body: SessionCommand,
    ) -> Result<Response, Error> {
        self.have_carried_out(session, Command::new(anonymous(), self.client.source(), body)).await
    }

    /// Deletes a session, unless it has changed since it had this version.
    pub(super) async fn delete_unchanged(&self, session: SessionId, version: Version) -> Result<(), Error> {
        let delete = Command::new(anonymous(), self.client.source(), SessionCommand::Delete);
        match self.have_carried_out(session, Command { if_version: Some(version), ..delete }).await {
            Ok(_) | Err(Error::VersionMismatch { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn have_carried_out(&self, session: SessionId, command: Command) -> Result<Response, Error> {
        match self.client.submit(session, command).await?.outcome {
            Outcome::Done { response } => Ok(response),
            Outcome::Failed { error } => Err(error),
        }
    }

    /// The id of the command that the call is for: the call's own, once.
    pub(super) fn command_id(&self) -> CommandId {
        match self.is_id_taken.swap(true, Ordering::Relaxed) {
            false => self.under_way.id.clone(),
            true => anonymous(),
        }
    }

    /// The command that the call is for.
    pub(super) fn command(&self, body: SessionCommand) -> Command {
        Command::new(self.command_id(), self.client.source(), body)
    }

    /// A new command that runs code. While other code runs, it waits for its turn; while that waits for an answer, it is refused, since the
    /// answer may be this client's to give.
    pub(super) fn code(&self, session: &Session, body: SessionCommand) -> Command {
        let admission = match session.state() {
            SessionState::Waiting(_) => Admission::Now,
            _ => Admission::Queue,
        };
        Command { admission, ..self.command(body) }
    }

    /// Waits until the client's user cancels the call.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Its client's user has cancelled it.
    pub(super) fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Why it was cancelled, where its client says it.
    pub(super) async fn reason_of_cancel(&self) -> Option<String> {
        // It is said by a notification, which the newest protocol has none of over HTTP: its connection ends.
        if self.is_of_newest() && !self.server.is_connection() {
            return None;
        }
        self.server.cancelled_by_client(self.request()).await?
    }

    /// Waits until the client takes no answer any more, because it cancelled the call or gave it up. That it goes is neither: what it began
    /// then goes on.
    pub(super) async fn is_unwanted(&self) {
        self.context.ct.cancelled().await;
        // One that cancelled its call and went at once has cancelled it all the same.
        if self.server.has_lost_client(self.context.extensions.get::<Parts>())
            && self.server.cancelled_by_client(self.request()).await.is_none()
        {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the client wants to hear how the call gets on.
    pub(super) fn wants_progress(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    /// How long ago the client heard of the call.
    pub(super) fn silence(&self) -> Duration {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Tells the client how far the call has come, where it wants to hear it.
    pub(super) async fn say(&self, message: impl Into<String>) {
        let message = message.into();
        self.under_way.note_progress(&message);
        self.tell(message).await;
    }

    /// Tells the client what its code prints, or that it still runs, where it wants to hear it.
    pub(super) async fn tell(&self, message: impl Into<String>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        // Nothing is said of a request that is answered, or cancelled.
        let token = self.context.meta.get_progress_token().filter(|_| !self.context.ct.is_cancelled());
        let Some(token) = token else { return };
        let nth = self.said.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = ProgressNotificationParam::new(token, f64::from(nth)).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(progress).await {
            tracing::debug!(%error, "a client did not hear of progress");
        }
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

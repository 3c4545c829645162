//! All sessions: finding them, bringing their tasks up, and passing on what clients ask of them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use mainstay_log::{Log, SessionFilter, StoredOutcome};
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::{
    Access, AgentState, Answered, Command, CommandId, Diagnostic, Error, Event, EventBody, EventFilter,
    JobKind, Limits, PendingAsk, Position, Principal, RunningJob, Seq, Session, SessionId, SessionKind,
    SessionState, TextPosition,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot, watch};
use tracing::Span;

use crate::breakers::Breakers;
use crate::claims::{CommandKey, key_of};
use crate::client::Client;
use crate::environments::Environments;
use crate::hub::{Cursor, Feed, Hub, Listener, Subscription};
use crate::lane::Queued;
use crate::lease::keep_lease;
use crate::metering::Pulse;
use crate::pending_commands::Reply;
use crate::presence::ClientInfo;
use crate::session::{Entry, Request, SessionHandle, Shared, now, spawn};
use crate::single_process::SingleProcess;
use crate::sync::task::{self, JoinHandle};
use crate::sync::time::timeout;
use crate::sync::{Mutex, MutexGuard};
use crate::trace::CommandTrace;
use crate::watch::Watch;
use mainstay_runner::WarmUpProgress;
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{AgentQuestion, Completions, ResourceUsage, RunnerFactory};

/// All sessions of one daemon.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    tasks: Arc<Mutex<Tasks>>,
    /// Held while a session's task is brought up, so that each session has one.
    activation: Arc<tokio::sync::Mutex<()>>,
    /// What ran when the last daemon was lost.
    lost: Arc<[LostJob]>,
}

/// A job that ran when the last daemon was lost, and was interrupted by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostJob {
    /// The session in which the job was lost.
    pub session: SessionId,
    /// Who asked for it.
    pub principal: Principal,
    /// The command that asked for it.
    pub command: CommandId,
    /// What kind of job it was.
    pub kind: JobKind,
}

impl LostJob {
    fn of(session: &Session) -> Option<Self> {
        let running = session.running()?;
        Some(Self {
            session: session.id,
            principal: running.source.principal(),
            command: running.command.clone(),
            kind: running.kind,
        })
    }
}

/// The tasks of the sessions in use.
#[derive(Default)]
struct Tasks {
    handles: HashMap<SessionId, Entry>,
    stopping: bool,
}

/// A session, and what its worker uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The session as it is now.
    pub session: Session,
    /// What its worker uses.
    pub usage: Option<ResourceUsage>,
    /// How far it is, where it is given its definitions back.
    pub warm_up: Option<WarmUpProgress>,
    /// Whether the connection that asked for what runs has left.
    #[serde(default)]
    pub is_orphaned: bool,
    /// That its creator's environment was too large to be taken, in a sentence.
    #[serde(default)]
    pub dropped_environment: Option<String>,
}

/// How far a command has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// It waits for its turn.
    Waits {
        /// The session in whose queue the command waits.
        session: SessionId,
    },
    /// It is carried out.
    Runs {
        /// The session in which the command runs.
        session: SessionId,
    },
    /// It has its outcome.
    Ended(Box<StoredOutcome>),
}

/// A command that its session has.
pub struct AcceptedCommand(AcceptedState);

enum AcceptedState {
    Waits { answer: oneshot::Receiver<Result<Answered, Error>>, engine: Engine },
    Creates(JoinHandle<Result<Answered, Error>>),
    Ended(Answered),
}

impl AcceptedCommand {
    /// What was answered already.
    pub(crate) fn at_once(answered: Answered) -> Self {
        Self(AcceptedState::Ended(answered))
    }

    /// What a task answers.
    pub(crate) fn by(task: JoinHandle<Result<Answered, Error>>) -> Self {
        Self(AcceptedState::Creates(task))
    }

    /// What came of it; waits for that.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn ended(self) -> Result<Answered, Error> {
        match self.0 {
            AcceptedState::Waits { answer, engine } => answer.await.map_err(|_| engine.gone())?,
            AcceptedState::Creates(task) => {
                task.await.unwrap_or_else(|error| Err(Error::DaemonFailed { reason: error.to_string() }))
            }
            AcceptedState::Ended(answered) => Ok(answered),
        }
    }
}

impl Engine {
    /// Opens the engine over a log, and brings back the sessions that were live when the last daemon was lost.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn open(
        log: Arc<dyn Log>,
        factories: Vec<Arc<dyn RunnerFactory>>,
        limits: Limits,
    ) -> Result<Self, Error> {
        Self::open_with(log, factories, limits, Environments::default()).await
    }

    /// The same, with the environments that sessions were given before.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn open_with(
        log: Arc<dyn Log>,
        factories: Vec<Arc<dyn RunnerFactory>>,
        limits: Limits,
        environments: Environments,
    ) -> Result<Self, Error> {
        let starts = std::thread::available_parallelism().map_or(1, usize::from);
        keep_lease(&log);
        let newest = log.last_position().await?;
        let hub = Arc::new(Hub::new(newest));
        let outcomes = if limits.outcomes > 0 { log.count_outcomes().await? } else { 0 };
        let single_process = SingleProcess::new(&limits, outcomes);
        let shared = Shared {
            log,
            hub,
            factories,
            environments,
            starts: Arc::new(Semaphore::new(starts)),
            live: Arc::new(Semaphore::new(limits.live_sessions.min(Semaphore::MAX_PERMITS))),
            breakers: Arc::new(Breakers::new(limits.clone())),
            limits,
            single_process,
            clients: Arc::default(),
            watch: Watch::default(),
            records: Mutex::default(),
            warm_ups: Arc::default(),
        };
        let mut engine = Self {
            shared: Arc::new(shared),
            tasks: Arc::default(),
            activation: Arc::default(),
            lost: Arc::default(),
        };
        engine.hear_of_others(newest);
        let unfinished = engine.unfinished().await?;
        engine.lost = unfinished.iter().filter_map(LostJob::of).collect();
        // Before any of them goes on: a command in one may depend on a command in another.
        unfinished.iter().for_each(|session| engine.claim_accepted(session));
        for session in unfinished {
            match engine.handle(session.id).await {
                // Another daemon has it, and goes on with it.
                Ok(_) | Err(Error::SessionOwned) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(engine)
    }

    /// Passes on what other daemons that share the store commit after a position.
    fn hear_of_others(&self, after: Position) {
        let tasks = Arc::downgrade(&self.tasks);
        let is_ours = move |session| {
            let Some(tasks) = tasks.upgrade() else { return false };
            let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.handles.get(&session).is_some_and(|entry| entry.upgrade().is_some())
        };
        let (log, hub) = (Arc::downgrade(&self.shared.log), Arc::downgrade(&self.shared.hub));
        task::spawn(Feed { log, hub, is_ours, after }.run(self.shared.log.changes_by_others()));
    }

    /// The sessions that were live when the last daemon was lost, and those at rest in which asks or commands wait.
    async fn unfinished(&self) -> Result<Vec<Session>, Error> {
        let live = SessionFilter { live: true, ..SessionFilter::default() };
        let asking = SessionFilter { asks: true, ..SessionFilter::default() };
        let waiting = SessionFilter { waits: true, ..SessionFilter::default() };
        let mut unfinished = self.shared.log.sessions(live).await?;
        for filter in [asking, waiting] {
            let mut found = self.shared.log.sessions(filter).await?;
            found.retain(|session| unfinished.iter().all(|known| known.id != session.id));
            unfinished.extend(found);
        }
        Ok(unfinished)
    }

    /// The jobs that ran when the last daemon was lost.
    pub fn lost_jobs(&self) -> &[LostJob] {
        &self.lost
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// A client that comes, on whose behalf and what it is.
    pub fn attach(&self, access: Access, name: &str) -> Client {
        let presence = self.shared.clients.come(access.principal.clone(), name, now());
        Client::new(self.clone(), access, presence)
    }

    /// Returns the clients that are connected.
    pub(crate) fn clients(&self) -> Vec<ClientInfo> {
        self.shared.clients.list()
    }

    /// Whether runners of the kinds that were used are started.
    pub fn breakers(&self) -> BTreeMap<SessionKind, BreakerStatus> {
        self.shared.breakers.list()
    }

    /// Whether turns begin with the providers of models that agents used.
    pub fn provider_breakers(&self) -> BTreeMap<String, BreakerStatus> {
        self.shared.breakers.list_providers()
    }

    /// How the agent of a session goes on: as it said last, or as far as that is known before it is started.
    pub fn agent_state(&self, session: &Session) -> AgentState {
        let factory = || self.shared.factories.iter().find(|factory| factory.serves(&session.kind));
        let environment = || self.shared.environments.of(session.id);
        let begins = || Some(factory()?.beginning(Path::new(&session.working_directory), &environment()));
        session.agent.clone().or_else(begins).unwrap_or_default()
    }

    /// How many creations of sessions wait or are carried out.
    pub fn creations_under_way(&self) -> usize {
        self.shared.single_process.server_lane.len()
    }

    /// Hands a command over to its session, as part of what a span stands for.
    pub(crate) async fn begin(
        &self,
        session: SessionId,
        command: Command,
        parent: &Span,
    ) -> Result<AcceptedCommand, Error> {
        self.begin_asked(session, command, None, parent).await
    }

    /// The same of a command that a connection asks for, the client of this number: that it has left is known of what it asked for.
    pub(crate) async fn begin_asked(
        &self,
        session: SessionId,
        command: Command,
        asked_by: Option<u64>,
        parent: &Span,
    ) -> Result<AcceptedCommand, Error> {
        let trace = CommandTrace::arrived(parent, session, &command.id, command.body.action());
        let fingerprint = command.fingerprint(session);
        let (principal, id, said) = (command.source.principal(), command.id.clone(), fingerprint.clone());
        let handed_over = self
            .hand_over(session, |reply| Request::Submit {
                command,
                fingerprint,
                reply: Reply::new(reply),
                asked_by,
                trace,
            })
            .await;
        match handed_over {
            Ok(answer) => Ok(AcceptedCommand(AcceptedState::Waits { answer, engine: self.clone() })),
            // Where it was deleted, what was answered before is answered again.
            Err(error @ Error::SessionNotFound { .. }) => {
                match self.shared.log.outcome(&principal, &id).await? {
                    Some(StoredOutcome { fingerprint, outcome, version, .. }) if fingerprint == said => {
                        Ok(AcceptedCommand::at_once(Answered { outcome, version, is_replay: true }))
                    }
                    Some(_) | None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// How far a command has come.
    pub(crate) async fn command(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<CommandStatus, Error> {
        // In this order: one that ends between the two is found by the second look.
        let session = self.shared.single_process.claims.holder(&(principal.clone(), command.clone()));
        if let Some(stored) = self.shared.log.outcome(principal, command).await? {
            return Ok(CommandStatus::Ended(Box::new(stored)));
        }
        let Some(session) = session else { return Err(Error::CommandNotFound { command: command.clone() }) };
        // A session that is not there yet is being created by the command.
        let stored = self.shared.log.session(session).await?;
        let waits = stored.is_some_and(|stored| stored.waits(principal, command));
        Ok(if waits { CommandStatus::Waits { session } } else { CommandStatus::Runs { session } })
    }

    /// How many commands are under way in all sessions.
    pub fn commands_under_way(&self) -> usize {
        self.shared.single_process.claims.count()
    }

    /// Checks code without running it.
    pub(crate) async fn check(
        &self,
        session: SessionId,
        code: String,
        file: Option<String>,
    ) -> Result<Vec<Diagnostic>, Error> {
        mainstay_model::command::validate_code(&code, &self.shared.limits)?;
        self.request(session, |reply| Request::Check { code, file, reply }).await?
    }

    /// Completes at a cursor.
    pub(crate) async fn complete(
        &self,
        session: SessionId,
        code: String,
        cursor: TextPosition,
    ) -> Result<Completions, Error> {
        mainstay_model::command::validate_code(&code, &self.shared.limits)?;
        self.request(session, |reply| Request::Complete { code, cursor, reply }).await?
    }

    /// Asks a session's kernel about what it has.
    pub(crate) async fn query(&self, session: SessionId, query: KernelQuery) -> Result<KernelAnswer, Error> {
        if let Some(code) = query.code() {
            mainstay_model::command::validate_code(code, &self.shared.limits)?;
        }
        self.request(session, |reply| Request::Query { query, reply }).await?
    }

    /// The sessions that `reference` may mean: by its id, the end of it, or a name.
    pub(crate) async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error> {
        if let Ok(session) = reference.parse::<SessionId>()
            && self.live_handle(session)?.is_some()
        {
            return Ok(vec![session]);
        }
        self.shared.log.resolve(reference).await
    }

    /// A session as committed, also one that was deleted.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        match self.committed(session) {
            Some(session) => Ok(Some((*session).clone())),
            None => self.shared.log.session(session).await,
        }
    }

    /// A session as the log has it, and what its worker uses. Never older than an event that was read: one that follows
    /// from the log may hear of a commit before the session's task does.
    pub(crate) async fn status(&self, session: SessionId) -> Result<SessionStatus, Error> {
        let session = self.stored(session).await?;
        let usage = if session.worker.is_some() { self.usage(session.id).await } else { None };
        let warm_up = self.warm_up(&session);
        let is_orphaned = self.is_orphaned(&session);
        let dropped_environment = self.shared.environments.dropped(session.id);
        Ok(SessionStatus { session, usage, warm_up, is_orphaned, dropped_environment })
    }

    /// Whether the connection that asked for what runs in a session has left.
    pub(crate) fn is_orphaned(&self, session: &Session) -> bool {
        let asked_for = |running: &RunningJob| (running.source.principal(), running.command.clone());
        session.running().is_some_and(|running| self.shared.clients.has_left(&asked_for(running)))
    }

    /// Word of each client that leaves from now on.
    pub(crate) fn departures(&self) -> watch::Receiver<()> {
        self.shared.clients.departures()
    }

    /// How far a session is that is given its definitions back.
    pub(crate) fn warm_up(&self, session: &Session) -> Option<WarmUpProgress> {
        match session.state() {
            SessionState::WarmingUp => self.shared.warm_ups.of(session.id),
            SessionState::Uninitialized
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => None,
        }
    }

    /// The sessions that match, most recently active first.
    pub(crate) async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.shared.log.sessions(filter).await
    }

    /// How many sessions match.
    pub(crate) async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.shared.log.count_sessions(filter).await
    }

    /// The events of a session after a cursor, at most `limit`.
    pub(crate) async fn events(
        &self,
        session: SessionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.shared.log.events(session, after, limit).await
    }

    /// The events of all sessions after a cursor, in the order of the log, at most `limit`.
    pub(crate) async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        self.shared.log.all_events(after, limit).await
    }

    /// The events after a cursor that the filter lets through, then live ones.
    pub(crate) fn follow(&self, cursor: Cursor, filter: EventFilter) -> Subscription {
        let mut subscription = self.shared.hub.subscribe(Arc::clone(&self.shared.log), cursor, filter);
        // Asked once it follows: what is committed from now on is published to it.
        if let Cursor::Session { session, after } = cursor
            && self.committed(session).is_some_and(|session| session.last_seq <= after)
        {
            subscription.begins_at_the_end();
        }
        subscription
    }

    /// What is going on in a session, before events say it.
    pub(crate) fn listen(&self, session: SessionId) -> Listener {
        self.shared.hub.listen(session)
    }

    /// What a session's agent says of itself.
    pub(crate) async fn question(&self, session: SessionId, question: AgentQuestion) -> Result<Value, Error> {
        self.request(session, |reply| Request::Question { question, reply }).await?
    }

    /// How many sessions have a task: those that are not at rest, or in which something waits.
    pub fn sessions_in_use(&self) -> usize {
        self.lock().handles.values().filter(|entry| entry.upgrade().is_some()).count()
    }

    /// What sessions did since this was asked last.
    pub fn take_pulse(&self) -> Pulse {
        self.shared.hub.pulse.take()
    }

    /// How many subscriptions there are.
    pub fn subscribers(&self) -> usize {
        self.shared.hub.subscribers()
    }

    /// Waits until the session is neither at rest nor warming up, at most `limit`; gives the session as it then is.
    pub(crate) async fn settled(&self, session: SessionId, limit: Duration) -> Result<Arc<Session>, Error> {
        // Held meanwhile: it keeps the task of a session at rest.
        let mut handle = self.handle(session).await?;
        let visible = &mut handle.visible;
        let has_settled = |session: &Arc<Session>| match session.state() {
            SessionState::Uninitialized | SessionState::WarmingUp => false,
            SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => true,
        };
        // Whether it settled or not, the caller sees the state.
        timeout(limit, visible.wait_for(has_settled)).await.ok();
        Ok(Arc::clone(&visible.borrow()))
    }

    /// What a live session's worker uses.
    pub(crate) async fn usage(&self, session: SessionId) -> Option<ResourceUsage> {
        let handle = self.lock().handles.get(&session)?.upgrade()?;
        let (reply, answer) = oneshot::channel();
        handle.send(Request::Usage { reply }).await;
        answer.await.ok().flatten()
    }

    /// Lets running jobs end for a while, puts every session to rest, refuses what comes later, and ends all subscriptions. Done when all of it is durable.
    pub async fn shut_down(&self) {
        let handles: Vec<SessionHandle> = {
            let mut tasks = self.lock();
            tasks.stopping = true;
            tasks.handles.values().filter_map(Entry::upgrade).collect()
        };
        let limit = Duration::from_millis(self.shared.limits.drain_ms);
        // What has not ended by then is cut off.
        timeout(limit, join_all(handles.iter().map(drained))).await.ok();
        for handle in &handles {
            let (reply, done) = oneshot::channel();
            if handle.send(Request::ShutDown { reply }).await {
                done.await.ok();
            }
        }
        for mut handle in handles {
            // The sender goes when the last commit is through.
            while handle.visible.changed().await.is_ok() {}
        }
        // The sessions are at rest. Where this fails, the lease lapses.
        self.shared.log.release().await.ok();
        self.shared.hub.close();
    }

    /// Has a session's task serve a request, bringing the task up where it is not.
    async fn request<T>(
        &self,
        session: SessionId,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, Error> {
        self.hand_over(session, request).await?.await.map_err(|_| self.gone())
    }

    /// Gives a session's task a request, bringing the task up where it is not. What comes is what it answers.
    async fn hand_over<T>(
        &self,
        session: SessionId,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<oneshot::Receiver<T>, Error> {
        let handle = self.handle(session).await?;
        let (reply, answer) = oneshot::channel();
        if handle.send(request(reply)).await { Ok(answer) } else { Err(self.gone()) }
    }

    /// Why a session's task does not answer.
    pub(crate) fn gone(&self) -> Error {
        match self.lock().stopping {
            true => Error::DaemonStopping,
            false => {
                Error::StoreFailed { reason: "the session's task ended; see the daemon's log".to_owned() }
            }
        }
    }

    pub(crate) async fn handle(&self, session: SessionId) -> Result<SessionHandle, Error> {
        if let Some(handle) = self.live_handle(session)? {
            return Ok(handle);
        }
        let _one_at_a_time = self.activation.lock().await;
        if let Some(handle) = self.live_handle(session)? {
            return Ok(handle);
        }
        let epoch = self.shared.log.claim(session).await?;
        let stored = self.stored(session).await?;
        let answered = self.answered_elsewhere(&stored).await?;
        let lane = self.waiting_in(&stored).await?;
        let mut tasks = self.lock();
        if tasks.stopping {
            return Err(Error::DaemonStopping);
        }
        let (handle, entry) = spawn(Arc::clone(&self.shared), stored, epoch, lane, answered);
        tasks.handles.retain(|_, handle| handle.upgrade().is_some());
        tasks.handles.insert(session, entry);
        Ok(handle)
    }

    /// Claims what a session has accepted and not answered.
    fn claim_accepted(&self, session: &Session) {
        let running = session.running().map(|running| (running.source.principal(), running.command.clone()));
        let waiting = session.lane.iter().map(|waiting| (waiting.principal.clone(), waiting.command.clone()));
        let asking = session.asks.iter().filter_map(PendingAsk::identity).map(|identity| key_of(&identity));
        for key in running.into_iter().chain(waiting).chain(asking) {
            self.shared.single_process.claims.take(&key, session.id);
        }
    }

    /// The commands that wait for their turn, as their events have them.
    async fn waiting_in(&self, session: &Session) -> Result<Vec<Queued>, Error> {
        let mut lane = Vec::with_capacity(session.lane.len());
        for waiting in &session.lane {
            let before = Seq(waiting.queued.0.saturating_sub(1));
            let event = self.shared.log.events(session.id, before, 1).await?.pop();
            if let Some(Event { metadata, body: EventBody::CommandQueued(queued), .. }) = event {
                lane.push(Queued::new(metadata.source, *queued));
            }
        }
        Ok(lane)
    }

    /// The command of a job that was cut off, where the log has an outcome under its id already.
    async fn answered_elsewhere(&self, session: &Session) -> Result<Option<CommandKey>, Error> {
        let Some(running) = session.running() else { return Ok(None) };
        let key = (running.source.principal(), running.command.clone());
        let outcome = self.shared.log.outcome(&key.0, &key.1).await?;
        Ok(outcome.map(|_| key))
    }

    /// A session as committed, where its task has it at hand. It is never older than any answer that was given.
    fn committed(&self, session: SessionId) -> Option<Arc<Session>> {
        let tasks = self.lock();
        let handle = tasks.handles.get(&session)?.upgrade()?;
        Some(Arc::clone(&handle.visible.borrow()))
    }

    /// The way to a session's task, where there is one. A daemon that goes down begins no other; those that are there are asked
    /// until the end, and know themselves what may still be done.
    fn live_handle(&self, session: SessionId) -> Result<Option<SessionHandle>, Error> {
        let tasks = self.lock();
        match tasks.handles.get(&session).and_then(Entry::upgrade) {
            Some(handle) => Ok(Some(handle)),
            None if tasks.stopping => Err(Error::DaemonStopping),
            None => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nothing runs in a session any more.
async fn drained(handle: &SessionHandle) {
    let (reply, done) = oneshot::channel();
    if handle.send(Request::Drain { reply }).await {
        // A session whose task has ended runs nothing.
        done.await.ok();
    }
}

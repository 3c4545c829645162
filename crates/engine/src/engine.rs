//! All sessions: finding them, bringing their tasks up, and passing on what clients ask of them.

mod accepted_command;
mod activation;
mod lost_job;
mod status;
pub(crate) mod tasks;
mod transcript;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use mainstay_log::{Log, SessionFilter};
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::client_info::ClientInfo;
use mainstay_model::{
    Diagnostic, Error, Event, EventFilter, Limits, Position, Seq, Session, SessionId, SessionKind,
    TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{AgentQuestion, Completions, RunnerFactory};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use crate::breakers::Breakers;
use crate::environments::Environments;
use crate::hub::{Cursor, Feed, Hub, Listener, Subscription};
use crate::lease::LeaseKeeper;
use crate::metering::ActivityCounts;
use crate::mirror::{Measurements, Mirrors};
use crate::open_tasks::Delegations;
use crate::session::{Entry, Request, SessionHandle};
use crate::shared::Shared;
use crate::single_process::SingleProcess;
use crate::sync::Mutex;
use crate::sync::task;
use crate::sync::time::timeout;
use crate::watch::Watch;

pub use self::accepted_command::{AcceptedCommand, CommandStatus};
use self::activation::Activations;
pub use self::lost_job::LostJob;
pub use self::status::SessionStatus;
use self::tasks::Tasks;

/// How many sessions are brought back at once when a daemon begins.
const BROUGHT_BACK_AT_ONCE: usize = 16;

/// An engine that is there as long as someone else has it.
pub(crate) struct WeakEngine {
    shared: Weak<Shared>,
    tasks: Weak<Mutex<Tasks>>,
    activations: Weak<Activations>,
    lost: Weak<[LostJob]>,
}

impl WeakEngine {
    /// The engine, while it is there.
    pub(crate) fn upgrade(&self) -> Option<Engine> {
        let (shared, tasks) = (self.shared.upgrade()?, self.tasks.upgrade()?);
        let (activations, lost) = (self.activations.upgrade()?, self.lost.upgrade()?);
        Some(Engine { shared, tasks, activations, lost })
    }
}

/// All sessions of one daemon.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    tasks: Arc<Mutex<Tasks>>,
    activations: Arc<Activations>,
    /// What ran when the last daemon was lost.
    lost: Arc<[LostJob]>,
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
        let lease = LeaseKeeper::start(&log);
        let newest = log.last_position().await?;
        let hub = Arc::new(Hub::new(newest));
        let outcomes = if limits.outcomes > 0 { log.count_outcomes().await? } else { 0 };
        let (delegations, changes) = Delegations::new();
        let single_process = SingleProcess::new(&limits, outcomes);
        let shared = Shared {
            log,
            lease,
            hub,
            factories,
            environments,
            starts: Arc::new(Semaphore::new(starts)),
            live: Arc::new(Semaphore::new(limits.live_sessions.min(Semaphore::MAX_PERMITS))),
            breakers: Arc::new(Breakers::new(limits.clone())),
            limits,
            single_process,
            schedules: Arc::default(),
            delegations,
            clients: Arc::default(),
            watch: Watch::default(),
            records: Mutex::default(),
            mirrors: Mirrors::default(),
            measurements: Measurements::default(),
            warm_ups: Arc::default(),
        };
        let mut engine = Self {
            shared: Arc::new(shared),
            tasks: Arc::default(),
            activations: Arc::default(),
            lost: Arc::default(),
        };
        engine.hear_of_others(newest);
        let unfinished = engine.unfinished().await?;
        // Before any of them goes on: a command in one may depend on a command in another.
        unfinished.iter().for_each(|session| engine.claim_accepted(session));
        engine.read_delegations().await?;
        engine.bring_back(&unfinished).await?;
        let lost =
            unfinished.iter().filter(|session| !engine.has_kept_job(session.id)).filter_map(LostJob::of);
        engine.lost = lost.collect();
        engine.follow_delegations(changes);
        Ok(engine)
    }

    /// Brings sessions back, several beside each other: of a runner that has outlived its daemon none waits for another's.
    async fn bring_back(&self, unfinished: &[Session]) -> Result<(), Error> {
        let handles = stream::iter(unfinished).map(|session| self.handle(session.id));
        let mut brought_back = handles.buffer_unordered(BROUGHT_BACK_AT_ONCE);
        while let Some(handle) = brought_back.next().await {
            match handle {
                // Another daemon has it, and goes on with it.
                Ok(_) | Err(Error::SessionOwned) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes on what other daemons that share the store commit after a position.
    fn hear_of_others(&self, after: Position) {
        let tasks = Arc::downgrade(&self.tasks);
        let task_of = move |session| {
            let tasks = tasks.upgrade()?;
            let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.handles.get(&session).and_then(Entry::task)
        };
        let (log, hub) = (Arc::downgrade(&self.shared.log), Arc::downgrade(&self.shared.hub));
        task::spawn(Feed { log, hub, task_of, after }.run(self.shared.log.changes_by_others()));
    }

    /// The sessions that were live when the last daemon was lost, and the idle ones in which asks or commands wait.
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

    /// The same engine, which does not keep it.
    pub(crate) fn downgrade(&self) -> WeakEngine {
        WeakEngine {
            shared: Arc::downgrade(&self.shared),
            tasks: Arc::downgrade(&self.tasks),
            activations: Arc::downgrade(&self.activations),
            lost: Arc::downgrade(&self.lost),
        }
    }

    /// The jobs that ran when the last daemon was lost.
    pub fn lost_jobs(&self) -> &[LostJob] {
        &self.lost
    }

    /// The newest position in the log that subscribers were told of. It takes no read of the store. None once the daemon goes down.
    pub fn published(&self) -> Option<Position> {
        self.shared.hub.newest()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
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

    /// How many creations of sessions wait or are carried out.
    pub fn creations_under_way(&self) -> usize {
        self.shared.single_process.server_lane.len()
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

    /// What sessions did since this was asked last.
    pub fn take_activity(&self) -> ActivityCounts {
        self.shared.hub.activity.take()
    }

    /// How many subscriptions there are.
    pub fn subscribers(&self) -> usize {
        self.shared.hub.subscribers()
    }

    /// Lets running jobs end for a while, stops every session, refuses what comes later, and ends all subscriptions. Done when all of it is durable.
    pub async fn shut_down(&self) {
        let handles = self.begin_stopping();
        let limit = Duration::from_millis(self.shared.limits.drain_ms);
        // What has not ended by then is cut off.
        timeout(limit, join_all(handles.iter().map(drained))).await.ok();
        for handle in &handles {
            let (reply, done) = oneshot::channel();
            if handle.send(Request::ShutDown { reply }).await {
                done.await.ok();
            }
        }
        self.end(handles).await;
    }

    /// Ends without an end of what runs: lets the runners go that outlive this daemon, and refuses what comes later. A session whose runner
    /// does not is stopped. What the runners have said so far is durable and acknowledged then; the next daemon adopts them. Nobody who
    /// waits is answered: the process is to end, and clients that lose their connections ask the next daemon.
    pub async fn let_go(&self) {
        self.lock().letting_go = true;
        let handles = self.begin_stopping();
        let gone = handles.iter().map(|handle| async move {
            let (reply, done) = oneshot::channel();
            if handle.send(Request::LetGo { reply }).await {
                done.await.ok();
            }
        });
        join_all(gone).await;
        self.end(handles).await;
    }

    /// Refuses what comes from now on; returns the tasks that there are.
    fn begin_stopping(&self) -> Vec<SessionHandle> {
        let mut tasks = self.lock();
        tasks.stopping = true;
        tasks.handles.values().filter_map(Entry::upgrade).collect()
    }

    /// Waits until all that these tasks have committed is durable, and ends all subscriptions.
    async fn end(&self, handles: Vec<SessionHandle>) {
        for mut handle in handles {
            // The sender goes when the last commit is through.
            while handle.visible.changed().await.is_ok() {}
        }
        // A session that is being claimed now would have the lease renewed. Those that come later are turned away before.
        let _no_more_claims = self.activations.end_all().await;
        self.shared.lease.give_up(&*self.shared.log).await;
        self.shared.hub.close();
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

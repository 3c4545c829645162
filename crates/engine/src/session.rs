//! One session at run time: the task that owns its state, its lane and its worker.
//!
//! Everything that changes the session comes through here one at a time, and what `model::decide` answers is handed to
//! the committer and carried out. What only reads (check, completions, exploration) is passed to the worker and never
//! waits behind a job. The task awaits no read of the store: commands are looked up beside it ([`arrivals`]). How they come
//! in is in [`admission`], what waits for its turn in [`turns`], the worker in
//! [`workers`].

mod admission;
mod arrival_order;
mod arrivals;
mod turns;
mod workers;

use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use mainstay_log::{Append, Appended, Epoch, Log, NewEvent};
use mainstay_model::command::{self, Ends};
use mainstay_model::decide::{Answer, Identity};
use mainstay_model::outcome::OutputItem;
use mainstay_model::rate::RateLimit;
use mainstay_model::secret::Secrets;
use mainstay_model::{
    Action, AgentNotice, Capabilities, ChosenProject, Command, CommandFingerprint, CreateSession, Deadline,
    Decision, Diagnostic, Effect, Error, Event, EventBody, Input, JobId, Limits, Metadata, Notice, Outcome,
    PendingAsk, Position, RunnerNotice, Seq, Session, SessionCommand, SessionKind, SessionState,
    TextPosition, Timestamp, Version, decide,
};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use uuid::Uuid;

use self::arrivals::Arrivals;
use crate::breakers::Breakers;
use crate::claims::{CommandKey, key_of};
use crate::commit::{Commit, CommitReceivers, Commits, commit_in_order};
use crate::dependencies::{WaitResult, Waiter};
use crate::environments::Environments;
use crate::hub::Hub;
use crate::lane::{Lane, Queued};
use crate::output::OutputBuffer;
use crate::pending_commands::{PendingCommands, Reply};
use crate::presence::Clients;
use crate::reload::ReadyKernel;
use crate::retry::Retry;
use crate::single_process::SingleProcess;
use crate::stream::StreamBuffer;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::time::{Instant, sleep_until};
use crate::sync::{Mutex, task};
use crate::trace::{CommandTrace, CommitTrace, Traces};
use crate::validity::KnownRecords;
use crate::warm_up::{FromWorker, LastValues};
use crate::warm_up_progress::WarmUps;
use crate::watch::Watch;
use crate::worker::{Order, Worker};
use mainstay_runner::Environment;
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{AgentQuestion, Completions, ResourceUsage, RunnerFactory, Submission};

/// How long output is held back to be joined with what follows.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(50);
/// Requests that may be on their way to one session; more wait at the sender.
const MAILBOX: usize = 128;
/// Ends of waits that may be on their way; only one counts at a time.
const WAITS: usize = 4;
/// Notices that may be on their way from one worker; then its pipes fill up and it waits.
const NOTICES: usize = 64;

/// What a session's task is asked.
pub(crate) enum Request {
    /// A command, and who waits for its outcome.
    Submit {
        command: Command,
        fingerprint: CommandFingerprint,
        reply: Reply,
        /// The client whose connection asks for it.
        asked_by: Option<u64>,
        trace: CommandTrace,
    },
    /// Check code without running it.
    Check { code: String, file: Option<String>, reply: oneshot::Sender<Result<Vec<Diagnostic>, Error>> },
    /// Complete at a cursor.
    Complete { code: String, cursor: TextPosition, reply: oneshot::Sender<Result<Completions, Error>> },
    /// What a kernel knows of what its session has.
    Query { query: KernelQuery, reply: oneshot::Sender<Result<KernelAnswer, Error>> },
    /// The kernel, where it is up and runs nothing.
    Kernel { reply: oneshot::Sender<ReadyKernel> },
    /// What an agent says of itself.
    Question { question: AgentQuestion, reply: oneshot::Sender<Result<Value, Error>> },
    /// What the worker uses.
    Usage { reply: oneshot::Sender<Option<ResourceUsage>> },
    /// Something became known from outside.
    Hear { notice: Notice },
    /// The daemon is about to go down: what waits and what comes is turned away; answered when nothing runs any more.
    Drain { reply: oneshot::Sender<()> },
    /// The daemon goes down; answered when the session is at rest.
    ShutDown { reply: oneshot::Sender<()> },
}

/// The way to a session's task. As long as someone holds one, the task stays.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    requests: mpsc::Sender<Envelope>,
    /// The session as committed.
    pub(crate) visible: watch::Receiver<Arc<Session>>,
}

/// What the engine has of a session's task. As long as the door is open, the task stays: it opens it while the session is not
/// at rest, so a session at rest costs nothing.
pub(crate) struct Entry {
    requests: mpsc::WeakSender<Envelope>,
    visible: watch::Receiver<Arc<Session>>,
    _door: Arc<KeepAlive>,
}

/// Has the way to a task while it is to stay.
type KeepAlive = Mutex<Option<mpsc::Sender<Envelope>>>;

/// A request, with what keeps the task until it has served it.
struct Envelope {
    request: Request,
    door: mpsc::Sender<Envelope>,
}

impl SessionHandle {
    /// Sends the task a request; says whether it is there to hear it.
    pub(crate) async fn send(&self, request: Request) -> bool {
        self.requests.send(Envelope { request, door: self.requests.clone() }).await.is_ok()
    }

    /// Whether the task takes requests.
    pub(crate) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }
}

impl Entry {
    /// The way to the task, while there is one that takes requests.
    pub(crate) fn upgrade(&self) -> Option<SessionHandle> {
        let handle = SessionHandle { requests: self.requests.upgrade()?, visible: self.visible.clone() };
        handle.is_open().then_some(handle)
    }
}

/// What every session's task shares with the engine.
pub(crate) struct Shared {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) limits: Limits,
    pub(crate) factories: Vec<Arc<dyn RunnerFactory>>,
    /// What sessions' creators have in their environments.
    pub(crate) environments: Environments,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// How many more sessions may be live.
    pub(crate) live: Arc<Semaphore>,
    /// What is true only as long as no other process uses the store.
    pub(crate) single_process: SingleProcess,
    /// Whether runners are started.
    pub(crate) breakers: Arc<Breakers>,
    /// The clients that are connected.
    pub(crate) clients: Arc<Clients>,
    /// How the files are that sessions' code rests on.
    pub(crate) watch: Watch,
    /// What their evals ran against.
    pub(crate) records: KnownRecords,
    /// How far those are that are given their definitions back.
    pub(crate) warm_ups: Arc<WarmUps>,
}

impl Shared {
    /// Whether sessions of a kind can be started here.
    pub(crate) fn serves(&self, kind: &SessionKind) -> bool {
        self.factories.iter().any(|factory| factory.serves(kind))
    }

    /// What sessions of a kind can do.
    pub(crate) fn capabilities_of(&self, kind: &SessionKind) -> Capabilities {
        let factory = self.factories.iter().find(|factory| factory.serves(kind));
        factory.map_or_else(|| Capabilities::of_kind(kind), |factory| factory.capabilities(kind))
    }

    /// Refuses what needs a worker where there is none of the kind.
    pub(crate) fn must_serve(&self, kind: &SessionKind) -> Result<(), Error> {
        if self.serves(kind) { Ok(()) } else { Err(Error::KernelUnknown { kind: kind.clone() }) }
    }

    /// Refuses to create what could not be started here.
    pub(crate) async fn must_find(
        &self,
        kind: &SessionKind,
        folder: &Path,
        environment: &Environment,
    ) -> Result<(), Error> {
        match self.factories.iter().find(|factory| factory.serves(kind)) {
            Some(factory) => factory.find(kind, folder, environment).await,
            None => Err(Error::KernelUnknown { kind: kind.clone() }),
        }
    }

    /// What a session that is to be created is for.
    pub(crate) async fn project_of(&self, create: &CreateSession) -> Result<ChosenProject, Error> {
        match self.factories.iter().find(|factory| factory.serves(&create.kind)) {
            Some(factory) => factory.project(Path::new(&create.working_directory), &create.project).await,
            // What only reads an agent's conversation needs nobody who goes on with it.
            None => Ok(ChosenProject::Nothing),
        }
    }

    /// What the compiler of a session that is to be created is told.
    pub(crate) fn arguments_of(&self, create: &CreateSession) -> Result<Vec<String>, Error> {
        match self.factories.iter().find(|factory| factory.serves(&create.kind)) {
            Some(factory) => factory.arguments(&create.arguments),
            None => Ok(Vec::new()),
        }
    }
}

/// Starts the task of a session that was read from the log, or has just been created.
///
/// A session that the log says is live has lost its worker with the daemon that had it, and is brought back; `lane` are
/// the commands that wait for their turn in it. `answered` is the command of a job that was cut off, where the log has an outcome under its id already: it gets no second.
pub(crate) fn spawn(
    shared: Arc<Shared>,
    session: Session,
    epoch: Epoch,
    lane: Vec<Queued>,
    answered: Option<CommandKey>,
) -> (SessionHandle, Entry) {
    let (requests, mailbox) = mpsc::channel(MAILBOX);
    let door = Arc::new(Mutex::new(Some(requests.clone())));
    let (visible_in, visible) = watch::channel(Arc::new(session.clone()));
    let (commits, commits_out) = mpsc::unbounded_channel();
    let (failed_in, failed) = oneshot::channel();
    let durable = Arc::new(AtomicU64::new(0));
    let (through_in, through) = watch::channel(0);
    let hub = Arc::clone(&shared.hub);
    let claims = Arc::clone(&shared.single_process.claims);
    let heard = CommitReceivers {
        visible: visible_in,
        durable: Arc::clone(&durable),
        through: through_in,
        failed: failed_in,
    };
    let wait = Duration::from_millis(shared.limits.store_wait_ms);
    let retry = Retry::new(Arc::downgrade(&shared.log), wait);
    let is_store_away = retry.is_away();
    let committer = commit_in_order(session.id, hub, claims, heard, retry, commits_out);
    task::spawn(committer);
    let (worker_in, from_worker) = mpsc::channel(NOTICES);
    let (waiter_in, from_waiter) = mpsc::channel(WAITS);
    let rate = RateLimit::new(shared.limits.session_commands_per_minute);
    let mut task = SessionTask {
        door: Arc::downgrade(&door),
        is_open: true,
        output: OutputBuffer::new(&shared.limits),
        late: OutputBuffer::late(&shared.limits),
        stream: StreamBuffer::default(),
        unstored: Vec::new(),
        secrets: Secrets::default(),
        accepted: PendingCommands::new(session.id, Arc::clone(&shared.single_process.claims), durable),
        is_store_away,
        arrivals: Arrivals::default(),
        traces: Traces::default(),
        shared,
        session,
        epoch,
        commits,
        visible: visible.clone(),
        through,
        lane: Lane::default(),
        waiter: None,
        waiter_in,
        from_waiter,
        rate,
        worker: None,
        from_worker,
        worker_in,
        flush_at: None,
        grace: None,
        live: None,
        given: LastValues::default(),
        answered,
        is_draining: false,
        drained: None,
    };
    task.take_over(lane);
    task::spawn(task.run(mailbox, failed));
    let entry = Entry { requests: requests.downgrade(), visible: visible.clone(), _door: door };
    (SessionHandle { requests, visible }, entry)
}

struct SessionTask {
    /// Gone with the engine.
    door: Weak<KeepAlive>,
    /// Whether the door is.
    is_open: bool,
    shared: Arc<Shared>,
    session: Session,
    epoch: Epoch,
    commits: Commits,
    /// The session as committed.
    visible: watch::Receiver<Arc<Session>>,
    /// How many commits are through.
    through: watch::Receiver<u64>,
    accepted: PendingCommands,
    /// Whether a commit waits for a store that cannot take it.
    is_store_away: Arc<AtomicBool>,
    /// Those that the log is asked for.
    arrivals: Arrivals,
    /// What of them is traced.
    traces: Traces,
    lane: Lane,
    /// The wait of the lane's first command for those it depends on.
    waiter: Option<Waiter>,
    waiter_in: mpsc::Sender<WaitResult>,
    from_waiter: mpsc::Receiver<WaitResult>,
    rate: RateLimit,
    worker: Option<Worker>,
    from_worker: mpsc::Receiver<FromWorker>,
    worker_in: mpsc::Sender<FromWorker>,
    output: OutputBuffer,
    /// What jobs put out that have ended.
    late: OutputBuffer,
    /// What an agent says of a message.
    stream: StreamBuffer,
    /// What code printed that is withheld.
    unstored: Vec<OutputItem>,
    /// What the code that ran last was answered and nobody may see.
    secrets: Secrets,
    flush_at: Option<Instant>,
    grace: Option<(Instant, JobId)>,
    /// Held while the session is not at rest, except by one of too many that were brought back.
    live: Option<OwnedSemaphorePermit>,
    /// What the submissions gave that its workers ran.
    given: LastValues,
    /// The command of a job that was cut off, where the log has an outcome under its id already.
    answered: Option<CommandKey>,
    /// The daemon is about to go down: new commands are turned away, and those that wait stay where they are.
    is_draining: bool,
    /// Who is told once nothing runs any more.
    drained: Option<oneshot::Sender<()>>,
}

impl SessionTask {
    /// Goes on where an earlier daemon was lost. Before anyone can ask: a job that was cut off has its outcome before its
    /// command can come again, and a command that waits, for its turn or an answer, is known.
    fn take_over(&mut self, lane: Vec<Queued>) {
        for queued in &lane {
            self.accepted.accept(queued.identity(), None);
        }
        for identity in self.session.asks.iter().filter_map(PendingAsk::identity) {
            self.accepted.accept(identity, None);
        }
        self.lane = Lane::of(lane);
        self.notice(Notice::DaemonLost);
        self.advance_lane();
    }

    async fn run(mut self, mut mailbox: mpsc::Receiver<Envelope>, mut failed: oneshot::Receiver<()>) {
        loop {
            let timer = self.next_timer();
            if self.is_open && self.is_idle() {
                self.set_door(None);
            }
            tokio::select! {
                biased;
                _ = &mut failed => break,
                Some((arriving, known)) = self.arrivals.next_known() => self.has_looked_up(arriving, known),
                envelope = mailbox.recv() => match envelope {
                    Some(Envelope { request: Request::ShutDown { reply }, .. }) => {
                        self.shut_down();
                        // The engine waits for all sessions; it need not be there any more.
                        reply.send(()).ok();
                        break;
                    }
                    Some(Envelope { request, door }) => {
                        if !self.is_open {
                            self.set_door(Some(door));
                        }
                        self.serve(request);
                    }
                    // Nobody has a way here any more; whoever finds a new one has a new task.
                    None => break,
                },
                Ok(()) = self.through.changed(), if self.session.state() == SessionState::Uninitialized => {}
                // Before the worker, which may never stop talking.
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => self.on_timer(),
                Some(waited) = self.from_waiter.recv() => self.has_waited(waited),
                Some(word) = self.from_worker.recv() => self.hear(word),
            }
        }
        self.arrivals.looked_up().for_each(|key| self.accepted.give_up(&key));
        turn_away_all(mailbox).await;
    }

    fn set_door(&mut self, way: Option<mpsc::Sender<Envelope>>) {
        self.is_open = way.is_some();
        if let Some(door) = self.door.upgrade() {
            *door.lock().unwrap_or_else(PoisonError::into_inner) = way;
        }
    }

    /// Whether the session is at rest, with nothing that waits and nothing on its way to the disk.
    fn is_idle(&self) -> bool {
        let Session { lane, asks, .. } = &self.session;
        self.session.state() == SessionState::Uninitialized
            && lane.is_empty()
            && asks.is_empty()
            && self.arrivals.is_empty()
            && self.accepted.handed_over() == *self.through.borrow()
            && (self.rate.idle_at() <= now() || self.session.deleted_at.is_some())
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Submit { command, fingerprint, reply, asked_by, trace } => {
                self.admit(command, (fingerprint, asked_by), reply, trace);
            }
            Request::Check { code, file, reply } => {
                self.query(Action::Check, reply, |kernel| async move { kernel.check(code, file).await });
            }
            Request::Complete { code, cursor, reply } => {
                self.query(Action::Complete, reply, move |kernel| async move {
                    kernel.complete(code, cursor).await
                });
            }
            Request::Query { query, reply } => {
                self.query(query.action(), reply, |kernel| async move { kernel.query(query).await });
            }
            Request::Kernel { reply } => {
                let is_ready = self.session.state() == SessionState::Ready;
                let runner = self.runner().filter(|_| is_ready);
                reply.send(runner.and_then(|runner| runner.kernel().cloned())).ok();
            }
            Request::Question { question, reply } => self.ask_agent(question, reply),
            Request::Usage { reply } => {
                let usage = self.runner().and_then(|runner| runner.process().usage());
                reply.send(usage).ok();
            }
            Request::Hear { notice } => self.notice(notice),
            Request::Drain { reply } => {
                self.begin_draining();
                self.drained = Some(reply);
                self.tell_drained();
            }
            Request::ShutDown { .. } => {}
        }
    }

    /// Gives the place up when the session rests; takes one, where one is left, when it was brought back.
    fn keep_slot(&mut self) {
        if self.session.state() == SessionState::Uninitialized {
            self.live = None;
        } else if self.live.is_none() {
            self.live = Arc::clone(&self.shared.live).try_acquire_owned().ok();
        }
    }

    fn carry_out(&mut self, command: Command, fingerprint: CommandFingerprint, deadline: Option<Deadline>) {
        let identity = Identity::of(&command, fingerprint.clone());
        self.traces.has_turn(&key_of(&identity));
        if let SessionCommand::Cancel(command::Cancel { target: Some(target) }) = &command.body
            && let Some(withdrawn) = self.lane.take(&identity.principal, target)
        {
            return self.withdraw(withdrawn, identity);
        }
        if self.takes_back_first(&command.body)
            && let Some(withdrawn) = self.lane.take_first()
        {
            return self.withdraw(withdrawn, identity);
        }
        let fresh = Uuid::now_v7();
        match command.body.rules().ends {
            Ends::Nothing => {}
            Ends::Worker => self.hear_out(),
            Ends::Session => {
                self.hear_out();
                // Nothing comes after it, unless it is refused.
                if self.ends(&command) {
                    self.turn_away();
                }
            }
        }
        if let Err(error) = self.decide(Input::Command { command, fingerprint, deadline, fresh }) {
            if self.session.waits(&identity.principal, &identity.command) {
                return self.decide_surely(Input::Leave { identity, error });
            }
            self.traces.refused(&key_of(&identity), &error);
            self.accepted.refuse(&key_of(&identity), &error);
        }
    }

    /// What is never refused.
    fn decide_surely(&mut self, input: Input) {
        if let Err(error) = self.decide(input) {
            tracing::error!(session = %self.session.id, %error, "what is never refused was refused");
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let running = self.session.running().filter(|running| !running.is_answered);
        let overdue = running.and_then(|running| running.deadline).map(|deadline| deadline.at);
        let unanswered =
            self.session.asks.iter().filter_map(|pending| pending.ask.deadline).map(|deadline| deadline.at);
        // One at rest has a task until its rate can be forgotten.
        let at_rest = self.is_open && self.session.state() == SessionState::Uninitialized;
        let forgotten = at_rest.then(|| self.rate.idle_at()).filter(|at| *at > now());
        let idle = self.idle_at();
        let deadline = overdue
            .into_iter()
            .chain(forgotten)
            .chain(self.lane.next_deadline())
            .chain(unanswered)
            .chain(idle)
            .min();
        let deadline = deadline.map(|at| Instant::now() + until(at));
        [self.flush_at, self.grace.map(|(at, _)| at), deadline].into_iter().flatten().min()
    }

    /// When an agent that has nothing to do goes to rest.
    fn idle_at(&self) -> Option<Timestamp> {
        let limit_ms = self.shared.limits.agent_idle_ms;
        let is_idle = self.session.is_agent() && self.session.state() == SessionState::Ready;
        (is_idle && limit_ms > 0).then(|| Deadline::after(self.session.last_activity, limit_ms).at)
    }

    fn on_timer(&mut self) {
        self.end_overdue();
        if self.idle_at().is_some_and(|at| at <= now()) {
            self.notice(Notice::Idle);
        }
        let now = Instant::now();
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_output();
        }
        if let Some((at, job)) = self.grace
            && at <= now
        {
            self.grace = None;
            self.hear_out();
            self.notice(Notice::GraceExpired { job });
        }
    }

    /// Nothing refuses a notice; one that comes too late decides nothing.
    fn notice(&mut self, notice: Notice) {
        self.decide_surely(Input::Notice(notice));
    }

    /// The one road of every change: decide, take in, hand to the committer, carry out, and look at the lane again.
    fn decide(&mut self, input: Input) -> Result<(), Error> {
        if !is_output(&input) {
            self.flush_output();
            self.record_end_of_output(&input);
        }
        let now = now();
        let Decision { events, outcomes, effects } = decide(&self.session, input, now, &self.shared.limits)?;
        if !events.is_empty() || !outcomes.is_empty() {
            self.commit(now, events, outcomes);
        }
        for effect in effects {
            self.carry_out_effect(effect);
        }
        self.keep_slot();
        self.advance_lane();
        self.tell_drained();
        Ok(())
    }

    /// Records the end of the running job's output where this input ends the job. An outcome names the event that ended its job, so what stands
    /// before that event is recorded first.
    fn record_end_of_output(&mut self, input: &Input) {
        if !self.output.has_end() {
            return;
        }
        let decided = decide(&self.session, input.clone(), now(), &self.shared.limits);
        if decided.is_ok_and(|decided| decided.events.iter().any(|(_, body)| body.job_end().is_some())) {
            let end = self.output.end();
            self.record_output(end);
        }
    }

    fn tell_drained(&mut self) {
        if !self.session.state().is_busy()
            && let Some(drained) = self.drained.take()
        {
            // The engine may have given up waiting.
            drained.send(()).ok();
        }
    }

    fn commit(&mut self, at: Timestamp, events: Vec<(Metadata, EventBody)>, mut outcomes: Vec<Answer>) {
        outcomes.retain(|answer| {
            let is_of = |(principal, command): &CommandKey| {
                *principal == answer.principal && *command == answer.command
            };
            !self.answered.as_ref().is_some_and(is_of)
        });
        let live = outcomes.iter_mut().filter_map(|answer| answer.outcome.live_mut());
        live.for_each(|live| live.put_out.append(&mut self.unstored));
        let first = self.session.last_seq.next();
        let mut new_events = Vec::with_capacity(events.len());
        for (metadata, body) in events {
            let (session, seq) = (self.session.id, self.session.last_seq.next());
            // The position is the log's to give, and nothing here depends on it.
            let event = Event { session, seq, position: Position::ZERO, at, metadata, body };
            self.session.evolve(&event);
            new_events.push(NewEvent { at, metadata: event.metadata, body: event.body });
        }
        self.append(first, new_events, outcomes, self.session.version);
    }

    /// Appends events that the session has been through, and outcomes whose commands ended in this version of it.
    fn append(&mut self, first: Seq, events: Vec<NewEvent>, outcomes: Vec<Answer>, version: Version) {
        let outcomes = self.accepted.with_aliases(outcomes);
        let ended =
            outcomes.iter().map(|answer| (answer.principal.clone(), answer.command.clone())).collect();
        let mut replies = Vec::new();
        for answer in &outcomes {
            let waiting = self.accepted.decided(answer, version);
            replies.extend(waiting.into_iter().map(|reply| (reply, answer.outcome.clone())));
        }
        self.shared.single_process.outcomes.add(outcomes.len() as u64);
        let (span, trace) = self.traces.commit(&events, &outcomes);
        let appended = self.shared.log.append(Append {
            session: self.session.id,
            epoch: self.epoch,
            first,
            events,
            outcomes,
            version,
            projection: self.session.clone(),
            trace: span,
        });
        self.hand_over(appended, ended, replies, version, trace);
    }

    fn hand_over(
        &mut self,
        appended: Appended,
        ended: Vec<CommandKey>,
        replies: Vec<(Reply, Outcome)>,
        version: Version,
        trace: CommitTrace,
    ) {
        self.accepted.commit_handed_over();
        // The committer outlives this task.
        let after = Arc::new(self.session.clone());
        let decided = Instant::now();
        let forgets = self.session.deleted_at.map(|_| Arc::clone(&self.shared));
        self.commits.send(Commit { decided, appended, after, ended, replies, version, trace, forgets }).ok();
    }

    fn carry_out_effect(&mut self, effect: Effect) {
        match effect {
            Effect::StartWorker { after } => self.start_worker(after),
            Effect::Reload => self.reload(),
            Effect::ResetWorker => self.reset_worker(),
            Effect::KillWorker => self.drop_worker(),
            Effect::Run { job, code, file, command_line } => {
                self.unstored.clear();
                self.secrets.clear();
                self.traces.job_begins(&self.session, job);
                self.run_job(Submission { job, code, file, command_line, is_withheld: false });
            }
            Effect::Work { job, work } => {
                self.traces.job_begins(&self.session, job);
                let requested = self.session.running().map(|running| running.requested);
                let requested = requested.unwrap_or(self.session.last_seq);
                self.give(Order::Work { job, work, requested });
            }
            Effect::Steer { queued } => {
                self.order(Order::Steer(queued));
            }
            Effect::Answer { ask, answer } => {
                if let Ok(answer) = answer.as_ref()
                    && self.session.is_secret(ask)
                {
                    self.secrets.add(answer);
                }
                // Where no worker takes it, the job that asked is gone with its worker.
                self.order(Order::Answer { ask, answer });
            }
            Effect::Interrupt { job } => {
                let grace = self.grace();
                self.grace = Some((Instant::now() + grace, job));
                // Where no worker takes it, none runs the job, and its exit is on its way.
                self.order(Order::Interrupt);
            }
        }
    }

    /// How long a job may take to stop.
    fn grace(&self) -> Duration {
        let (limits, kind) = (&self.shared.limits, &self.session.kind);
        Duration::from_millis(match (self.session.is_agent(), kind.is_fsharp()) {
            (true, _) => limits.agent_cancel_grace_ms,
            (false, true) => limits.cancel_grace_ms,
            (false, false) => limits.jupyter_cancel_grace_ms,
        })
    }

    fn shut_down(&mut self) {
        self.begin_draining();
        self.hear_out();
        self.notice(Notice::DaemonStopping);
    }
}

/// Closes a mailbox and drops what is in it, and what was on its way there. Dropping the mailbox alone would leave the latter, whose
/// senders would wait for ever: each has the way to the mailbox with it, and so keeps it.
async fn turn_away_all(mut mailbox: mpsc::Receiver<Envelope>) {
    mailbox.close();
    while mailbox.recv().await.is_some() {}
}

/// Output alone does not make held output leave.
fn is_output(input: &Input) -> bool {
    let Input::Notice(notice) = input else { return false };
    matches!(
        notice,
        Notice::Runner(
            RunnerNotice::Output { .. }
                | RunnerNotice::Display { .. }
                | RunnerNotice::Cleared { .. }
                | RunnerNotice::Comm { .. }
                | RunnerNotice::Agent(AgentNotice::Said(_))
        ) | Notice::OutputCut { .. }
    )
}

/// How long it is until then; nothing where it is past.
fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
}

/// The present moment, as exact as the log keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_was_about_to_send_when_a_mailbox_closes_is_not_left_waiting() {
        let (requests, mailbox) = mpsc::channel::<Envelope>(2);
        let envelope = |reply| Envelope { request: Request::Drain { reply }, door: requests.clone() };
        let (reply, early) = oneshot::channel();
        requests.send(envelope(reply)).await.ok().unwrap();
        let place = requests.reserve().await.unwrap();
        let closing = tokio::spawn(turn_away_all(mailbox));
        requests.closed().await;
        let (reply, late) = oneshot::channel();
        place.send(envelope(reply));
        assert!(early.await.is_err());
        assert!(late.await.is_err());
        closing.await.unwrap();
    }
}

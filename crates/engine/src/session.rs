//! One session at run time: the task that owns its state, its lane and its worker.
//!
//! Everything that changes the session comes through here one at a time, and what `model::decide` answers is handed to
//! the committer and carried out. What only reads (check, completions, exploration) is passed to the worker and never
//! waits behind a job.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use mainstay_log::{Append, Epoch, Log, NewEvent, StoredOutcome};
use mainstay_model::affordance::{Availability, availability};
use mainstay_model::decide::{Answer, Identity};
use mainstay_model::rate::RateLimit;
use mainstay_model::{
    Action, Admission, Command, CommandFingerprint, CommandId, Deadline, Decision, Diagnostic, Effect, Error,
    Event, EventBody, Input, JobId, Limits, Metadata, Notice, Outcome, Position, Principal, QueuedCommand,
    RateScope, Response, RunnerNotice, RunningJob, Session, SessionCommand, SessionState, TextPosition,
    Timestamp, WorkerExit, decide,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use crate::accepted::{Accepted, Arrival, Incoming, Reply};
use crate::claims::{Claims, CommandKey};
use crate::commit::{Commit, Commits, commit_in_order};
use crate::dependencies::{Dependant, Waited, Waiter};
use crate::hub::Hub;
use crate::lane::{Lane, Queued};
use crate::output::{OutputBuffer, Piece};
use crate::runner::{Completions, Members, ResourceUsage, Runner, RunnerFactory, RunnerSpec, Submission};
use crate::warm_up::{FromWorker, WarmUp, exited};
use crate::worker::{Order, Worker, reset};

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
    Submit { command: Command, fingerprint: CommandFingerprint, reply: Reply },
    /// Check code.
    Check { code: String, file: Option<String>, reply: oneshot::Sender<Result<Vec<Diagnostic>, Error>> },
    /// Complete at a cursor.
    Complete { code: String, cursor: TextPosition, reply: oneshot::Sender<Result<Completions, Error>> },
    /// List members.
    Explore { name: String, reply: oneshot::Sender<Result<Members, Error>> },
    /// What the worker uses.
    Usage { reply: oneshot::Sender<Option<ResourceUsage>> },
    /// The daemon is about to go down: what waits and what comes is turned away; answered when nothing runs any more.
    Drain { reply: oneshot::Sender<()> },
    /// The daemon goes down; answered when the session is at rest.
    ShutDown { reply: oneshot::Sender<()> },
}

/// The way to a session's task.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    /// Requests.
    pub(crate) requests: mpsc::Sender<Request>,
    /// The session as committed.
    pub(crate) visible: watch::Receiver<Arc<Session>>,
}

/// What every session's task shares with the engine.
pub(crate) struct Shared {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) limits: Limits,
    pub(crate) factories: Vec<Arc<dyn RunnerFactory>>,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// How many more sessions may be live.
    pub(crate) live: Arc<Semaphore>,
    pub(crate) claims: Arc<Claims>,
    /// The commands of all sessions together.
    pub(crate) rate: Mutex<RateLimit>,
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
) -> SessionHandle {
    let (requests, mailbox) = mpsc::channel(MAILBOX);
    let (visible_in, visible) = watch::channel(Arc::new(session.clone()));
    let (commits, commits_out) = mpsc::unbounded_channel();
    let (failed_in, failed) = oneshot::channel();
    let durable = Arc::new(AtomicU64::new(0));
    let hub = Arc::clone(&shared.hub);
    let claims = Arc::clone(&shared.claims);
    let committer =
        commit_in_order(session.id, hub, claims, visible_in, Arc::clone(&durable), commits_out, failed_in);
    tokio::spawn(committer);
    let (worker_in, from_worker) = mpsc::channel(NOTICES);
    let (waiter_in, from_waiter) = mpsc::channel(WAITS);
    let rate = RateLimit::new(shared.limits.session_commands_per_minute);
    let mut task = SessionTask {
        output: OutputBuffer::new(shared.limits.output_bytes_per_job),
        accepted: Accepted::new(session.id, Arc::clone(&shared.claims), durable),
        shared,
        session,
        epoch,
        commits,
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
        answered,
        is_draining: false,
        drained: None,
    };
    task.take_over(lane);
    tokio::spawn(task.run(mailbox, failed));
    SessionHandle { requests, visible }
}

struct SessionTask {
    shared: Arc<Shared>,
    session: Session,
    epoch: Epoch,
    commits: Commits,
    accepted: Accepted,
    lane: Lane,
    /// The wait of the lane's first command for those it depends on.
    waiter: Option<Waiter>,
    waiter_in: mpsc::Sender<Waited>,
    from_waiter: mpsc::Receiver<Waited>,
    rate: RateLimit,
    worker: Option<Worker>,
    from_worker: mpsc::Receiver<FromWorker>,
    worker_in: mpsc::Sender<FromWorker>,
    output: OutputBuffer,
    flush_at: Option<Instant>,
    grace: Option<(Instant, JobId)>,
    /// Held while the session is not at rest, except by one of too many that were brought back.
    live: Option<OwnedSemaphorePermit>,
    /// The command of a job that was cut off, where the log has an outcome under its id already.
    answered: Option<CommandKey>,
    /// The daemon is about to go down: commands are turned away.
    is_draining: bool,
    /// Who is told once nothing runs any more.
    drained: Option<oneshot::Sender<()>>,
}

impl SessionTask {
    /// Goes on where an earlier daemon was lost. Before anyone can ask: a job that was cut off has its outcome before its
    /// command can come again, and a command that waits is known.
    fn take_over(&mut self, lane: Vec<Queued>) {
        for queued in &lane {
            self.accepted.accept(queued.incoming(), None);
        }
        self.lane = Lane::of(lane);
        self.notice(Notice::DaemonLost);
        self.advance_lane();
    }

    async fn run(mut self, mut mailbox: mpsc::Receiver<Request>, mut failed: oneshot::Receiver<()>) {
        loop {
            let timer = self.next_timer();
            tokio::select! {
                biased;
                _ = &mut failed => break,
                request = mailbox.recv() => match request {
                    Some(Request::ShutDown { reply }) => {
                        self.shut_down();
                        // The engine waits for all sessions; it need not be there any more.
                        reply.send(()).ok();
                        break;
                    }
                    Some(request) => self.serve(request).await,
                    None => break,
                },
                // Before the worker, which may never stop talking.
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => self.on_timer(),
                Some(waited) = self.from_waiter.recv() => self.has_waited(waited),
                Some(word) = self.from_worker.recv() => self.hear(word),
            }
        }
        mailbox.close();
    }

    async fn serve(&mut self, request: Request) {
        match request {
            Request::Submit { command, fingerprint, reply } => self.admit(command, fingerprint, reply).await,
            Request::Check { code, file, reply } => {
                self.query(Action::Check, reply, |runner| async move { runner.check(code, file).await });
            }
            Request::Complete { code, cursor, reply } => {
                self.query(Action::Complete, reply, move |runner| async move {
                    runner.complete(code, cursor).await
                });
            }
            Request::Explore { name, reply } => {
                self.query(Action::Explore, reply, |runner| async move { runner.explore(name).await });
            }
            Request::Usage { reply } => {
                let usage = self.runner().and_then(|runner| runner.usage());
                reply.send(usage).ok();
            }
            Request::Drain { reply } => {
                self.turn_away();
                (self.is_draining, self.drained) = (true, Some(reply));
                self.tell_drained();
            }
            Request::ShutDown { .. } => {}
        }
    }

    /// Takes a command in: one that was there before gets the first one's outcome, a new one is carried out, queued or
    /// refused. Only a new one counts for the limits.
    async fn admit(&mut self, command: Command, fingerprint: CommandFingerprint, reply: Reply) {
        let key = (command.source.principal(), command.id.clone());
        let incoming = Incoming { key, idempotency: command.key.clone(), fingerprint };
        let reply = match self.accepted.arrive(&incoming, reply) {
            Arrival::New(reply) => reply,
            Arrival::Joined => return,
            Arrival::Follow(reply, outcome) => {
                return self.hand_over(ready(Ok(Vec::new())).boxed(), Vec::new(), vec![(reply, outcome)]);
            }
            Arrival::Copy(reply, outcome) => return self.copy(incoming, reply, outcome),
            Arrival::Conflict(reply, error) => return reply.refuse(error),
        };
        match self.known(&incoming).await {
            Ok(None) => self.admit_new(command, incoming, reply),
            Ok(Some(Stored::UnderId(stored))) => {
                self.accepted.give_up(&incoming.key);
                reply.replay(stored.outcome, stored.version);
            }
            Ok(Some(Stored::UnderKey(stored))) => self.copy(incoming, reply.repeated(), stored.outcome),
            Err(error) => {
                self.accepted.give_up(&incoming.key);
                reply.refuse(error);
            }
        }
    }

    /// What the log knows of a command: by its key, else by its id.
    async fn known(&self, incoming: &Incoming) -> Result<Option<Stored>, Error> {
        let Incoming { key: (principal, id), idempotency, fingerprint } = incoming;
        let log = &self.shared.log;
        let stored = log.outcome(principal, id).await?;
        if let Some(stored) = stored {
            return match stored.fingerprint == *fingerprint {
                true => Ok(Some(Stored::UnderId(stored))),
                false => Err(Error::CommandConflict { command: id.clone() }),
            };
        }
        let Some(key) = idempotency else { return Ok(None) };
        match log.outcome_of_key(principal, self.session.id, key).await? {
            None => Ok(None),
            Some(stored) if stored.fingerprint == *fingerprint => Ok(Some(Stored::UnderKey(stored))),
            Some(_) => Err(Error::KeyConflict { key: key.clone() }),
        }
    }

    /// Stores an outcome that was found by its key under one more id.
    fn copy(&mut self, incoming: Incoming, reply: Reply, outcome: Outcome) {
        let Incoming { key, fingerprint, .. } = incoming.clone();
        self.accepted.accept(Incoming { idempotency: None, ..incoming }, Some(reply));
        let (principal, command) = key;
        self.commit(now(), Vec::new(), vec![Answer { principal, command, key: None, fingerprint, outcome }]);
    }

    fn admit_new(&mut self, command: Command, incoming: Incoming, reply: Reply) {
        match self.admissible(&command) {
            Ok(place) => {
                let fingerprint = incoming.fingerprint.clone();
                self.accepted.accept(incoming, Some(reply));
                let deadline = command.timeout_ms.map(|limit_ms| Deadline::after(now(), limit_ms));
                match place {
                    Place::Now => self.carry_out(command, fingerprint, deadline),
                    Place::Lane => self.queue(command, fingerprint, deadline),
                }
            }
            Err(error) => {
                self.accepted.give_up(&incoming.key);
                reply.refuse(error);
            }
        }
    }

    /// Where a command goes, if it goes anywhere.
    fn admissible(&mut self, command: &Command) -> Result<Place, Error> {
        command.validate(&self.shared.limits)?;
        let place = self.place(command)?;
        if command.is_serial() {
            self.check_rates()?;
        }
        self.take_slot(&command.body)?;
        Ok(place)
    }

    /// What passes a running job at once counts for none of these: an escape hatch that is shut when it is needed is none.
    fn check_rates(&mut self) -> Result<(), Error> {
        let limits = &self.shared.limits;
        if self.shared.claims.count() > limits.commands {
            return Err(Error::TooManyCommands { limit: limits.commands });
        }
        let limited =
            |scope, limit| move |retry_after_ms| Error::RateLimited { scope, limit, retry_after_ms };
        let session = limited(RateScope::Session, limits.session_commands_per_minute);
        let server = limited(RateScope::Server, limits.commands_per_minute);
        self.rate.pass(now()).map_err(session)?;
        self.shared.rate.lock().unwrap_or_else(PoisonError::into_inner).pass(now()).map_err(server)
    }

    fn queue(&mut self, command: Command, fingerprint: CommandFingerprint, deadline: Option<Deadline>) {
        let (state, action) = (self.session.state(), command.body.action());
        if state == SessionState::Uninitialized && availability(state, action) == Availability::Refused {
            self.start_for(&command);
        }
        let Command { id, key, source, depends_on, if_version, body, .. } = command;
        let queued = QueuedCommand { command: id, fingerprint, key, depends_on, if_version, deadline, body };
        let queued = Queued::new(source, queued);
        self.lane.push(queued.clone());
        let Queued { source, queued, .. } = queued;
        self.decide_surely(Input::Queue { source, queued });
    }

    /// Takes a place among the live sessions for a session at rest that is to start.
    fn take_slot(&mut self, command: &SessionCommand) -> Result<(), Error> {
        let starts = match command {
            SessionCommand::Start | SessionCommand::HardReset => true,
            SessionCommand::Eval { .. } | SessionCommand::Reset => true,
            SessionCommand::Cancel { .. } | SessionCommand::Stop | SessionCommand::Rename { .. } => false,
        };
        if starts && self.session.state() == SessionState::Uninitialized {
            let slot = Arc::clone(&self.shared.live).try_acquire_owned();
            let full = |_| Error::TooManySessions { limit: self.shared.limits.live_sessions };
            self.live = Some(slot.map_err(full)?);
        }
        Ok(())
    }

    /// Gives the place up when the session rests; takes one, where one is left, when it was brought back.
    fn keep_slot(&mut self) {
        if self.session.state() == SessionState::Uninitialized {
            self.live = None;
        } else if self.live.is_none() {
            self.live = Arc::clone(&self.shared.live).try_acquire_owned().ok();
        }
    }

    fn place(&self, command: &Command) -> Result<Place, Error> {
        if self.is_draining {
            return Err(Error::DaemonStopping);
        }
        if let SessionCommand::Cancel { target: Some(target) } = &command.body {
            return self.place_of_cancel(&command.source.principal(), target);
        }
        let (state, action) = (self.session.state(), command.body.action());
        let is_offered = availability(state, action) != Availability::Refused;
        if is_offered && !command.is_serial() {
            return Ok(Place::Now);
        }
        if is_offered && self.lane.is_empty() && command.depends_on.is_empty() {
            return Ok(Place::Now);
        }
        // What depends on others waits for them, whatever it says of its turn.
        let may_wait = command.admission == Admission::Queue
            || (is_offered && self.lane.is_empty() && !command.depends_on.is_empty());
        if !command.is_serial() || !may_wait || (!is_offered && state == SessionState::Faulted) {
            return Err(Error::NotOffered { action, state });
        }
        let limit = self.shared.limits.lane_commands;
        if self.lane.len() >= limit {
            return Err(Error::LaneFull { limit });
        }
        Ok(Place::Lane)
    }

    /// A cancel that names its command passes everything, as long as that command runs or waits here.
    fn place_of_cancel(&self, principal: &Principal, target: &CommandId) -> Result<Place, Error> {
        let runs = self.session.running().is_some_and(|running| running.answers(principal, target));
        if runs || self.lane.has(principal, target) {
            Ok(Place::Now)
        } else {
            Err(Error::NotRunning { command: target.clone() })
        }
    }

    /// Starts a session at rest because a command waits for it.
    fn start_for(&mut self, command: &Command) {
        let id = CommandId::anonymous(Uuid::now_v7());
        let start = Command::new(id, command.source.clone(), SessionCommand::Start);
        let fingerprint = start.fingerprint(self.session.id);
        self.carry_out(start, fingerprint, None);
    }

    fn carry_out(&mut self, command: Command, fingerprint: CommandFingerprint, deadline: Option<Deadline>) {
        let identity = Identity {
            principal: command.source.principal(),
            command: command.id.clone(),
            key: command.key.clone(),
            fingerprint: fingerprint.clone(),
        };
        if let SessionCommand::Cancel { target: Some(target) } = &command.body
            && let Some(withdrawn) = self.lane.take(&identity.principal, target)
        {
            return self.withdraw(withdrawn, identity);
        }
        let job = JobId::from_uuid(Uuid::now_v7());
        if matches!(command.body, SessionCommand::HardReset | SessionCommand::Stop) {
            self.hear_out();
        }
        if let Err(error) = self.decide(Input::Command { command, fingerprint, deadline, job }) {
            let key = (identity.principal.clone(), identity.command.clone());
            if self.session.waits(&key.0, &key.1) {
                return self.decide_surely(Input::Leave { identity, error });
            }
            self.accepted.refuse(&key, &error);
        }
    }

    /// Answers the command that was taken out of the lane, and then the one that cancelled it.
    fn withdraw(&mut self, withdrawn: Queued, cancel: Identity) {
        let response = Response::Withdrawn { command: withdrawn.queued.command.clone() };
        self.leave(withdrawn, Error::Cancelled);
        let Identity { principal, command, key, fingerprint } = cancel;
        let outcome = Outcome::Done { response };
        self.commit(now(), Vec::new(), vec![Answer { principal, command, key, fingerprint, outcome }]);
    }

    /// Answers a command that was taken out of the lane and will not be carried out.
    fn leave(&mut self, queued: Queued, error: Error) {
        self.decide_surely(Input::Leave { identity: queued.identity(), error });
    }

    /// What is never refused.
    fn decide_surely(&mut self, input: Input) {
        if let Err(error) = self.decide(input) {
            tracing::error!(session = %self.session.id, %error, "what is never refused was refused");
        }
    }

    fn hear(&mut self, word: FromWorker) {
        match word {
            FromWorker::Started(runner) => {
                if let Some(worker) = &mut self.worker {
                    worker.is_up(runner, Duration::from_millis(self.shared.limits.cancel_grace_ms));
                }
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Output { job, stream, text })) => {
                let pieces = self.output.push(job, stream, &text);
                self.record_output(pieces);
            }
            FromWorker::Notice(notice) => self.notice(notice),
        }
    }

    /// Hears what the worker has said already, before it is killed for what it has not.
    fn hear_out(&mut self) {
        for _ in 0..NOTICES {
            let Ok(word) = self.from_worker.try_recv() else { return };
            self.hear(word);
        }
    }

    fn flush_output(&mut self) {
        let held = self.output.flush();
        self.record_output(held);
    }

    fn record_output(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        for piece in pieces {
            let notice = match piece {
                Piece::Chunk(output) => Notice::Runner(output),
                Piece::Cut(job) => {
                    Notice::OutputCut { job, limit: self.shared.limits.output_bytes_per_job as u64 }
                }
            };
            self.notice(notice);
        }
        self.flush_at = match (self.output.is_pending(), self.flush_at) {
            (false, _) => None,
            (true, Some(at)) => Some(at),
            (true, None) => Some(Instant::now() + OUTPUT_INTERVAL),
        };
    }

    fn next_timer(&self) -> Option<Instant> {
        let running = self.session.running().filter(|running| !running.is_answered);
        let overdue = running.and_then(|running| running.deadline).map(|deadline| deadline.at);
        let deadline = overdue.into_iter().chain(self.lane.next_deadline()).min();
        let deadline = deadline.map(|at| Instant::now() + until(at));
        [self.flush_at, self.grace.map(|(at, _)| at), deadline].into_iter().flatten().min()
    }

    /// Answers what takes longer than it may.
    fn end_overdue(&mut self) {
        while let Some((queued, limit_ms)) = self.lane.take_overdue(now()) {
            self.leave(queued, Error::TimedOut { limit_ms });
        }
        let overdue = |running: &&RunningJob| {
            !running.is_answered && running.deadline.is_some_and(|deadline| deadline.at <= now())
        };
        if let Some(job) = self.session.running().filter(overdue).map(|running| running.job) {
            self.notice(Notice::DeadlineReached { job });
        }
    }

    fn on_timer(&mut self) {
        self.end_overdue();
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
        let outcomes = self.accepted.with_aliases(outcomes);
        let first = self.session.last_seq.next();
        let mut new_events = Vec::with_capacity(events.len());
        for (metadata, body) in events {
            let (session, seq) = (self.session.id, self.session.last_seq.next());
            // The position is the log's to give, and nothing here depends on it.
            let event = Event { session, seq, position: Position::ZERO, at, metadata, body };
            self.session.evolve(&event);
            new_events.push(NewEvent { at, metadata: event.metadata, body: event.body });
        }
        let ended =
            outcomes.iter().map(|answer| (answer.principal.clone(), answer.command.clone())).collect();
        let mut replies = Vec::new();
        for answer in &outcomes {
            let waiting = self.accepted.decided(answer);
            replies.extend(waiting.into_iter().map(|reply| (reply, answer.outcome.clone())));
        }
        let appended = self.shared.log.append(Append {
            session: self.session.id,
            epoch: self.epoch,
            first,
            events: new_events,
            outcomes,
            projection: self.session.clone(),
        });
        self.hand_over(appended, ended, replies);
    }

    fn hand_over(
        &mut self,
        appended: BoxFuture<'static, Result<Vec<Event>, Error>>,
        ended: Vec<CommandKey>,
        replies: Vec<(Reply, Outcome)>,
    ) {
        self.accepted.commit_handed_over();
        // The committer outlives this task.
        self.commits.send(Commit { appended, after: Arc::new(self.session.clone()), ended, replies }).ok();
    }

    fn carry_out_effect(&mut self, effect: Effect) {
        match effect {
            Effect::StartWorker { after } => self.start_worker(after),
            Effect::ResetWorker => self.reset_worker(),
            Effect::KillWorker => self.drop_worker(),
            Effect::Run { job, code, file } => self.run_job(job, code, file),
            Effect::Interrupt { job } => {
                let grace = Duration::from_millis(self.shared.limits.cancel_grace_ms);
                self.grace = Some((Instant::now() + grace, job));
                // Where no worker takes it, none runs the job, and its exit is on its way.
                self.order(Order::Interrupt);
            }
        }
    }

    fn start_worker(&mut self, after: Duration) {
        self.drop_worker();
        let kind = self.session.kind.clone();
        let Some(factory) = self.shared.factories.iter().find(|factory| factory.serves(&kind)) else {
            let unknown = Notice::WarmUpFailed { error: Error::KernelUnknown { kind } };
            return self.tell_later(FromWorker::Notice(unknown));
        };
        let warm_up = WarmUp {
            factory: Arc::clone(factory),
            spec: RunnerSpec {
                session: self.session.id,
                kind,
                working_directory: PathBuf::from(&self.session.working_directory),
            },
            log: Arc::clone(&self.shared.log),
            limits: self.shared.limits.clone(),
            starts: Arc::clone(&self.shared.starts),
            after,
            definitions_since: self.session.definitions_since,
            tell: self.worker_in.clone(),
        };
        self.worker = Some(Worker::start(warm_up));
    }

    /// Kills the worker. The channel is replaced with it, so that nothing it still says is taken for its successor's.
    fn drop_worker(&mut self) {
        self.worker = None;
        self.grace = None;
        (self.worker_in, self.from_worker) = mpsc::channel(NOTICES);
    }

    fn reset_worker(&mut self) {
        let Some(runner) = self.runner() else { return self.start_worker(Duration::ZERO) };
        let limit = Duration::from_millis(self.shared.limits.worker_start_ms);
        tokio::spawn(reset(runner, limit, self.worker_in.clone()));
    }

    fn run_job(&mut self, job: JobId, code: String, file: Option<String>) {
        if !self.order(Order::Run(Submission { job, code, file })) {
            self.tell_later(FromWorker::Notice(exited(WorkerExit::Unknown)));
        }
    }

    fn order(&self, order: Order) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.order(order))
    }

    /// Says something to this task as if the worker had, once the present decision is through.
    fn tell_later(&self, word: FromWorker) {
        let tell = self.worker_in.clone();
        tokio::spawn(async move { tell.send(word).await });
    }

    /// Lets the commands in the lane go as far as the state allows; refuses them where it never will. Each that goes comes
    /// back here when it is decided.
    fn advance_lane(&mut self) {
        let first = self.lane.first().map(Queued::key);
        self.waiter.take_if(|waiter| first.as_ref().is_none_or(|first| !waiter.is_of(first)));
        let Some(next) = self.lane.first() else { return };
        let (state, action) = (self.session.state(), next.queued.body.action());
        if availability(state, action) == Availability::Refused {
            let never = match state {
                SessionState::Faulted => Error::NotOffered { action, state },
                SessionState::Uninitialized => Error::SessionStopped,
                SessionState::WarmingUp
                | SessionState::Ready
                | SessionState::Evaluating
                | SessionState::Waiting(_) => return,
            };
            return self.leave_first(never);
        }
        if !next.is_free {
            return self.wait_for_dependencies();
        }
        if let Some(next) = self.lane.take_first() {
            let fingerprint = next.queued.fingerprint.clone();
            let (command, deadline) = next.into_command();
            self.carry_out(command, fingerprint, deadline);
        }
    }

    fn leave_first(&mut self, error: Error) {
        if let Some(first) = self.lane.take_first() {
            self.leave(first, error);
        }
    }

    fn wait_for_dependencies(&mut self) {
        let Some(first) = self.lane.first().filter(|_| self.waiter.is_none()) else { return };
        let (key, depends_on) = (first.key(), first.queued.depends_on.clone());
        let behind = depends_on.iter().find(|dependency| self.lane.has(&key.0, dependency));
        if let Some(dependency) = behind.cloned() {
            return self.leave_first(Error::DependencyInLane { dependency });
        }
        let limit_ms = self.shared.limits.dependency_wait_ms;
        let dependant = Dependant { key, session: self.session.id, depends_on, limit_ms };
        let (claims, log) = (Arc::clone(&self.shared.claims), Arc::clone(&self.shared.log));
        self.waiter = Some(Waiter::start(dependant, claims, log, self.waiter_in.clone()));
    }

    /// Hears that a command has what it depends on, or never will.
    fn has_waited(&mut self, Waited { key, result }: Waited) {
        if self.waiter.take_if(|waiter| waiter.is_of(&key)).is_none() {
            return;
        }
        match result {
            Ok(()) => {
                self.lane.set_free(&key);
                self.advance_lane();
            }
            Err(error) => self.leave_first(error),
        }
    }

    /// Passes a query to the worker without waiting for it.
    fn query<T, F, A>(&self, action: Action, reply: oneshot::Sender<Result<T, Error>>, ask: A)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
        A: FnOnce(Arc<dyn Runner>) -> F + Send + 'static,
    {
        let state = self.session.state();
        let runner = match self.runner() {
            Some(runner) if availability(state, action) != Availability::Refused => runner,
            Some(_) | None => {
                reply.send(Err(Error::NotOffered { action, state })).ok();
                return;
            }
        };
        let limit_ms = self.shared.limits.query_ms;
        tokio::spawn(async move {
            let answer = timeout(Duration::from_millis(limit_ms), ask(runner)).await;
            reply.send(answer.unwrap_or(Err(Error::Timeout { limit_ms }))).ok();
        });
    }

    fn runner(&self) -> Option<Arc<dyn Runner>> {
        self.worker.as_ref()?.runner().cloned()
    }

    /// Commands that wait are told that their turn will not come.
    fn turn_away(&mut self) {
        while self.lane.first().is_some() {
            self.leave_first(Error::SessionStopped);
        }
    }

    fn shut_down(&mut self) {
        self.turn_away();
        self.hear_out();
        self.notice(Notice::DaemonStopping);
    }
}

/// Output alone does not make held output leave.
fn is_output(input: &Input) -> bool {
    matches!(input, Input::Notice(Notice::Runner(RunnerNotice::Output { .. }) | Notice::OutputCut { .. }))
}

/// An outcome that the log has.
enum Stored {
    /// Under the command's own id.
    UnderId(StoredOutcome),
    /// Under its key.
    UnderKey(StoredOutcome),
}

/// Where a command goes.
enum Place {
    /// It is carried out.
    Now,
    /// It waits for its turn.
    Lane,
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

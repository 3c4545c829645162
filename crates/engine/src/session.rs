//! One session at run time: the task that owns its state, its lane and its worker.
//!
//! Everything that changes the session comes through here one at a time, and what `model::decide` answers is handed to
//! the committer and carried out. What only reads (check, completions, exploration) is passed to the worker and never
//! waits behind a job. The task awaits no read of the store: commands are looked up beside it ([`arrivals`]).
//!
//! The way to the task is in [`handle`], the admission of commands in [`admission`], the lane in [`turns`], the worker in
//! [`workers`], appends to the log in [`appends`], deadlines in [`timers`].

mod admission;
mod appends;
mod arrival_order;
mod arrivals;
mod effects;
mod handle;
mod heard_notices;
mod takeover;
mod timers;
mod turns;
mod workers;

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use mainstay_log::Epoch;
use mainstay_model::command::{self, Ends};
use mainstay_model::decide::Identity;
use mainstay_model::outcome::OutputItem;
use mainstay_model::rate::RateLimit;
use mainstay_model::secret::Secrets;
use mainstay_model::{
    Action, AgentNotice, Command, CommandFingerprint, Deadline, Decision, Error, Input, JobId, Notice,
    RunnerNotice, Seq, Session, SessionCommand, SessionState, decide,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use uuid::Uuid;

use self::appends::UnsentEvents;
use self::arrivals::Arrivals;
use self::heard_notices::HeardNotices;
use crate::claims::{CommandKey, key_of};
use crate::clock::now;
use crate::commit::{CommitReceivers, Commits, commit_in_order};
use crate::dependencies::{WaitResult, Waiter};
use crate::inherited::Inherited;
use crate::lane::Lane;
use crate::named_prompts::NamedPrompts;
use crate::output::OutputBuffer;
use crate::pending_commands::PendingCommands;
use crate::retry::Retry;
use crate::shared::Shared;
use crate::stream::StreamBuffer;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::time::{Instant, sleep_until};
use crate::sync::{Mutex, task};
use crate::trace::Traces;
use crate::warm_up::{FromWorker, LastValues};
use crate::worker::Worker;

pub(crate) use self::handle::{Ending, Entry, OwnTask, Request, SessionHandle};
use self::handle::{Envelope, KeepAlive, turn_away_all};

/// How long output is held back to be joined with what follows.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(50);

/// Requests that may be on their way to one session; more wait at the sender.
const MAILBOX: usize = 128;

/// Ends of waits that may be on their way; only one counts at a time.
const WAITS: usize = 4;

/// Notices that may be on their way from one worker; then its pipes fill up and it waits.
const NOTICES: usize = 64;

/// Starts the task of a session that was read from the log, or has just been created. A session that the log says is live has lost its worker
/// with the daemon that had it, and is brought back, unless its worker was adopted.
pub(crate) fn spawn(
    shared: Arc<Shared>,
    session: Session,
    epoch: Epoch,
    inherited: Inherited,
) -> (SessionHandle, Entry) {
    let (requests, mailbox) = mpsc::channel(MAILBOX);
    let door = Arc::new(Mutex::new(Some(requests.clone())));
    let (visible_in, visible) = watch::channel(Arc::new(session.clone()));
    let (commits, commits_out) = mpsc::unbounded_channel();
    let (failed_in, failed) = oneshot::channel();
    let (durable, on_their_way) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (through_in, through) = watch::channel(0);
    let claims = Arc::clone(&shared.single_process.claims);
    let ending = Ending::default();
    let heard = CommitReceivers {
        visible: visible_in,
        on_their_way: Arc::clone(&on_their_way),
        durable: Arc::clone(&durable),
        through: through_in,
        failed: failed_in,
        ending: ending.clone(),
    };
    let wait = Duration::from_millis(shared.limits.store_wait_ms);
    let retry = Retry::new(Arc::downgrade(&shared.log), wait);
    let is_store_away = retry.is_away();
    let committer = commit_in_order(session.id, Arc::clone(&shared.hub), claims, heard, retry, commits_out);
    task::spawn(committer);
    let (worker_in, from_worker) = mpsc::channel(NOTICES);
    let (waiter_in, from_waiter) = mpsc::channel(WAITS);
    let rate = RateLimit::new(shared.limits.session_commands_per_minute);
    let mut task = SessionTask {
        door: Arc::downgrade(&door),
        is_open: true,
        output: OutputBuffer::new(&shared.limits),
        named_prompts: NamedPrompts::default(),
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
        on_their_way: Arc::clone(&on_their_way),
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
        is_runner_gone: false,
        heard: None,
        unsent: UnsentEvents::default(),
        flush_at: None,
        grace: None,
        cancelled: None,
        live: None,
        given: LastValues::default(),
        answered: None,
        is_draining: false,
        drained: None,
        ending: ending.clone(),
    };
    let (after, spared) = (task.session.last_seq, inherited.spared());
    task.inherit(inherited);
    task::spawn(task.run(mailbox, failed));
    let entry = Entry {
        requests: requests.downgrade(),
        visible: visible.clone(),
        ending: ending.clone(),
        on_their_way,
        epoch,
        after,
        spared,
        _door: door,
    };
    (SessionHandle { requests, visible, ending }, entry)
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
    /// How many commits are on their way.
    on_their_way: Arc<AtomicU64>,
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
    /// Whether the worker has ended, though its last notices were not heard yet: what waits in the lane waits for the next.
    is_runner_gone: bool,
    /// What was heard of the worker's notices; none before it accepts code.
    heard: Option<HeardNotices>,
    /// What was decided and is not yet on its way to the log.
    unsent: UnsentEvents,
    /// What is queued for an agent.
    named_prompts: NamedPrompts,
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
    /// A job that is to stop, with the event that says so, where that is not durable yet.
    cancelled: Option<(JobId, Seq)>,
    /// Held while the session is not idle, except by one of too many that were brought back.
    live: Option<OwnedSemaphorePermit>,
    /// What the submissions gave that its workers ran.
    given: LastValues,
    /// The command of a job that was cut off, where the log has an outcome under its id already.
    answered: Option<CommandKey>,
    /// The daemon is about to go down: new commands are turned away, and those that wait stay where they are.
    is_draining: bool,
    /// Who is told once nothing runs any more.
    drained: Option<oneshot::Sender<()>>,
    /// Says why the task ends.
    ending: Ending,
}

impl SessionTask {
    async fn run(mut self, mut mailbox: mpsc::Receiver<Envelope>, mut failed: oneshot::Receiver<()>) {
        loop {
            self.send(Vec::new());
            self.acknowledge();
            self.begin_grace();
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
                    Some(Envelope { request: Request::LetGo { reply }, .. }) => {
                        self.let_go();
                        reply.send(()).ok();
                        break;
                    }
                    Some(Envelope { request: Request::TakenOver, .. }) => {
                        self.ending.note_owned();
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
                Ok(()) = self.through.changed(), if self.waits_for_commits() => {}
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

    /// Whether it depends on commits that are under way how this task goes on.
    fn waits_for_commits(&self) -> bool {
        self.session.state() == SessionState::Uninitialized || self.cancelled.is_some()
    }

    /// Whether the session is idle, with nothing that waits and nothing on its way to the disk.
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
            // What is built may have been read before the files were written, and the next worker would not have them.
            Request::Swap { reply, .. } if self.session.running().is_some_and(|job| job.kind.is_build()) => {
                reply.send(Ok(None)).ok();
            }
            Request::Swap { files, reply } => {
                self.query(Action::Check, reply, |kernel| async move { kernel.swap(files).await });
            }
            Request::Offers { action, reply } => self.query(action, reply, |_| async { Ok(()) }),
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
            Request::ParentEnded { principal, command, error } => {
                self.parent_ended(principal, command, error);
            }
            Request::Drain { reply } => {
                self.begin_draining();
                self.drained = Some(reply);
                self.tell_drained();
            }
            Request::TakenOver | Request::ShutDown { .. } | Request::LetGo { .. } => {}
        }
    }

    /// Gives its place among the live sessions up when the session becomes idle. A session that was brought back takes a place, where one is left.
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
        if let SessionCommand::Cancel(command::Cancel { target: Some(target), .. }) = &command.body
            && let Some(withdrawn) = self.lane.take(&identity.principal, target)
        {
            return self.withdraw(withdrawn, identity);
        }
        if self.takes_back_first(&command.body)
            && let Some(withdrawn) = self.lane.take_first()
        {
            return self.withdraw(withdrawn, identity);
        }
        if matches!(command.body, SessionCommand::Pause(_)) && !self.can_pause() {
            let reason = "an earlier version of Mainstay started this agent, and it does not pause; cancel its turn, or steer it";
            let error = Error::WorkerFailed { reason: reason.to_owned() };
            self.traces.refused(&key_of(&identity), &error);
            return self.accepted.refuse(&key_of(&identity), &error);
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

    /// Nothing refuses a notice; one that comes too late decides nothing.
    fn notice(&mut self, notice: Notice) {
        self.decide_surely(Input::Notice(notice));
    }

    /// The one road of every change: decide, take in, hand to the committer, carry out, and look at the lane again.
    fn decide(&mut self, input: Input) -> Result<(), Error> {
        let is_output = is_output(&input);
        if !is_output {
            self.flush_output();
            self.record_end_of_output(&input);
        }
        let now = now();
        let Decision { events, outcomes, effects } = decide(&self.session, input, now, &self.shared.limits)?;
        self.take_in(now, events);
        // It changes no state, and goes to the log with what follows from the same notice.
        if is_output {
            return Ok(());
        }
        self.send(outcomes);
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

    /// Ends with this daemon, and leaves to the next what outlives it. A warm-up begins again there.
    fn let_go(&mut self) {
        let outlives = self.runner().is_some_and(|runner| runner.process().outlives_daemon());
        if !outlives && self.session.state() != SessionState::WarmingUp {
            return self.shut_down();
        }
        self.hear_out();
        self.flush_output();
        self.send(Vec::new());
        self.acknowledge();
    }

    fn shut_down(&mut self) {
        self.begin_draining();
        self.hear_out();
        self.notice(Notice::DaemonStopping);
    }
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

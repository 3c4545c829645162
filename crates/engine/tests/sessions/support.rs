//! A daemon in a temporary folder, and clients of its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstay_engine::Engine;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_log::{Directory, Log, SessionFilter};
use mainstay_model::command;
use mainstay_model::grant::LeaseChange;
use mainstay_model::transcript::total;
use mainstay_model::{
    Access, Admission, AskEnding, Command, CommandId, CreateSession, Error, EvalEnding, EvalOutcome,
    EventBody, Failure, Limits, Outcome, Principal, References, Response, Rights, Seq, SessionCommand,
    SessionId, SessionKind, SessionState, Source, WorkerExit,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::scripted::Scripted;
use crate::store_double::StoreDouble;
use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};

/// Limits under which nothing takes long.
pub(crate) fn quick() -> Limits {
    Limits {
        cancel_grace_ms: 20,
        jupyter_cancel_grace_ms: 20,
        agent_cancel_grace_ms: 20,
        restart_first_ms: 1,
        restart_longest_ms: 2,
        drain_ms: 10,
        // What fails is told at once.
        store_wait_ms: 0,
        ..Limits::default()
    }
}

/// Limits under which a cancelled job has all the time it wants.
pub(crate) fn patient() -> Limits {
    Limits { cancel_grace_ms: 600_000, agent_cancel_grace_ms: 600_000, ..quick() }
}

/// An engine over a store of its own.
pub(crate) struct Daemon {
    pub(crate) engine: Engine,
    /// A client of the local principal.
    pub(crate) local: mainstay_engine::Client,
    pub(crate) workers: Arc<Scripted>,
    /// Where it has agents.
    agents: Option<ScriptedAgents>,
    pub(crate) store: Arc<StoreDouble>,
    limits: Limits,
    folder: TempDir,
}

impl Daemon {
    pub(crate) async fn start() -> Self {
        Self::with(quick()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::open(limits, Arc::default(), None, tempfile::tempdir().unwrap()).await
    }

    /// With agents that do what the script says.
    pub(crate) async fn with_agents(limits: Limits) -> (Self, Script) {
        let (agents, script) = ScriptedAgents::new();
        let daemon = Self::open(limits, Arc::default(), Some(agents), tempfile::tempdir().unwrap()).await;
        (daemon, script)
    }

    async fn open(
        limits: Limits,
        workers: Arc<Scripted>,
        agents: Option<ScriptedAgents>,
        folder: TempDir,
    ) -> Self {
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let store = Arc::new(StoreDouble::over(Arc::new(log)));
        let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
        let agent = agents.clone().map(|agents| Arc::new(agents) as _);
        let factories = [Arc::clone(&workers) as _].into_iter().chain(agent).collect();
        let engine = Engine::open(log, factories, limits.clone()).await.unwrap();
        let local = engine.attach(Access::local(), "cli");
        Self { engine, local, workers, agents, store, limits, folder }
    }

    /// Loses the engine with all its workers, and opens another over the same store.
    pub(crate) async fn crash(self) -> Self {
        let limits = self.limits.clone();
        self.reopen(limits).await
    }

    /// As [`Daemon::crash`], under other limits.
    pub(crate) async fn reopen(self, limits: Limits) -> Self {
        let Self { engine, local, workers, agents, mut store, folder, .. } = self;
        drop((engine, local));
        // The tasks of its sessions hold the store until they notice.
        for _ in 0..1_000_000 {
            if Arc::get_mut(&mut store).is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(
            Arc::get_mut(&mut store).is_some(),
            "a client or a command still holds the engine that was lost"
        );
        drop(store);
        Self::open(limits, workers, agents, folder).await
    }

    /// A new session, Ready.
    pub(crate) async fn session(&self) -> Client {
        let client = self.starting_session().await;
        client.until("warmUpCompleted").await;
        client
    }

    /// The same in a folder of its own where there are sessions already: a name is taken once in a folder.
    pub(crate) async fn in_own_folder(&self, create: CreateSession) -> CreateSession {
        let all = SessionFilter { with_deleted: true, ..SessionFilter::default() };
        match self.store.sessions(all).await.unwrap().len() {
            0 => create,
            others => {
                let folder = self.folder.path().join(format!("work-{others}"));
                std::fs::create_dir_all(&folder).unwrap();
                CreateSession { working_directory: folder.display().to_string(), ..create }
            }
        }
    }

    /// A new session of an agent, idle.
    pub(crate) async fn agent_session(&self) -> Client {
        self.session_of(SessionKind::pi()).await
    }

    /// A new session of a kind, idle.
    pub(crate) async fn session_of(&self, kind: SessionKind) -> Client {
        let create = CreateSession { kind, ..self.in_own_folder(create("talk")).await };
        match self.local.create(next_id(), create).await.unwrap() {
            Outcome::Done { response: Response::Created { session } } => self.client(session),
            other => panic!("{other:?}"),
        }
    }

    /// A new session, warming up.
    pub(crate) async fn starting_session(&self) -> Client {
        match self.local.create(next_id(), self.in_own_folder(create("demo")).await).await.unwrap() {
            Outcome::Done { response: Response::Created { session } } => self.client(session),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn client(&self, session: SessionId) -> Client {
        Client { attached: self.local.clone(), id: session }
    }

    /// A client of another principal that may do everything.
    pub(crate) fn client_of(&self, principal: &str, session: SessionId) -> Client {
        let access = Access { principal: Principal::new(principal).unwrap(), rights: Rights::All };
        Client { attached: self.engine.attach(access, "cli"), id: session }
    }
}

/// A client of one session.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) attached: mainstay_engine::Client,
    pub(crate) id: SessionId,
}

impl Client {
    /// Hangs up: nothing of this client holds the engine any more.
    pub(crate) fn leave(self) -> SessionId {
        self.id
    }

    pub(crate) async fn submit(&self, body: SessionCommand) -> Result<Outcome, Error> {
        self.give(command(next_id(), Admission::Now, body)).await
    }

    /// Gives a command, and waits for its outcome.
    pub(crate) async fn give(&self, command: Command) -> Result<Outcome, Error> {
        self.attached.submit(self.id, command).await.map(|answered| answered.outcome)
    }

    /// Runs code to its end, in its turn.
    pub(crate) async fn eval(&self, code: &str) -> EvalOutcome {
        evaluated(self.give(command(next_id(), Admission::Queue, eval(code))).await)
    }

    /// Runs code; comes back once it is accepted.
    pub(crate) async fn begin(&self, code: &str) -> Running {
        let requests = self.count("evalRequested").await;
        let running = self.queue(code);
        self.until_count("evalRequested", requests + 1).await;
        running
    }

    /// Sends code for its turn, without waiting for anything.
    pub(crate) fn queue(&self, code: &str) -> Running {
        self.send(command(next_id(), Admission::Queue, eval(code)))
    }

    /// Sends a command, without waiting for anything.
    pub(crate) fn send(&self, command: Command) -> Running {
        let client = self.clone();
        tokio::spawn(async move { client.give(command).await })
    }

    pub(crate) async fn state(&self) -> SessionState {
        self.attached.status(self.id).await.unwrap().session.state()
    }

    /// What has happened so far, a line an event.
    pub(crate) async fn story(&self) -> Vec<String> {
        self.story_after(Seq::ZERO).await
    }

    pub(crate) async fn story_after(&self, seq: Seq) -> Vec<String> {
        let events = self.attached.events(self.id, seq, usize::MAX).await.unwrap();
        events.iter().map(|event| told(&event.body)).collect()
    }

    /// The same, whether or not commands had to wait for their turn.
    pub(crate) async fn story_of_work_after(&self, seq: Seq) -> Vec<String> {
        self.story_after(seq).await.into_iter().filter(|event| event != "queued").collect()
    }

    /// Returns the newest event's sequence number.
    pub(crate) async fn now(&self) -> Seq {
        self.attached.status(self.id).await.unwrap().session.last_seq
    }

    /// Waits for the first event of a kind.
    pub(crate) async fn until(&self, kind: &str) {
        self.until_count(kind, 1).await;
    }

    /// Waits for so many events of a kind.
    pub(crate) async fn until_count(&self, kind: &str, wanted: usize) {
        let mut events = self.attached.subscribe(self.id, Seq::ZERO).await.unwrap();
        let mut seen = 0;
        while seen < wanted {
            if events.next().await.unwrap().body.kind() == kind {
                seen += 1;
            }
        }
    }

    /// Waits until the store has the ends of so many evals, whether or not the engine knows yet.
    pub(crate) async fn until_stored(&self, ends: usize) {
        while self.count("evalCompleted").await < ends {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn count(&self, kind: &str) -> usize {
        let events = self.attached.events(self.id, Seq::ZERO, usize::MAX).await.unwrap();
        events.iter().filter(|event| event.body.kind() == kind).count()
    }
}

/// A command on its way.
pub(crate) type Running = JoinHandle<Result<Outcome, Error>>;

/// Lets everything run that can run at once.
pub(crate) async fn breathe() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Waits until it is so.
pub(crate) async fn eventually(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// The same, where one has to ask for it.
pub(crate) async fn until_it(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn next_id() -> CommandId {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    id(&format!("auto-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

pub(crate) fn id(text: &str) -> CommandId {
    CommandId::new(text).unwrap()
}

pub(crate) fn cli() -> Source {
    Source::Client { principal: Principal::local(), name: "cli".to_owned() }
}

pub(crate) fn create(name: &str) -> CreateSession {
    CreateSession {
        kind: SessionKind::fsharp(),
        working_directory: "/".to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: Some(name.to_owned()),
        alias: None,
    }
}

pub(crate) fn eval(code: &str) -> SessionCommand {
    SessionCommand::Eval(command::Eval {
        code: code.to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    })
}

/// The command that cancels whatever runs.
pub(crate) const CANCEL: SessionCommand =
    SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None });

/// Ends this command, and no other.
pub(crate) fn cancel(target: &CommandId) -> SessionCommand {
    SessionCommand::Cancel(command::Cancel { target: Some(target.clone()), grace_ms: None })
}

pub(crate) fn command(id: CommandId, admission: Admission, body: SessionCommand) -> Command {
    Command { admission, ..Command::new(id, cli(), body) }
}

pub(crate) fn evaluated(answer: Result<Outcome, Error>) -> EvalOutcome {
    match answer.unwrap() {
        Outcome::Done { response: Response::Evaluated(outcome) } => outcome,
        other => panic!("{other:?} is no eval's outcome"),
    }
}

pub(crate) async fn ending(running: Running) -> EvalEnding {
    evaluated(running.await.unwrap()).ending
}

/// An event in few words.
fn told(body: &EventBody) -> String {
    match body {
        EventBody::SessionCreated { name, .. } => format!("created {name}"),
        EventBody::SessionForked(point) => format!("forked {} {}", point.from.short(), point.entries),
        EventBody::SessionImported { .. } => "imported".to_owned(),
        EventBody::SessionRenamed { name } => format!("renamed {name}"),
        EventBody::WarmUpStarted { reason } => format!("warming up, {reason:?}"),
        EventBody::WarmUpCompleted { replayed: 0, .. } => "ready".to_owned(),
        EventBody::WarmUpCompleted { replayed, diverged, .. } if diverged.is_empty() => {
            format!("ready, {replayed} replayed")
        }
        EventBody::WarmUpCompleted { replayed, diverged, .. } => {
            format!("ready, {replayed} replayed, {} diverged", diverged.len())
        }
        EventBody::SessionFaulted { message } => format!("faulted: {message}"),
        EventBody::SessionReset => "reset".to_owned(),
        EventBody::SessionHardReset => "hard reset".to_owned(),
        EventBody::SessionStopped => "stopped".to_owned(),
        EventBody::SessionDeleted => "deleted".to_owned(),
        EventBody::SessionUnloaded { .. } => "unloaded".to_owned(),
        EventBody::SessionLoaded { .. } => "loaded".to_owned(),
        EventBody::EntriesMerged(point) => format!("merged {} at {}", total(&point.brought), point.at),
        EventBody::WorkerExited { exit, attempt, .. } => {
            format!("lost the worker by {exit}, {attempt} in a row")
        }
        EventBody::CommandQueued(_) => "queued".to_owned(),
        EventBody::CommandDequeued { error: Some(error), .. } => format!("left the lane: {}", error.code()),
        EventBody::CommandDequeued { error: None, .. } => "left the lane".to_owned(),
        EventBody::AskRaised(ask) => format!("asks {}", ask.question.prompt),
        EventBody::AskVoted { value, missing, .. } => format!("votes {value}, {missing} missing"),
        EventBody::AskEnded { ending: AskEnding::Answered { value }, .. } => format!("answered {value}"),
        EventBody::AskEnded { ending: AskEnding::Withheld, .. } => "answered with a secret".to_owned(),
        EventBody::AskEnded { ending: AskEnding::Defaulted { value }, .. } => format!("defaulted to {value}"),
        EventBody::AskEnded { ending: AskEnding::TimedOut { .. }, .. } => "nobody answered".to_owned(),
        EventBody::AskEnded { ending: AskEnding::Cancelled, .. } => "asks no more".to_owned(),
        EventBody::EvalTimedOut { limit_ms, .. } => format!("timed out after {limit_ms} ms"),
        EventBody::JobDenied { error, .. } => format!("denied: {error}"),
        EventBody::JobDelegated { child, agent, .. } => format!("delegates to {agent}: {child}"),
        EventBody::DelegationEnded { child, .. } => format!("the task of {child} has ended"),
        EventBody::JobHandedOver { command, to, .. } => format!("hands {command} over to {to}"),
        EventBody::LeaseChanged { change, .. } => match change {
            LeaseChange::Granted { terms } => format!("may use {} for a time", terms.resource()),
            LeaseChange::Extended { .. } => "may use it for longer".to_owned(),
            LeaseChange::Revoked { reason } => format!("may use it no longer: {reason}"),
        },
        EventBody::EvalRequested { code, .. } => format!("eval {}", code.replace('\n', "; ")),
        EventBody::OutputProduced { stream, text, .. } => format!("{stream:?} {text}"),
        EventBody::OutputDisplayed { display, .. } => {
            format!("shows {}: {}", display.data.kinds().join(" "), display.data.text())
        }
        EventBody::OutputCleared { .. } => "cleared".to_owned(),
        EventBody::CommPublished { message, .. } => {
            format!("{} of comm {}", message.step.name(), message.comm)
        }
        EventBody::OutputCut { limit, .. } => format!("output cut at {limit}"),
        EventBody::CancelRequested { .. } => "cancel".to_owned(),
        EventBody::EvalCompleted { .. } => "completed".to_owned(),
        EventBody::EvalFailed { failure, .. } => match failure {
            Failure::Rejected => "rejected".to_owned(),
            Failure::Raised { error } => format!("raised {}", error.kind),
            Failure::WorkerExited { exit } => format!("ended its worker by {exit}"),
        },
        EventBody::EvalCancelled { ending, .. } => format!("cancelled, {ending:?}"),
        EventBody::EvalInterrupted { .. } => "interrupted".to_owned(),
        EventBody::JobRequested { work, .. } => format!("{}: {work}", work.kind().name()),
        EventBody::JobEnded { ending, .. } => ending.to_string(),
        EventBody::MessageStreamed(delta) => format!("says {} from {}", delta.text, delta.offset),
        EventBody::PromptQueued(queued) => queued.to_string(),
        EventBody::QueueChanged { queue } => format!("{} to hear", queue.len()),
        EventBody::AgentChanged(state) => state.to_string(),
        EventBody::AgentNoted(note) => note.to_string(),
        EventBody::MessageAdded(message) => message.to_string(),
        EventBody::EnvironmentChanged { references } => format!("rests on {}", names(references)),
        EventBody::AssembliesChanged { changed, .. } => format!("changed: {}", changed.join(", ")),
        EventBody::SourcesChanged { changed, .. } => format!("sources changed: {}", changed.join(", ")),
        EventBody::SourcesSwapped(swap) => format!("swapped: {swap}"),
        EventBody::ApplicationStarted(_) | EventBody::ApplicationEnded(_) => body.describe().sentence(),
        EventBody::TranscriptCompacted(compaction) => format!("compacted: {}", compaction.summary),
        EventBody::EntryLabeled { entry, label: Some(label) } => format!("labeled {}: {label}", entry.number),
        EventBody::EntryLabeled { entry, label: None } => format!("no label on {}", entry.number),
    }
}

fn names(references: &References) -> String {
    references.keys().cloned().collect::<Vec<_>>().join(", ")
}

/// The worker ended by itself with this code.
pub(crate) fn exited(code: i32) -> EvalEnding {
    EvalEnding::WorkerExited { exit: WorkerExit::Code(code) }
}

//! One connection of the protocol, whatever carries it: frames in, frames out. Commands are handed over in the order in which they come;
//! their answers come when they have ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt};
use mainstay_engine::{Client, ClientSubscription, CommandStatus, Cursor, Reading, Refusal};
use mainstay_log::StoredOutcome;
use mainstay_model::{
    CommandFingerprint, CommandId, Error, EventBody, EventFilter, Outcome, Principal, Seq, Session,
    SessionId, Timestamp,
};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::answer_cache::{AnswerCache, CachedAnswer};
use super::command::{Body, PiCommand};
use super::counts::Counts;
use super::daemon::PiDaemon;
use super::decode::{Invalid, decode};
use super::directory::{Change, Directory};
use super::errors::{ErrorContext, is_outcome, said};
use super::events::ui_request;
use super::frames::{self, Phase, Response};
use super::handlers::{Call, CommandResult, Failed, SubmittedCommand, has_begun};
use super::queries::session_of;
use super::rates::Rates;
use super::recovery;
use super::turn_catch_up;
use mainstay_gateway::command::anonymous;

/// Frames that wait for a slow client; then its commands and sessions wait.
const OUTBOX: usize = 64;
/// Frames for all that one connection may be behind with.
const TOLD: usize = 4096;
/// Places that are kept for what passes everything.
const URGENT: usize = 16;

/// What all connections of the protocol share.
pub struct Shared {
    seen: Mutex<AnswerCache>,
    /// The commands that are not handed over yet.
    held: Mutex<HashMap<CommandName, watch::Sender<()>>>,
    told: broadcast::Sender<Arc<Broadcast>>,
    /// How many frames were told so far.
    count: Mutex<u64>,
    /// The commands of all connections that were handed over and have no answer yet.
    under_way: Mutex<HashMap<CommandName, Arc<RunningCommand>>>,
    connections: AtomicUsize,
    commands: AtomicU64,
    pub(super) directory: Directory,
    pub(super) counts: Counts,
    pub(super) rates: Rates,
}

/// A frame for all connections of a principal but the one that sends it.
struct Broadcast {
    principal: Principal,
    from: u64,
    frame: String,
    /// The how manieth it is.
    nth: u64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            held: Mutex::default(),
            told: broadcast::channel(TOLD).0,
            count: Mutex::default(),
            under_way: Mutex::default(),
            connections: AtomicUsize::new(0),
            commands: AtomicU64::new(0),
            directory: Directory::default(),
            counts: Counts::default(),
            rates: Rates::default(),
        }
    }
}

impl Shared {
    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// How many commands came so far.
    pub(super) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// How many commands are known, and under how many idempotency keys.
    pub(super) fn known(&self) -> (usize, usize) {
        self.seen().counts()
    }

    /// Takes a place among so many connections.
    pub(super) fn enter(self: &Arc<Self>, limit: usize) -> Option<ConnectionSlot> {
        let entered = self
            .connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < limit).then_some(count + 1));
        if entered.is_err() {
            self.rates.connection_refused();
        }
        entered.ok().map(|_| ConnectionSlot(Arc::clone(self)))
    }

    /// Tells all other connections of a principal.
    fn tell_others(&self, principal: &Principal, from: u64, frame: String) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        // There may be no others.
        self.told.send(Arc::new(Broadcast { principal: principal.clone(), from, frame, nth: *count })).ok();
    }

    /// What all are told from now on, and how much was told before.
    fn listen(&self) -> (broadcast::Receiver<Arc<Broadcast>>, u64) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        (self.told.subscribe(), *count)
    }

    /// How many frames were told so far.
    fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashMap<CommandName, Arc<RunningCommand>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the hold of a command that is not handed over yet; none where it is not held.
    fn end_of_hold(&self, principal: &Principal, command: &CommandId) -> Option<watch::Receiver<()>> {
        self.held().get(&(principal.clone(), command.clone())).map(watch::Sender::subscribe)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<CommandName, watch::Sender<()>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, AnswerCache> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose command, and which.
type CommandName = (Principal, CommandId);

/// A command that is not handed over yet. Those that depend on it are held as long.
struct HeldCommand {
    shared: Arc<Shared>,
    name: CommandName,
}

impl HeldCommand {
    fn new(shared: &Arc<Shared>, name: CommandName) -> Self {
        shared.held().entry(name.clone()).or_default();
        Self { shared: Arc::clone(shared), name }
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        self.shared.held().remove(&self.name);
    }
}

/// A place among the connections.
pub(super) struct ConnectionSlot(Arc<Shared>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A line that the client sent.
pub(super) enum Incoming {
    /// A line that holds one frame.
    Frame(String),
    /// A line that is empty.
    Nothing,
    /// One that is no text.
    NoText,
    /// One of so many bytes, which are more than may be.
    TooLarge(usize),
}

/// Why a connection ends that its client did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client closed the connection.
    Gone,
    /// The daemon goes down.
    ShutDown,
    /// The client does not read what all are told.
    Slow,
}

/// Who is connected, and how.
pub(super) struct Peer {
    pub(super) client: Client,
    /// Where sessions work whose creator does not say.
    pub(super) folder: String,
    /// Whether it still reads once it has sent its last.
    pub(super) reads_on: bool,
}

/// Serves a connection until one of the two goes.
pub(super) async fn serve(
    daemon: PiDaemon,
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Unpin,
    outbox: mpsc::Sender<String>,
) -> End {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let ((mut told, passed_on), mut changes) = (daemon.pi.listen(), daemon.pi.directory.listen());
    Directory::follow(&daemon);
    let passed_on = watch::channel(passed_on).0;
    let connection =
        Arc::new(Connection { daemon, peer, outbox, number, passed_on, under_way: Mutex::default() });
    connection.send(&frames::server_ready(connection.daemon.version)).await;
    let recovery = recovery::told(&connection.daemon, &connection.peer.client).await;
    let recovery = recovery::redacted(recovery);
    connection.send(&frames::startup_recovery_summary(&recovery)).await;
    let mut tasks = Tasks::default();
    let (stop, stopped) = (connection.daemon.stop.clone(), connection.daemon.stopped.clone());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            frame = incoming.next() => match frame {
                Some(frame) => tasks.take(&connection, frame).await,
                None => {
                    connection.passed_on.send_replace(u64::MAX);
                    while connection.peer.reads_on && tasks.under_way.join_next().await.is_some() {}
                    return End::Gone;
                }
            },
            Some(_) = tasks.under_way.join_next() => {}
            heard = told.recv() => match heard {
                Ok(heard) => connection.pass_on(&heard).await,
                Err(broadcast::error::RecvError::Lagged(_)) => return End::Slow,
                Err(broadcast::error::RecvError::Closed) => return End::ShutDown,
            },
            change = changes.recv() => match change {
                Ok(change) => connection.tell_change(&change).await,
                Err(broadcast::error::RecvError::Lagged(_)) => return End::Slow,
                Err(broadcast::error::RecvError::Closed) => return End::ShutDown,
            },
            () = stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                let limit = connection.daemon.engine.limits().drain_ms;
                connection.send(&frames::server_shutdown(limit)).await;
            }
            () = stopped.cancelled() => {
                connection.passed_on.send_replace(u64::MAX);
                // What was under way has its outcome by now.
                while tasks.under_way.join_next().await.is_some() {}
                return End::ShutDown;
            }
        }
    }
}

/// What a connection waits for.
#[derive(Default)]
struct Tasks {
    under_way: JoinSet<()>,
    /// The sessions whose events it hears, by what its client calls them.
    sessions: HashMap<String, Hearing>,
}

/// Events of a session on their way to the client. Ends with the connection.
struct Hearing {
    session: SessionId,
    task: AbortHandle,
    /// The last event that was told.
    told: watch::Receiver<Seq>,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tasks {
    async fn take(&mut self, connection: &Arc<Connection>, frame: Incoming) {
        let limit = connection.daemon.engine.limits().message_bytes;
        let unreadable = |error: String| Response::failure(None, "unknown", error);
        let frame = match frame {
            Incoming::Frame(text) if text.len() > limit => Err(text.len()),
            Incoming::TooLarge(bytes) => Err(bytes),
            Incoming::Frame(text) => Ok(text),
            Incoming::Nothing => return,
            Incoming::NoText => {
                return connection.answer(&unreadable("a frame must be UTF-8 text".to_owned())).await;
            }
        };
        let text = match frame {
            Ok(text) => text,
            Err(bytes) => {
                connection.daemon.pi.rates.too_large();
                let error = format!("Message size {bytes} exceeds limit {limit}");
                return connection.answer(&unreadable(error)).await;
            }
        };
        let frame: Value = match serde_json::from_str(&text) {
            Ok(frame) => frame,
            Err(error) => return connection.answer(&unreadable(format!("Invalid JSON: {error}"))).await,
        };
        match decode(&frame) {
            Ok(command) => self.begin(connection, command).await,
            Err(Invalid { id, kind, errors }) => {
                let kind = kind.unwrap_or_else(|| "unknown".to_owned());
                let error = format!("Validation failed: {errors}");
                connection.answer(&Response::failure(id, kind, error)).await;
            }
        }
    }

    async fn begin(&mut self, connection: &Arc<Connection>, command: PiCommand) {
        if let Some(answer) = connection.answered_before(&command).await {
            return connection.answer_at_once(&command, &answer).await;
        }
        if let Some(refusal) = connection.turned_away(&command, self.under_way.len()) {
            return connection.answer(&refusal).await;
        }
        connection.daemon.pi.commands.fetch_add(1, Ordering::Relaxed);
        let id = command.id.clone().unwrap_or_else(anonymous);
        let command = Arc::new(command);
        if command.body.is_read()
            && let Err(error) = connection.pass_read(&command)
        {
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if command.depends_on.contains(&id) {
            let error = Error::DependsOnItself { command: id.clone() };
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if let Body::SwitchSession { after, is_cumulative } = command.body
            && let Some(name) = command.session.clone()
            && let Err(error) = self.hear(connection, name, after, is_cumulative).await
        {
            return connection.finish(&command, &id, Err(error.into())).await;
        }
        if command.body.is_read() {
            // From here on others may depend on it.
            let reading = connection.peer.client.begin_read(&id);
            let connection = Arc::clone(connection);
            self.under_way.spawn(async move { connection.read(&command, &id, reading).await });
            return;
        }
        connection.set_out(&command, &id);
        if command.body.changes_directory() {
            connection.daemon.pi.directory.expect(connection.peer.client.principal(), &id);
        }
        let told = command.session.as_ref().and_then(|name| self.sessions.get(name));
        let told = told.map(|hearing| hearing.told.clone());
        let connection = Arc::clone(connection);
        // What it depends on, or its session, may be on its way.
        if connection.must_be_held(&command, &id).await {
            let held = HeldCommand::new(
                &connection.daemon.pi,
                (connection.peer.client.principal().clone(), id.clone()),
            );
            self.under_way.spawn(async move { connection.hold(&command, &id, held, told).await });
            return;
        }
        // In the order in which they came.
        let handed_over = connection.call(&command, &id).hand_over().await;
        match handed_over {
            Ok(_) => {
                self.under_way
                    .spawn(async move { connection.carry_on(&command, &id, handed_over, told).await });
            }
            Err(_) => connection.carry_on(&command, &id, handed_over, told).await,
        }
    }
}

impl Tasks {
    /// Hears of a session's events, unless they are heard of already and nothing else of them is wanted.
    async fn hear(
        &mut self,
        connection: &Arc<Connection>,
        name: String,
        after: Option<u64>,
        is_cumulative: bool,
    ) -> Result<(), Error> {
        let session = session_of(&connection.peer.client, &name).await?;
        let heard = self.sessions.get(&name).filter(|hearing| !hearing.task.is_finished());
        // One that was unloaded has left its name to another.
        let is_heard = heard.is_some_and(|hearing| hearing.session == session.id);
        if after.is_some() || is_cumulative || !is_heard {
            let hearing = connection.hear(&name, session, after, is_cumulative).await?;
            self.sessions.insert(name, hearing);
        }
        Ok(())
    }
}

/// How far a command's way has been told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReportedStage {
    Nothing,
    Accepted,
    Started,
}

/// A command under way, and how far its way has been told: by the task that waits for its end, or by the one that tells its events,
/// whichever hears of it first.
struct RunningCommand {
    command: Arc<PiCommand>,
    id: CommandId,
    /// The connection that has it.
    number: u64,
    /// How far its own client was told.
    so_far: tokio::sync::Mutex<ReportedStage>,
    /// How far the other connections were.
    others: Mutex<ReportedStage>,
}

impl RunningCommand {
    /// Tells the other connections that it has come so far, where they were not told yet.
    fn reach_others(&self, shared: &Shared, principal: &Principal, reached: ReportedStage) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        for (step, phase) in
            [(ReportedStage::Accepted, Phase::Accepted), (ReportedStage::Started, Phase::Started)]
        {
            if *others < step && step <= reached {
                let frame = frames::lifecycle(phase, &self.command, &self.id, None);
                shared.tell_others(principal, self.number, frame.to_string());
                *others = step;
            }
        }
    }
}

struct Connection {
    daemon: PiDaemon,
    peer: Peer,
    outbox: mpsc::Sender<String>,
    number: u64,
    /// How many of the frames that all are told have been passed on.
    passed_on: watch::Sender<u64>,
    /// The commands that were handed over and have no answer yet.
    under_way: Mutex<HashMap<CommandId, Arc<RunningCommand>>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let principal = self.peer.client.principal();
        let own = self.lock_under_way().drain().map(|(id, _)| id).collect::<Vec<_>>();
        let mut all = self.daemon.pi.under_way();
        own.into_iter().for_each(|id| drop(all.remove(&(principal.clone(), id))));
    }
}

impl Connection {
    fn call<'a>(&'a self, command: &'a PiCommand, id: &'a CommandId) -> Call<'a> {
        Call { daemon: &self.daemon, client: &self.peer.client, command, id, folder: &self.peer.folder }
    }

    /// Why a command is not looked at: it is one too many, or comes too late.
    fn turned_away(&self, command: &PiCommand, under_way: usize) -> Option<Response> {
        if self.daemon.stop.is_cancelled() {
            return Some(self.refusal(command, &Error::DaemonStopping, None));
        }
        let limit = self.daemon.engine.limits().connection_requests;
        let places = if command.body.is_urgent() { limit.saturating_add(URGENT) } else { limit };
        (under_way >= places)
            .then(|| Error::TooManyRequests { what: "commands".to_owned(), limit })
            .map(|error| self.refusal(command, &error, None))
    }

    /// Counts a read for the rates that hold for commands: a session's reads have one of their own.
    fn pass_read(&self, command: &PiCommand) -> Result<(), Error> {
        let (client, limits) = (&self.peer.client, self.daemon.engine.limits());
        if let Some(session) = &command.session {
            let limit = limits.session_commands_per_minute;
            self.daemon.pi.rates.pass_read(client.principal(), session, limit, Timestamp::now())?;
        }
        client.count_read()
    }

    fn refusal(&self, command: &PiCommand, error: &Error, earlier: Option<&str>) -> Response {
        let id = command.id.as_ref().map(|id| id.as_str().to_owned());
        let about = ErrorContext { earlier, ..ErrorContext::of(command) };
        Response::failure(id, command.kind.as_str(), said(error, &about))
    }

    /// The answer to a command that was answered before, or whose id or key belongs to another.
    async fn answered_before(&self, command: &PiCommand) -> Option<Response> {
        // A new connection wants to hear, whatever was answered to another one.
        if command.is_subscription() || self.daemon.stop.is_cancelled() {
            return None;
        }
        let before = self.daemon.pi.seen().before(self.peer.client.principal(), command);
        match (before, &command.id, &command.key) {
            (CachedAnswer::Answered(answer), ..) => Some(*answer),
            (CachedAnswer::Taken { by, is_key: true }, _, Some(key)) => {
                Some(self.refusal(command, &Error::KeyConflict { key: key.clone() }, Some(&by)))
            }
            (CachedAnswer::Taken { by, .. }, Some(id), _) => {
                Some(self.refusal(command, &Error::CommandConflict { command: id.clone() }, Some(&by)))
            }
            (CachedAnswer::New, Some(id), _) => self.refused_before(command, id).await,
            (CachedAnswer::New | CachedAnswer::Taken { .. }, ..) => None,
        }
    }

    /// The answer to a command that was refused before it reached a session, which the engine does not look for.
    async fn refused_before(&self, command: &PiCommand, id: &CommandId) -> Option<Response> {
        let Ok(CommandStatus::Ended(stored)) = self.peer.client.command(id).await else { return None };
        let StoredOutcome { fingerprint, outcome, session, .. } = *stored;
        match outcome {
            Outcome::Failed { error } if session.is_none() && fingerprint == fingerprint_of(command) => {
                Some(Response { replayed: true, ..self.refusal(command, &error, None) })
            }
            Outcome::Failed { .. } | Outcome::Done { .. } if command.body.is_read() => {
                Some(self.refusal(command, &Error::CommandConflict { command: id.clone() }, None))
            }
            Outcome::Failed { .. } | Outcome::Done { .. } => None,
        }
    }

    /// Answers a command that is not carried out.
    async fn answer_at_once(&self, command: &PiCommand, answer: &Response) {
        let id = command.id.clone().unwrap_or_else(anonymous);
        self.tell_phase(Phase::Finished, command, &id, Some(answer)).await;
        self.answer(answer).await;
    }

    /// Reads, and answers. One that is sent twice at once is answered twice the same.
    async fn read(&self, command: &PiCommand, id: &CommandId, reading: Option<Reading>) {
        if reading.is_none() && !command.is_subscription() {
            self.peer.client.ended(id).await;
            if let Some(answer) = self.answered_before(command).await {
                return self.answer_at_once(command, &answer).await;
            }
        }
        let done = self.call(command, id).read().await;
        let ended = match &done {
            Ok(_) => Ok(()),
            Err(failed) => Err(self.reason(command, failed)),
        };
        self.finish(command, id, done).await;
        if let Some(reading) = reading {
            reading.end(ended);
        }
    }

    fn reason(&self, command: &PiCommand, failed: &Failed) -> String {
        match failed {
            Failed::Refused(error) | Failed::Error { error, .. } => said(error, &ErrorContext::of(command)),
            Failed::Said { message, .. } => message.clone(),
        }
    }

    /// Whether a command cannot be handed over yet: its session is on its way, by what it depends on, or what it depends on is held itself. A
    /// session that is loaded again passes its own lane.
    async fn must_be_held(&self, command: &PiCommand, id: &CommandId) -> bool {
        let principal = self.peer.client.principal();
        let is_held = |dependency: &CommandId| self.daemon.pi.end_of_hold(principal, dependency).is_some();
        let passes_lane = matches!(command.body, Body::LoadSession { .. });
        command.depends_on.iter().any(is_held)
            || !command.depends_on.is_empty()
                && (passes_lane || self.call(command, id).session_is_missing().await)
    }

    /// Hands a command over once what it depends on has succeeded.
    async fn hold(
        &self,
        command: &PiCommand,
        id: &CommandId,
        held: HeldCommand,
        told: Option<watch::Receiver<Seq>>,
    ) {
        for dependency in &command.depends_on {
            let end = self.daemon.pi.end_of_hold(self.peer.client.principal(), dependency);
            // Nothing is sent: it ends with the hold.
            if let Some(mut end) = end {
                end.changed().await.ok();
            }
        }
        let call = self.call(command, id);
        let handed_over = match call.wait_for_dependencies().await {
            Ok(()) => call.hand_over().await,
            Err(failed) => Err(failed),
        };
        // What was handed over is known to the engine, and what was not once its refusal is stored.
        let held = handed_over.is_err().then_some(held);
        self.carry_on(command, id, handed_over, told).await;
        drop(held);
    }

    /// Waits for what comes of a command that was handed over, or was not.
    async fn carry_on(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: std::result::Result<SubmittedCommand, Failed>,
        told: Option<watch::Receiver<Seq>>,
    ) {
        match handed_over {
            Ok(handed_over) => self.wait(command, id, handed_over, told).await,
            Err(failed) => self.finish(command, id, Err(failed)).await,
        }
    }

    /// Waits for what comes of a command, and tells how far it is.
    async fn wait(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: SubmittedCommand,
        told: Option<watch::Receiver<Seq>>,
    ) {
        let SubmittedCommand { mut followed, mut ended, completed } = handed_over;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut ended => break done,
                event = next(&mut followed) => match event {
                    Some(begun) => self.reach(id, if begun { ReportedStage::Started } else { ReportedStage::Accepted }).await,
                    None => followed = None,
                },
            }
        };
        // First what happened, then what came of it; unless nothing is told any more.
        if let (Some(mut told), Some(end)) = (told, completed.get()) {
            told.wait_for(|told| told >= end).await.ok();
        }
        self.finish(command, id, done).await;
    }

    /// Tells that a command is through, and what came of it: in this order.
    async fn finish(
        &self,
        command: &PiCommand,
        id: &CommandId,
        done: std::result::Result<CommandResult, Failed>,
    ) {
        let given = command.id.as_ref().map(|id| id.as_str().to_owned());
        let done = self.kept(command, id, done).await;
        let failure = |error: String| Response::failure(given.clone(), command.kind.as_str(), error);
        let is_stored = match &done {
            Ok(ended) => !command.body.is_read() && !ended.is_nothing,
            Err(Failed::Error { .. }) => !command.body.is_read(),
            Err(Failed::Said { is_stored, .. }) => *is_stored,
            Err(Failed::Refused(_)) => false,
        };
        let (answer, was_accepted, told) = match done {
            Ok(CommandResult { data, version, is_replay, told, .. }) => {
                let answer = Response {
                    session_version: version,
                    replayed: is_replay,
                    ..Response::success(given.clone(), &command.kind, data)
                };
                (answer, !is_replay, told)
            }
            Err(Failed::Refused(error)) => {
                self.daemon.pi.rates.refused(&error);
                let error = self.in_upstreams_words(error).await;
                (failure(said(&error, &ErrorContext::of(command))), is_outcome(&error), None)
            }
            Err(Failed::Error { error, is_replay }) => {
                let error = self.in_upstreams_words(error).await;
                let timed_out = matches!(error, Error::TimedOut { .. });
                let said = said(&error, &ErrorContext::of(command));
                let answer = Response { replayed: is_replay, timed_out, ..failure(said) };
                (answer, !is_replay, None)
            }
            Err(Failed::Said { message, is_replay, .. }) => {
                (Response { replayed: is_replay, ..failure(message) }, !is_replay, None)
            }
        };
        if told.is_none() && command.body.changes_directory() {
            self.daemon.pi.directory.forget(self.peer.client.principal(), id);
        }
        if was_accepted {
            self.daemon.pi.rates.accepted(Timestamp::now());
            match self.command_under_way(id) {
                Some(_) => self.reach(id, ReportedStage::Started).await,
                None => {
                    self.tell_phase(Phase::Accepted, command, id, None).await;
                    self.tell_phase(Phase::Started, command, id, None).await;
                }
            }
            let kept = (!is_stored || command.body.moves_name()).then_some(&answer);
            if !command.is_subscription() {
                self.daemon.pi.seen().keep(self.peer.client.principal(), command, kept);
            }
        }
        if self.lock_under_way().remove(id).is_some() {
            self.daemon.pi.under_way().remove(&(self.peer.client.principal().clone(), id.clone()));
        }
        self.tell_phase(Phase::Finished, command, id, Some(&answer)).await;
        self.answer(&answer).await;
        if let Some(told) = told {
            self.tell_all(&told).await;
        }
    }

    /// A command begins its way, which is told as far as it comes.
    fn set_out(&self, command: &Arc<PiCommand>, id: &CommandId) {
        let under_way = Arc::new(RunningCommand {
            command: Arc::clone(command),
            id: id.clone(),
            number: self.number,
            so_far: tokio::sync::Mutex::new(ReportedStage::Nothing),
            others: Mutex::new(ReportedStage::Nothing),
        });
        self.lock_under_way().insert(id.clone(), Arc::clone(&under_way));
        // One that is sent twice is the first one's to tell.
        let name = (self.peer.client.principal().clone(), id.clone());
        self.daemon.pi.under_way().entry(name).or_insert(under_way);
    }

    fn command_under_way(&self, id: &CommandId) -> Option<Arc<RunningCommand>> {
        self.lock_under_way().get(id).cloned()
    }

    fn lock_under_way(&self) -> std::sync::MutexGuard<'_, HashMap<CommandId, Arc<RunningCommand>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that a command has come so far, where it was not told yet.
    async fn reach(&self, id: &CommandId, reached: ReportedStage) {
        let Some(under_way) = self.command_under_way(id) else { return };
        let RunningCommand { command, id, so_far, .. } = &*under_way;
        let mut so_far = so_far.lock().await;
        for (step, phase) in
            [(ReportedStage::Accepted, Phase::Accepted), (ReportedStage::Started, Phase::Started)]
        {
            if *so_far < step && step <= reached {
                self.send(&frames::lifecycle(phase, command, id, None)).await;
                under_way.reach_others(&self.daemon.pi, self.peer.client.principal(), step);
                *so_far = step;
            }
        }
    }

    /// Something happens to a command: before its client is told of that, or another one's is, each is told that the command has come so far.
    async fn hears_of(&self, id: &CommandId, reached: ReportedStage) {
        if self.command_under_way(id).is_some() {
            return self.reach(id, reached).await;
        }
        let (shared, principal) = (&self.daemon.pi, self.peer.client.principal());
        let of_another = shared.under_way().get(&(principal.clone(), id.clone())).cloned();
        if let Some(under_way) = of_another {
            under_way.reach_others(shared, principal, reached);
        }
        let told = shared.count();
        self.passed_on.subscribe().wait_for(|passed_on| *passed_on >= told).await.ok();
    }

    /// A refusal that is an outcome is stored before it is told; one that cannot be stored is told as what hinders.
    async fn kept(
        &self,
        command: &PiCommand,
        id: &CommandId,
        done: std::result::Result<CommandResult, Failed>,
    ) -> std::result::Result<CommandResult, Failed> {
        let error = match &done {
            Err(Failed::Refused(error)) if is_outcome(error) && !command.body.is_read() => error.clone(),
            Ok(_) | Err(_) => return done,
        };
        if command.id.is_none() {
            return done;
        }
        let refusal = Refusal { id: id.clone(), fingerprint: fingerprint_of(command), error };
        match self.peer.client.store_refusal(refusal).await {
            Ok(()) => done,
            Err(error) => Err(error.into()),
        }
    }

    /// An error that tells of another command's tells it in upstream's words.
    async fn in_upstreams_words(&self, error: Error) -> Error {
        let Error::DependencyFailed { dependency, reason } = error else { return error };
        let reason = match self.peer.client.command(&dependency).await {
            Ok(CommandStatus::Ended(stored)) => match stored.outcome {
                Outcome::Failed { error } => said(&error, &ErrorContext::nothing()),
                Outcome::Done { .. } => reason,
            },
            Ok(CommandStatus::Waits { .. } | CommandStatus::Runs { .. }) | Err(_) => reason,
        };
        Error::DependencyFailed { dependency, reason }
    }

    async fn tell_phase(&self, phase: Phase, command: &PiCommand, id: &CommandId, answer: Option<&Response>) {
        self.tell_all(&frames::lifecycle(phase, command, id, answer)).await;
    }

    /// Tells this client, and all others of its principal.
    async fn tell_all(&self, frame: &Value) {
        let frame = frame.to_string();
        self.daemon.pi.tell_others(self.peer.client.principal(), self.number, frame.clone());
        self.outbox.send(frame).await.ok();
    }

    async fn tell_change(&self, change: &Change) {
        if let Some(frame) = change.frame_for(&self.daemon, &self.peer.client).await {
            self.send(&frame).await;
        }
    }

    async fn pass_on(&self, told: &Broadcast) {
        if told.from != self.number && told.principal == *self.peer.client.principal() {
            self.outbox.send(told.frame.clone()).await.ok();
        }
        self.passed_on.send_if_modified(|passed_on| {
            let is_next = *passed_on < told.nth;
            *passed_on = told.nth.max(*passed_on);
            is_next
        });
    }

    /// Hears of a session's events from now on, or from after one on.
    async fn hear(
        self: &Arc<Self>,
        name: &str,
        session: Session,
        after: Option<u64>,
        is_cumulative: bool,
    ) -> Result<Hearing, Error> {
        let mut live = self.peer.client.listen(session.id).await?;
        if after.is_some_and(|after| after > session.last_seq.0) {
            let reason = format!("the session's newest event is {}", session.last_seq);
            return Err(Error::InvalidArgument { argument: "afterSeq".to_owned(), reason });
        }
        let asks = if after.is_none() { session.asks.clone() } else { Vec::new() };
        let after = after.map_or(session.last_seq, Seq);
        let cursor = Cursor::Session { session: session.id, after };
        let mut followed = self.peer.client.follow(cursor, EventFilter::default()).await?;
        let state = self.daemon.engine.agent_state(&session);
        let mut teller =
            turn_catch_up::teller(&self.peer.client, &session, state, after, is_cumulative).await?;
        let (connection, name) = (Arc::clone(self), name.to_owned());
        let (reached, told) = watch::channel(after);
        let task = tokio::spawn(async move {
            for pending in &asks {
                connection.send(&frames::event(&name, ui_request(&pending.ask), Some(pending.raised))).await;
            }
            for frame in frames::of_event(&name, teller.open_message(), None) {
                connection.send(&frame).await;
            }
            loop {
                let (told, seq, is_last) = tokio::select! {
                    // What is stored first: live pieces are ahead of it at most.
                    biased;
                    event = followed.next() => match event {
                        Ok(event) => {
                            // What a command does is told behind its acceptance.
                            if let Some(command) = &event.metadata.correlation {
                                let begun = has_begun(&event.body);
                                connection.hears_of(command, if begun { ReportedStage::Started } else { ReportedStage::Accepted }).await;
                            }
                            let is_last = matches!(event.body, EventBody::SessionUnloaded { .. });
                            (teller.tell(&event), Some(event.seq), is_last)
                        }
                        Err(_) => return,
                    },
                    Some(live) = live.next() => (teller.hear(&live), None, false),
                };
                for frame in frames::of_event(&name, told, seq) {
                    connection.send(&frame).await;
                }
                if let Some(seq) = seq {
                    reached.send_replace(seq);
                }
                if is_last {
                    return;
                }
            }
        });
        Ok(Hearing { session: session.id, task: task.abort_handle(), told })
    }

    async fn answer(&self, response: &Response) {
        let text = serde_json::to_string(response).unwrap_or_default();
        self.outbox.send(text).await.ok();
    }

    async fn send(&self, frame: &Value) {
        // The client may be gone.
        self.outbox.send(frame.to_string()).await.ok();
    }
}

/// Whether a command has begun, once something happens to it; none where nothing more is heard.
async fn next(followed: &mut Option<ClientSubscription>) -> Option<bool> {
    match followed {
        Some(followed) => followed.next().await.ok().map(|event| has_begun(&event.body)),
        None => std::future::pending().await,
    }
}

/// What a command says, for the refusals that are stored.
fn fingerprint_of(command: &PiCommand) -> CommandFingerprint {
    CommandFingerprint::of("pi", &command.fingerprint)
}

/// The outbox of a connection, and what leaves it.
pub(super) fn outbox() -> (mpsc::Sender<String>, mpsc::Receiver<String>) {
    mpsc::channel(OUTBOX)
}

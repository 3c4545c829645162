//! One connection of the protocol, whatever carries it: frames in, frames out. Commands are handed over in the order in which they come;
//! their answers come when they have ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt};
use mainstay_engine::{Client, Cursor, Followed};
use mainstay_model::{CommandId, Error, EventFilter, Principal, Seq};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::carrying_out::{Call, Ended, Failed, HandedOver, has_begun};
use super::command::{Body, PiCommand};
use super::counts::Counts;
use super::decode::{Invalid, decode};
use super::directory::{Change, Directory};
use super::errors::{About, said};
use super::events::ui_request;
use super::frames::{self, Phase, Response};
use super::joining;
use super::reading::session_of;
use super::recovery;
use super::seen::{Before, Seen};
use crate::command::anonymous;
use crate::rpc::server::Daemon;

/// Frames that wait for a slow client; then its commands and sessions wait.
const OUTBOX: usize = 64;
/// Frames for all that one connection may be behind with.
const TOLD: usize = 4096;
/// Places that are kept for what passes everything.
const URGENT: usize = 16;

/// What all connections of the protocol share.
pub struct Shared {
    seen: Mutex<Seen>,
    told: broadcast::Sender<Arc<Told>>,
    connections: AtomicUsize,
    commands: AtomicU64,
    pub(super) directory: Directory,
    pub(super) counts: Counts,
}

/// A frame for all connections of a principal but the one that sends it.
struct Told {
    principal: Principal,
    from: u64,
    frame: String,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            told: broadcast::channel(TOLD).0,
            connections: AtomicUsize::new(0),
            commands: AtomicU64::new(0),
            directory: Directory::default(),
            counts: Counts::default(),
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

    /// Takes a place among so many connections.
    pub(super) fn enter(self: &Arc<Self>, limit: usize) -> Option<Place> {
        let entered = self
            .connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < limit).then_some(count + 1));
        entered.ok().map(|_| Place(Arc::clone(self)))
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the connections.
pub(super) struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What comes in.
pub(super) enum Incoming {
    /// A frame.
    Frame(String),
    /// An empty line.
    Nothing,
    /// One that is no text.
    NoText,
    /// One of so many bytes, which are more than may be.
    TooLarge(usize),
}

/// Why a connection ends that its client did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client went.
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
    daemon: Daemon,
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Unpin,
    outbox: mpsc::Sender<String>,
) -> End {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (mut told, mut changes) = (daemon.pi.told.subscribe(), daemon.pi.directory.listen());
    Directory::follow(&daemon);
    let connection = Arc::new(Connection { daemon, peer, outbox, number });
    connection.send(&frames::server_ready(connection.daemon.version)).await;
    let recovery = recovery::told(&connection.daemon, &connection.peer.client).await;
    connection.send(&frames::startup_recovery_summary(&recovery)).await;
    let mut tasks = Tasks::default();
    let (stop, stopped) = (connection.daemon.stop.clone(), connection.daemon.stopped.clone());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            frame = incoming.next() => match frame {
                Some(frame) => tasks.take(&connection, frame).await,
                None => {
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
        if let Some(answer) = connection.answered_before(&command, self.under_way.len()) {
            return connection.answer(&answer).await;
        }
        connection.daemon.pi.commands.fetch_add(1, Ordering::Relaxed);
        let id = command.id.clone().unwrap_or_else(anonymous);
        let command = Arc::new(command);
        let is_heard =
            |name: &String| self.sessions.get(name).is_some_and(|hearing| !hearing.task.is_finished());
        if let Body::SwitchSession { after } = command.body
            && let Some(name) = command.session.clone()
            && (after.is_some() || !is_heard(&name))
        {
            match connection.hear(&name, after).await {
                Ok(hearing) => drop(self.sessions.insert(name, hearing)),
                Err(error) => {
                    return connection.finish(&command, &id, Err(error.into()), SoFar::Nothing).await;
                }
            }
        }
        if command.body.is_read() {
            let connection = Arc::clone(connection);
            self.under_way.spawn(async move {
                let done = connection.call(&command, &id).read().await;
                connection.finish(&command, &id, done, SoFar::Nothing).await;
            });
            return;
        }
        if command.body.changes_directory() {
            connection.daemon.pi.directory.expect(connection.peer.client.principal(), &id);
        }
        let told = command.session.as_ref().and_then(|name| self.sessions.get(name));
        let told = told.map(|hearing| hearing.told.clone());
        let connection = Arc::clone(connection);
        // Its session may be on its way, by what it depends on.
        if !command.depends_on.is_empty() && connection.call(&command, &id).session_is_missing().await {
            self.under_way.spawn(async move {
                let call = connection.call(&command, &id);
                let handed_over = match call.wait_for_dependencies().await {
                    Ok(()) => call.hand_over().await,
                    Err(failed) => Err(failed),
                };
                connection.carry_on(&command, &id, handed_over, told).await;
            });
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

/// How far a command's way has been told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SoFar {
    Nothing,
    Accepted,
    Started,
}

struct Connection {
    daemon: Daemon,
    peer: Peer,
    outbox: mpsc::Sender<String>,
    number: u64,
}

impl Connection {
    fn call<'a>(&'a self, command: &'a PiCommand, id: &'a CommandId) -> Call<'a> {
        Call { daemon: &self.daemon, client: &self.peer.client, command, id, folder: &self.peer.folder }
    }

    /// The answer to what needs none of the engine: what was read before, what is one too many, what comes too late.
    fn answered_before(&self, command: &PiCommand, under_way: usize) -> Option<Response> {
        let id = command.id.as_ref().map(|id| id.as_str().to_owned());
        let failure = |error: &Error, earlier: Option<&str>| {
            let about = About {
                kind: &command.kind,
                session: command.session.as_deref(),
                earlier,
                if_version: command.if_version,
            };
            Some(Response::failure(id.clone(), command.kind.as_str(), said(error, &about)))
        };
        if self.daemon.stop.is_cancelled() {
            return failure(&Error::DaemonStopping, None);
        }
        if let Some(id) = &command.id
            && command.depends_on.contains(id)
        {
            return failure(&Error::DependsOnItself { command: id.clone() }, None);
        }
        // Who connects anew wants to hear, whatever was answered to another connection.
        let before = match command.is_subscription() {
            true => Before::New,
            false => self.daemon.pi.seen().before(self.peer.client.principal(), command),
        };
        match (before, &command.id, &command.key) {
            (Before::Answered(answer), ..) => return Some(*answer),
            (Before::Taken { by, is_key: true }, _, Some(key)) => {
                return failure(&Error::KeyConflict { key: key.clone() }, Some(&by));
            }
            (Before::Taken { by, .. }, Some(id), _) => {
                return failure(&Error::CommandConflict { command: id.clone() }, Some(&by));
            }
            (Before::New | Before::Taken { .. }, ..) => {}
        }
        let limit = self.daemon.engine.limits().connection_requests;
        let places = if command.body.is_urgent() { limit.saturating_add(URGENT) } else { limit };
        if under_way >= places {
            return failure(&Error::TooManyRequests { what: "commands".to_owned(), limit }, None);
        }
        None
    }

    /// Waits for what comes of a command that was handed over, or was not.
    async fn carry_on(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: std::result::Result<HandedOver, Failed>,
        told: Option<watch::Receiver<Seq>>,
    ) {
        match handed_over {
            Ok(handed_over) => self.wait(command, id, handed_over, told).await,
            Err(failed) => self.finish(command, id, Err(failed), SoFar::Nothing).await,
        }
    }

    /// Waits for what comes of a command, and tells how far it is.
    async fn wait(
        &self,
        command: &PiCommand,
        id: &CommandId,
        handed_over: HandedOver,
        told: Option<watch::Receiver<Seq>>,
    ) {
        let HandedOver { mut followed, mut ended, completed } = handed_over;
        let mut so_far = SoFar::Nothing;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut ended => break done,
                event = next(&mut followed) => match event {
                    Some(begun) => {
                        if so_far == SoFar::Nothing {
                            self.tell_phase(Phase::Accepted, command, id, None).await;
                            so_far = SoFar::Accepted;
                        }
                        if begun && so_far == SoFar::Accepted {
                            self.tell_phase(Phase::Started, command, id, None).await;
                            so_far = SoFar::Started;
                        }
                    }
                    None => followed = None,
                },
            }
        };
        // First what happened, then what came of it; unless nothing is told any more.
        if let (Some(mut told), Some(end)) = (told, completed.get()) {
            told.wait_for(|told| told >= end).await.ok();
        }
        self.finish(command, id, done, so_far).await;
    }

    /// Tells that a command is through, and what came of it: in this order.
    async fn finish(
        &self,
        command: &PiCommand,
        id: &CommandId,
        done: std::result::Result<Ended, Failed>,
        so_far: SoFar,
    ) {
        let given = command.id.as_ref().map(|id| id.as_str().to_owned());
        let about = About {
            kind: &command.kind,
            session: command.session.as_deref(),
            earlier: None,
            if_version: command.if_version,
        };
        let failure = |error: String| Response::failure(given.clone(), command.kind.as_str(), error);
        let is_nothing = matches!(done, Ok(Ended { is_nothing: true, .. }));
        let (answer, was_accepted, told) = match done {
            Ok(Ended { data, version, is_replay, told, .. }) => {
                let answer = Response {
                    session_version: version,
                    replayed: is_replay,
                    ..Response::success(given.clone(), &command.kind, data)
                };
                (answer, !is_replay, told)
            }
            Err(Failed::Refused(error)) => (failure(said(&error, &about)), false, None),
            Err(Failed::Error { error, is_replay }) => {
                let timed_out = matches!(error, Error::TimedOut { .. });
                let answer = Response { replayed: is_replay, timed_out, ..failure(said(&error, &about)) };
                (answer, !is_replay, None)
            }
            Err(Failed::Said { message, is_replay }) => {
                (Response { replayed: is_replay, ..failure(message) }, !is_replay, None)
            }
        };
        if told.is_none() && command.body.changes_directory() {
            self.daemon.pi.directory.forget(self.peer.client.principal(), id);
        }
        if was_accepted {
            if so_far == SoFar::Nothing {
                self.tell_phase(Phase::Accepted, command, id, None).await;
            }
            if so_far != SoFar::Started {
                self.tell_phase(Phase::Started, command, id, None).await;
            }
            self.tell_phase(Phase::Finished, command, id, Some(&answer)).await;
            let kept = (command.body.is_read() || is_nothing).then_some(&answer);
            if !command.is_subscription() {
                self.daemon.pi.seen().keep(self.peer.client.principal(), command, kept);
            }
        }
        self.answer(&answer).await;
        if let Some(told) = told {
            self.tell_all(&told).await;
        }
    }

    async fn tell_phase(&self, phase: Phase, command: &PiCommand, id: &CommandId, answer: Option<&Response>) {
        self.tell_all(&frames::lifecycle(phase, command, id, answer)).await;
    }

    /// Tells this client, and all others of its principal.
    async fn tell_all(&self, frame: &Value) {
        let (principal, frame) = (self.peer.client.principal().clone(), frame.to_string());
        // There may be no others.
        self.daemon.pi.told.send(Arc::new(Told { principal, from: self.number, frame: frame.clone() })).ok();
        self.outbox.send(frame).await.ok();
    }

    async fn tell_change(&self, change: &Change) {
        if let Some(frame) = change.frame_for(&self.daemon, &self.peer.client).await {
            self.send(&frame).await;
        }
    }

    async fn pass_on(&self, told: &Told) {
        if told.from != self.number && told.principal == *self.peer.client.principal() {
            self.outbox.send(told.frame.clone()).await.ok();
        }
    }

    /// Hears of a session's events from now on, or from after one on.
    async fn hear(self: &Arc<Self>, name: &str, after: Option<u64>) -> Result<Hearing, Error> {
        let session = session_of(&self.peer.client, name).await?;
        let mut live = self.peer.client.listen(session.id).await?;
        if after.is_some_and(|after| after > session.last_seq.0) {
            let reason = format!("the session's newest event is {}", session.last_seq);
            return Err(Error::InvalidArgument { argument: "afterSeq".to_owned(), reason });
        }
        let asks = if after.is_none() { session.asks.clone() } else { Vec::new() };
        let after = after.map_or(session.last_seq, Seq);
        let cursor = Cursor::Session { session: session.id, after };
        let mut followed = self.peer.client.follow(cursor, EventFilter::default()).await?;
        let mut teller = joining::teller(&self.peer.client, &session, after).await?;
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
                let (told, seq) = tokio::select! {
                    // What is stored first: live pieces are ahead of it at most.
                    biased;
                    event = followed.next() => match event {
                        Ok(event) => (teller.tell(&event), Some(event.seq)),
                        Err(_) => return,
                    },
                    Some(live) = live.next() => (teller.hear(&live), None),
                };
                for frame in frames::of_event(&name, told, seq) {
                    connection.send(&frame).await;
                }
                if let Some(seq) = seq {
                    reached.send_replace(seq);
                }
            }
        });
        Ok(Hearing { task: task.abort_handle(), told })
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
async fn next(followed: &mut Option<Followed>) -> Option<bool> {
    match followed {
        Some(followed) => followed.next().await.ok().map(|event| has_begun(&event.body)),
        None => std::future::pending().await,
    }
}

/// The outbox of a connection, and what leaves it.
pub(super) fn outbox() -> (mpsc::Sender<String>, mpsc::Receiver<String>) {
    mpsc::channel(OUTBOX)
}

//! One connection of the protocol, whatever carries it: frames in, frames out. Commands are handed over in the order in which they come;
//! their answers come when they have ended.

mod admission;
mod outcome;
mod session_events;
mod tasks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::{Stream, StreamExt};
use mainstay_engine::Client;
use mainstay_gateway::admission::Admission;
use mainstay_model::CommandId;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};

use self::tasks::Tasks;
use super::command::PiCommand;
use super::daemon::PiDaemon;
use super::directory::{Change, Directory};
use super::frames::{self, Phase, Response};
use super::handlers::Call;
use super::recovery;
use super::running_command::RunningCommand;
use super::shared::Broadcast;

/// Frames that wait for a slow client; then its commands and sessions wait.
const OUTBOX: usize = 64;
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
    /// The client's credentials have expired.
    Expired,
}

/// Who is connected, and how.
pub(super) struct Peer {
    pub(super) client: Client,
    /// Where sessions work whose creator does not say.
    pub(super) folder: String,
    /// Until when the client may stay.
    pub(super) admission: Admission,
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
            () = connection.peer.admission.expired() => return End::Expired,
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

    async fn answer(&self, response: &Response) {
        let text = serde_json::to_string(response).unwrap_or_default();
        self.outbox.send(text).await.ok();
    }

    async fn send(&self, frame: &Value) {
        // The client may be gone.
        self.outbox.send(frame.to_string()).await.ok();
    }
}

/// The outbox of a connection, and what leaves it.
pub(super) fn outbox() -> (mpsc::Sender<String>, mpsc::Receiver<String>) {
    mpsc::channel(OUTBOX)
}

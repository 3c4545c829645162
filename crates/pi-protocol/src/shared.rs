//! What all connections of the protocol share: the answers that were given, the commands under way, and the frames for everyone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_model::{CommandId, Principal};
use tokio::sync::{broadcast, watch};

use super::answer_cache::AnswerCache;
use super::counts::Counts;
use super::directory::Directory;
use super::rates::Rates;
use super::running_command::RunningCommand;

/// Frames for all that one connection may be behind with.
const TOLD: usize = 4096;

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
    pub(super) commands: AtomicU64,
    pub(super) directory: Directory,
    pub(super) counts: Counts,
    pub(super) rates: Rates,
}

/// A frame for all connections of a principal but the one that sends it.
pub(super) struct Broadcast {
    pub(super) principal: Principal,
    pub(super) from: u64,
    pub(super) frame: String,
    /// The how manieth it is.
    pub(super) nth: u64,
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
    pub(super) fn tell_others(&self, principal: &Principal, from: u64, frame: String) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        // There may be no others.
        self.told.send(Arc::new(Broadcast { principal: principal.clone(), from, frame, nth: *count })).ok();
    }

    /// What all are told from now on, and how much was told before.
    pub(super) fn listen(&self) -> (broadcast::Receiver<Arc<Broadcast>>, u64) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        (self.told.subscribe(), *count)
    }

    /// How many frames were told so far.
    pub(super) fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn under_way(&self) -> MutexGuard<'_, HashMap<CommandName, Arc<RunningCommand>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the hold of a command that is not handed over yet; none where it is not held.
    pub(super) fn end_of_hold(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Option<watch::Receiver<()>> {
        self.held().get(&(principal.clone(), command.clone())).map(watch::Sender::subscribe)
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<CommandName, watch::Sender<()>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, AnswerCache> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose command, and which.
pub(super) type CommandName = (Principal, CommandId);

/// A command that is not handed over yet. Those that depend on it are held as long.
pub(super) struct HeldCommand {
    shared: Arc<Shared>,
    name: CommandName,
}

impl HeldCommand {
    pub(super) fn new(shared: &Arc<Shared>, name: CommandName) -> Self {
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

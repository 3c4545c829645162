//! Commands that have come and are looked up in the log: a command that was there before gets the first one's outcome.
//!
//! The session's task never waits for a read. One command at a time is looked up, and those behind it wait, so that they are
//! admitted in the order in which they came ([`arrival_order`](super::arrival_order)). What concerns the job that runs is urgent and passes what is looked up:
//! a cancel, an answer or steering waits only for those like it.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use mainstay_log::{KeyScope, Log, StoredOutcome};
use mainstay_model::decide::Identity;
use mainstay_model::{Command, CommandId, Error, JobId, Principal, SessionId};

use super::arrival_order::{ArrivalOrder, UnderWay};
use crate::claims::{CommandKey, key_of};
use crate::pending_commands::Reply;
use crate::trace::CommandTrace;

/// A command that has come.
pub(super) struct ArrivingCommand {
    pub(super) command: Command,
    pub(super) identity: Identity,
    /// The client whose connection asks for it.
    pub(super) asked_by: Option<u64>,
    pub(super) reply: Reply,
    pub(super) trace: CommandTrace,
    /// Whether it waits only for those that are urgent too.
    pub(super) is_urgent: bool,
    /// Of a cancel that names no command: the job that ran when it came, and its command. It ends no other.
    pub(super) meant: Option<(JobId, CommandId)>,
}

/// What the log knows of a command.
pub(super) type Known = Result<Option<Stored>, Error>;

/// An outcome that the log has.
pub(super) enum Stored {
    /// Under the command's own id.
    UnderId(StoredOutcome),
    /// The outcome stored under the same idempotency key.
    UnderKey(StoredOutcome),
}

/// The commands that are looked up, and those that wait for that.
#[derive(Default)]
pub(super) struct Arrivals {
    looked_up: Vec<ArrivingCommand>,
    lookups: FuturesUnordered<BoxFuture<'static, (CommandKey, Known)>>,
    waiting: ArrivalOrder<ArrivingCommand>,
}

impl Arrivals {
    /// Whether nothing is looked up or waits for that.
    pub(super) fn is_empty(&self) -> bool {
        self.looked_up.is_empty() && self.waiting.is_empty()
    }

    /// Whether a command of this id is here.
    pub(super) fn has(&self, principal: &Principal, command: &CommandId) -> bool {
        self.all().any(|identity| identity.principal == *principal && identity.command == *command)
    }

    /// Whether the same command may be here, under this id or this key.
    pub(super) fn has_same(&self, identity: &Identity) -> bool {
        let is_same_key = |other: &Identity| {
            other.principal == identity.principal && other.key.is_some() && other.key == identity.key
        };
        self.has(&identity.principal, &identity.command) || self.all().any(is_same_key)
    }

    fn all(&self) -> impl Iterator<Item = &Identity> {
        self.looked_up.iter().chain(self.waiting.iter()).map(|arriving| &arriving.identity)
    }

    /// Takes a command in behind those that it waits for.
    pub(super) fn push(&mut self, arriving: ArrivingCommand) {
        let is_urgent = arriving.is_urgent;
        self.waiting.push(arriving, is_urgent);
    }

    /// The next command whose turn it is: none that it waits for is looked up.
    pub(super) fn next_in_turn(&mut self) -> Option<ArrivingCommand> {
        let under_way = match self.looked_up.as_slice() {
            [] => UnderWay::Nothing,
            some if some.iter().any(|arriving| arriving.is_urgent) => UnderWay::Urgent,
            _ => UnderWay::Other,
        };
        self.waiting.next(under_way)
    }

    /// Has a command looked up.
    pub(super) fn look_up(&mut self, arriving: ArrivingCommand, log: &Arc<dyn Log>, session: SessionId) {
        let (log, identity) = (Arc::clone(log), arriving.identity.clone());
        self.looked_up.push(arriving);
        self.lookups.push(Box::pin(async move {
            let known = known(&*log, session, &identity).await;
            (key_of(&identity), known)
        }));
    }

    /// What the log knows of one of those that are looked up; waits for the next. Dropping the future loses nothing.
    pub(super) async fn next_known(&mut self) -> Option<(ArrivingCommand, Known)> {
        let (key, known) = self.lookups.next().await?;
        let index = self.looked_up.iter().position(|arriving| key_of(&arriving.identity) == key)?;
        Some((self.looked_up.remove(index), known))
    }

    /// Those that are looked up, of a task that ends. Whoever waits for a command hears that the task is gone.
    pub(super) fn looked_up(&self) -> impl Iterator<Item = CommandKey> {
        self.looked_up.iter().map(|arriving| key_of(&arriving.identity))
    }
}

/// Whether the log may know a command. An id of our own was never there before.
pub(super) fn may_be_known(identity: &Identity) -> bool {
    !identity.command.is_anonymous() || identity.key.is_some()
}

/// What the log knows of a command: by its key, else by its id.
async fn known(log: &dyn Log, session: SessionId, identity: &Identity) -> Known {
    let Identity { principal, command: id, key, fingerprint } = identity;
    let stored = if id.is_anonymous() { None } else { log.outcome(principal, id).await? };
    if let Some(stored) = stored {
        return match stored.fingerprint == *fingerprint {
            true => Ok(Some(Stored::UnderId(stored))),
            false => Err(Error::CommandConflict { command: id.clone() }),
        };
    }
    let Some(key) = key else { return Ok(None) };
    match log.outcome_of_key(principal, KeyScope::Session(session), key).await? {
        None => Ok(None),
        Some(stored) if stored.fingerprint == *fingerprint => Ok(Some(Stored::UnderKey(stored))),
        Some(_) => Err(Error::KeyConflict { key: key.clone() }),
    }
}

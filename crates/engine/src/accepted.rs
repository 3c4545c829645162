//! Commands that were accepted and are not yet known to the log: who waits for them, and who asked again.
//!
//! A command stays here until its outcome is durable. One that comes after that finds the outcome in the log; so between
//! the two there is no moment in which a repeated command would run again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_model::{CommandFingerprint, CommandId, Error, Outcome, Principal, SessionId};

use crate::commit::Reply;

/// Whose command, and which.
pub(crate) type CommandKey = (Principal, CommandId);

/// Which session has accepted which command, over all sessions: an id belongs to one of them.
#[derive(Default)]
pub(crate) struct Claims {
    holders: Mutex<HashMap<CommandKey, SessionId>>,
}

impl Claims {
    fn take(&self, key: &CommandKey, session: SessionId) -> bool {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        *holders.entry(key.clone()).or_insert(session) == session
    }

    fn release(&self, key: &CommandKey, session: SessionId) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.get(key) == Some(&session) {
            holders.remove(key);
        }
    }
}

/// An id that a creation holds until it is through.
pub(crate) struct Claim<'a> {
    claims: &'a Claims,
    key: CommandKey,
    session: SessionId,
}

impl<'a> Claim<'a> {
    /// Takes an id; none where another session has accepted a command under it.
    pub(crate) fn take(claims: &'a Claims, key: CommandKey, session: SessionId) -> Option<Self> {
        claims.take(&key, session).then_some(Self { claims, key, session })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.release(&self.key, self.session);
    }
}

/// The accepted commands of one session. When its task fails, the ids stay the session's: the log may have its commands
/// without an outcome, and the next task gives them one.
pub(crate) struct Accepted {
    session: SessionId,
    claims: Arc<Claims>,
    commands: HashMap<CommandKey, Progress>,
    /// How many commits were handed over.
    handed_over: u64,
    /// How many of them are durable.
    durable: Arc<AtomicU64>,
}

enum Progress {
    /// No outcome yet.
    Pending { fingerprint: CommandFingerprint, replies: Vec<Reply> },
    /// The outcome is on its way to the disk, in the commit of this number.
    Decided { fingerprint: CommandFingerprint, outcome: Outcome, commit: u64 },
}

/// What becomes of a command that comes in.
pub(crate) enum Arrival {
    /// It is new; this is who waits for it.
    New(Reply),
    /// It is pending already; the reply waits with the others.
    Joined,
    /// Its outcome is on its way to the disk; the reply must follow it.
    Follow(Reply, Outcome),
    /// Its id belongs to another command.
    Conflict(Reply),
}

impl Accepted {
    /// Nothing accepted yet; `durable` counts the commits that are durable.
    pub(crate) fn new(session: SessionId, claims: Arc<Claims>, durable: Arc<AtomicU64>) -> Self {
        Self { session, claims, commands: HashMap::new(), handed_over: 0, durable }
    }

    /// Looks at a command that comes in, and claims its id where it is new.
    pub(crate) fn arrive(
        &mut self,
        key: &CommandKey,
        fingerprint: &CommandFingerprint,
        reply: Reply,
    ) -> Arrival {
        self.forget_durable();
        match self.commands.get_mut(key) {
            Some(Progress::Pending { fingerprint: first, replies }) if first == fingerprint => {
                replies.push(reply);
                Arrival::Joined
            }
            Some(Progress::Decided { fingerprint: first, outcome, .. }) if first == fingerprint => {
                Arrival::Follow(reply, outcome.clone())
            }
            Some(Progress::Pending { .. } | Progress::Decided { .. }) => Arrival::Conflict(reply),
            None if self.claims.take(key, self.session) => Arrival::New(reply),
            None => Arrival::Conflict(reply),
        }
    }

    /// Accepts a command that arrived as new.
    pub(crate) fn accept(&mut self, key: CommandKey, fingerprint: CommandFingerprint, reply: Reply) {
        self.commands.insert(key, Progress::Pending { fingerprint, replies: vec![reply] });
    }

    /// Gives up the id of a command that arrived as new and was not accepted.
    pub(crate) fn give_up(&self, key: &CommandKey) {
        self.claims.release(key, self.session);
    }

    /// Refuses a command that was accepted, and tells all who wait for it.
    pub(crate) fn refuse(&mut self, key: &CommandKey, error: &Error) {
        if let Entry::Occupied(entry) = self.commands.entry(key.clone())
            && let Progress::Pending { .. } = entry.get()
            && let Progress::Pending { replies, .. } = entry.remove()
        {
            self.claims.release(key, self.session);
            replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone()))));
        }
    }

    /// Marks a command as decided by the next commit; gives who waits for it. One that an earlier task had accepted is
    /// claimed here, so that its id is not taken until the log knows it.
    pub(crate) fn decided(
        &mut self,
        key: CommandKey,
        fingerprint: CommandFingerprint,
        outcome: &Outcome,
    ) -> Vec<(Reply, Outcome)> {
        self.claims.take(&key, self.session);
        let commit = self.handed_over + 1;
        let progress = Progress::Decided { fingerprint, outcome: outcome.clone(), commit };
        match self.commands.insert(key, progress) {
            Some(Progress::Pending { replies, .. }) => {
                replies.into_iter().map(|reply| (reply, outcome.clone())).collect()
            }
            Some(Progress::Decided { .. }) | None => Vec::new(),
        }
    }

    /// One more commit was handed over.
    pub(crate) fn commit_handed_over(&mut self) {
        self.handed_over += 1;
    }

    /// Drops what the log now knows.
    fn forget_durable(&mut self) {
        let durable = self.durable.load(Ordering::Acquire);
        let (claims, session) = (&self.claims, self.session);
        self.commands.retain(|key, progress| match progress {
            Progress::Pending { .. } => true,
            Progress::Decided { commit, .. } => {
                let keep = *commit > durable;
                if !keep {
                    claims.release(key, session);
                }
                keep
            }
        });
    }
}

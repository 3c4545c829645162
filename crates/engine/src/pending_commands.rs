//! Commands that were accepted and are not yet known to the log: who waits for them, and who asked again.
//!
//! A command stays here until its outcome is durable. One that comes after that finds the outcome in the log; so between
//! the two there is no moment in which a repeated command would run again. The same holds for an idempotency key, under
//! whatever id it comes again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use mainstay_model::decide::{Answer, Identity};
use mainstay_model::{
    Answered, CommandFingerprint, CommandId, Error, IdempotencyKey, Outcome, Principal, SessionId, Version,
};
use tokio::sync::oneshot;

use crate::claims::{Claims, CommandKey, key_of};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Who waits for an outcome.
#[derive(Debug)]
pub(crate) struct Reply {
    to: oneshot::Sender<Result<Answered, Error>>,
    /// Whether another submission of the same command came first.
    is_replay: bool,
}

impl Reply {
    /// The first who asks.
    pub(crate) fn new(to: oneshot::Sender<Result<Answered, Error>>) -> Self {
        Self { to, is_replay: false }
    }

    /// Answers. Who asked may have gone; the outcome is stored.
    pub(crate) fn answer(self, outcome: Outcome, version: Version) {
        self.to.send(Ok(Answered { outcome, version, is_replay: self.is_replay })).ok();
    }

    /// Answers with what the log has.
    pub(crate) fn replay(self, outcome: Outcome, version: Version) {
        Self { is_replay: true, ..self }.answer(outcome, version);
    }

    /// Says that nothing is done.
    pub(crate) fn refuse(self, error: Error) {
        self.to.send(Err(error)).ok();
    }

    pub(crate) fn repeated(self) -> Self {
        Self { is_replay: true, ..self }
    }
}

/// The accepted commands of one session. When its task fails, the ids stay the session's: the log may have its commands
/// without an outcome, and the next task gives them one.
pub(crate) struct PendingCommands {
    session: SessionId,
    claims: Arc<Claims>,
    commands: HashMap<CommandKey, Progress>,
    keys: HashMap<(Principal, IdempotencyKey), CommandId>,
    /// How many commits were handed over.
    handed_over: u64,
    /// How many of them are durable.
    durable: Arc<AtomicU64>,
}

enum Progress {
    /// The command has no outcome yet.
    Pending {
        fingerprint: CommandFingerprint,
        idempotency: Option<IdempotencyKey>,
        replies: Vec<Reply>,
        /// Other ids under which it came again.
        aliases: Vec<CommandId>,
    },
    /// Another id of a command without an outcome.
    Alias { of: CommandId },
    /// The outcome is on its way to the disk, in the commit of this number.
    Decided {
        fingerprint: CommandFingerprint,
        idempotency: Option<IdempotencyKey>,
        outcome: Outcome,
        version: Version,
        commit: u64,
    },
}

/// What becomes of a command that comes in.
pub(crate) enum Arrival {
    /// It is new; this is who waits for it.
    New(Reply),
    /// It is pending already; the reply waits with the others.
    Joined,
    /// Its outcome, with the version of its end, is on its way to the disk; the reply must follow it.
    Follow(Reply, Outcome, Version),
    /// So it is under another id, and the outcome is stored under this one as well.
    Copy(Reply, Outcome, Version),
    /// Its id or its key belongs to another command.
    Conflict(Reply, Error),
}

impl PendingCommands {
    /// Nothing accepted yet; `durable` counts the commits that are durable.
    pub(crate) fn new(session: SessionId, claims: Arc<Claims>, durable: Arc<AtomicU64>) -> Self {
        Self { session, claims, commands: HashMap::new(), keys: HashMap::new(), handed_over: 0, durable }
    }

    /// Looks at a command that comes in, and claims its id where it is new.
    pub(crate) fn arrive(&mut self, identity: &Identity, reply: Reply) -> Arrival {
        self.forget_durable();
        let Identity { key: idempotency, fingerprint, .. } = identity;
        let key = &key_of(identity);
        // One whose id is known is that command, whatever its key.
        let new_id = idempotency.as_ref().filter(|_| !self.commands.contains_key(key));
        let by_key = new_id.and_then(|idempotency| {
            let original = self.keys.get(&(key.0.clone(), idempotency.clone()))?;
            Some((original.clone(), idempotency))
        });
        if let Some((original, idempotency)) = by_key {
            return self.arrive_again(&original, idempotency, key, fingerprint, reply);
        }
        let conflict = |reply| Arrival::Conflict(reply, Error::CommandConflict { command: key.1.clone() });
        let original = match self.commands.get(key) {
            Some(Progress::Alias { of }) => (key.0.clone(), of.clone()),
            Some(Progress::Pending { .. } | Progress::Decided { .. }) | None => key.clone(),
        };
        match self.commands.get_mut(&original) {
            Some(Progress::Pending { fingerprint: first, replies, .. }) if first == fingerprint => {
                replies.push(reply.repeated());
                Arrival::Joined
            }
            Some(Progress::Decided { fingerprint: first, outcome, version, .. }) if first == fingerprint => {
                Arrival::Follow(reply.repeated(), outcome.clone(), *version)
            }
            Some(Progress::Pending { .. } | Progress::Decided { .. } | Progress::Alias { .. }) => {
                conflict(reply)
            }
            None if self.claims.take(key, self.session) => Arrival::New(reply),
            None => conflict(reply),
        }
    }

    /// What its key says of a command that comes under another id than the first time.
    fn arrive_again(
        &mut self,
        original: &CommandId,
        idempotency: &IdempotencyKey,
        key: &CommandKey,
        fingerprint: &CommandFingerprint,
        reply: Reply,
    ) -> Arrival {
        let conflict = |reply| Arrival::Conflict(reply, Error::KeyConflict { key: idempotency.clone() });
        if !self.claims.take(key, self.session) {
            return Arrival::Conflict(reply, Error::CommandConflict { command: key.1.clone() });
        }
        match self.commands.get_mut(&(key.0.clone(), original.clone())) {
            Some(Progress::Pending { fingerprint: first, replies, aliases, .. }) if first == fingerprint => {
                replies.push(reply.repeated());
                aliases.push(key.1.clone());
                self.commands.insert(key.clone(), Progress::Alias { of: original.clone() });
                Arrival::Joined
            }
            Some(Progress::Decided { fingerprint: first, outcome, version, .. }) if first == fingerprint => {
                Arrival::Copy(reply.repeated(), outcome.clone(), *version)
            }
            Some(Progress::Pending { .. } | Progress::Decided { .. } | Progress::Alias { .. }) | None => {
                self.claims.release(key, self.session);
                conflict(reply)
            }
        }
    }

    /// Accepts a command that arrived as new.
    pub(crate) fn accept(&mut self, identity: Identity, reply: Option<Reply>) {
        let key = key_of(&identity);
        let Identity { key: idempotency, fingerprint, .. } = identity;
        self.claims.take(&key, self.session);
        if let Some(idempotency) = &idempotency {
            self.keys.insert((key.0.clone(), idempotency.clone()), key.1.clone());
        }
        let replies = reply.into_iter().collect();
        let pending = Progress::Pending { fingerprint, idempotency, replies, aliases: Vec::new() };
        self.commands.insert(key, pending);
    }

    /// Gives up the id of a command that arrived as new and was not accepted.
    pub(crate) fn give_up(&self, key: &CommandKey) {
        self.claims.release(key, self.session);
    }

    /// Refuses a command that was accepted, and tells all who wait for it.
    pub(crate) fn refuse(&mut self, key: &CommandKey, error: &Error) {
        if let Entry::Occupied(entry) = self.commands.entry(key.clone())
            && let Progress::Pending { .. } = entry.get()
            && let Progress::Pending { replies, aliases, idempotency, .. } = entry.remove()
        {
            self.forget_key(&key.0, idempotency);
            for alias in aliases {
                let alias = (key.0.clone(), alias);
                self.commands.remove(&alias);
                self.claims.release(&alias, self.session);
            }
            self.claims.release(key, self.session);
            replies.into_iter().for_each(|reply| reply.refuse(error.clone()));
        }
    }

    /// Lets those go who wait for a command that stays accepted.
    pub(crate) fn send_away(&mut self, key: &CommandKey, error: &Error) {
        if let Some(Progress::Pending { replies, .. }) = self.commands.get_mut(key) {
            replies.drain(..).for_each(|reply| reply.refuse(error.clone()));
        }
    }

    /// The answers, and copies of them for the other ids under which their commands came.
    pub(crate) fn with_aliases(&self, answers: Vec<Answer>) -> Vec<Answer> {
        let copies = |answer: Answer| {
            let aliases = match self.commands.get(&(answer.principal.clone(), answer.command.clone())) {
                Some(Progress::Pending { aliases, .. }) => aliases.clone(),
                Some(Progress::Decided { .. } | Progress::Alias { .. }) | None => Vec::new(),
            };
            let copy = |command| Answer { command, key: None, ..answer.clone() };
            let copies: Vec<Answer> = aliases.into_iter().map(copy).collect();
            [answer].into_iter().chain(copies)
        };
        answers.into_iter().flat_map(copies).collect()
    }

    /// Marks a command as decided by the next commit; gives who waits for it. One that an earlier task had accepted is
    /// claimed here, so that its id is not taken until the log knows it.
    pub(crate) fn decided(&mut self, answer: &Answer, version: Version) -> Vec<Reply> {
        let key = (answer.principal.clone(), answer.command.clone());
        self.claims.decide(&key, self.session);
        let decided = Progress::Decided {
            fingerprint: answer.fingerprint.clone(),
            idempotency: answer.key.clone(),
            outcome: answer.outcome.clone(),
            version,
            commit: self.handed_over + 1,
        };
        match self.commands.insert(key, decided) {
            Some(Progress::Pending { replies, .. }) => replies,
            Some(Progress::Decided { .. } | Progress::Alias { .. }) | None => Vec::new(),
        }
    }

    /// One more commit was handed over.
    pub(crate) fn commit_handed_over(&mut self) {
        self.handed_over += 1;
    }

    /// How many commits were handed over.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Drops what the log now knows; its claims went when it became durable.
    fn forget_durable(&mut self) {
        let durable = self.durable.load(Ordering::Acquire);
        let keys = &mut self.keys;
        self.commands.retain(|key, progress| match progress {
            Progress::Pending { .. } | Progress::Alias { .. } => true,
            Progress::Decided { commit, .. } if *commit > durable => true,
            Progress::Decided { idempotency, .. } => {
                if let Some(idempotency) = idempotency.take() {
                    keys.remove(&(key.0.clone(), idempotency));
                }
                false
            }
        });
    }

    fn forget_key(&mut self, principal: &Principal, idempotency: Option<IdempotencyKey>) {
        if let Some(idempotency) = idempotency {
            self.keys.remove(&(principal.clone(), idempotency));
        }
    }
}

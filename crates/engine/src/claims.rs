//! Which session has accepted which command, over all sessions, until its outcome is durable: an id belongs to one of them,
//! and whoever depends on a command waits here for its end.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError};

use mainstay_model::decide::Identity;
use mainstay_model::{CommandId, Principal, SessionId};
use tokio::sync::watch;

use crate::sync::{Mutex, MutexGuard};

/// Whose command, and which.
pub(crate) type CommandKey = (Principal, CommandId);

/// Whose command this is, and which.
pub(crate) fn key_of(identity: &Identity) -> CommandKey {
    (identity.principal.clone(), identity.command.clone())
}

/// How many reads are remembered for those that depend on them.
const READS: usize = 2000;

/// The commands that were accepted and have no durable outcome yet.
#[derive(Default)]
pub(crate) struct Claims {
    holders: Mutex<HashMap<CommandKey, Holder>>,
    waits: Mutex<WaitGraph>,
    reads: Mutex<Reads>,
}

/// How reads ended, which the log does not have. The oldest are forgotten.
#[derive(Default)]
struct Reads {
    ended: HashMap<CommandKey, Result<(), String>>,
    order: VecDeque<CommandKey>,
}

/// The session that has accepted a command.
struct Holder {
    session: SessionId,
    /// Whether its outcome is on its way to the disk: it waits for nobody any more.
    is_decided: bool,
    /// Closed when the command is not held any more.
    held: watch::Sender<()>,
}

impl Holder {
    fn new(session: SessionId) -> Self {
        Self { session, is_decided: false, held: watch::Sender::new(()) }
    }
}

/// The commands whose turn has come and that wait for others.
#[derive(Default)]
struct WaitGraph {
    /// What each of them depends on.
    dependencies: HashMap<CommandKey, Vec<CommandKey>>,
    /// The one of each session: what is behind it in the lane waits for it.
    heads: HashMap<SessionId, CommandKey>,
}

/// The end of a command.
pub(crate) struct CommandEnd(watch::Receiver<()>);

impl CommandEnd {
    /// Waits until the command has a durable outcome, or is not accepted any more.
    pub(crate) async fn reached(mut self) {
        // Nothing is ever sent: it ends when the holder does.
        while self.0.changed().await.is_ok() {}
    }
}

impl Claims {
    /// Takes an id for a session; false where another session has it.
    pub(crate) fn take(&self, key: &CommandKey, session: SessionId) -> bool {
        let mut holders = lock(&self.holders);
        let holder = holders.entry(key.clone()).or_insert_with(|| Holder::new(session));
        let is_ours = holder.session == session;
        if is_ours {
            // Its outcome may have been lost on its way, with the task that had decided it.
            holder.is_decided = false;
        }
        is_ours
    }

    /// Takes an id for a session, whose command has its outcome but for the disk.
    pub(crate) fn decide(&self, key: &CommandKey, session: SessionId) {
        let mut holders = lock(&self.holders);
        let holder = holders.entry(key.clone()).or_insert_with(|| Holder::new(session));
        holder.is_decided |= holder.session == session;
    }

    /// Gives an id up.
    pub(crate) fn release(&self, key: &CommandKey, session: SessionId) {
        let mut holders = lock(&self.holders);
        if holders.get(key).is_some_and(|holder| holder.session == session) {
            holders.remove(key);
        }
    }

    /// The session that has accepted a command and not answered it yet.
    pub(crate) fn holder(&self, key: &CommandKey) -> Option<SessionId> {
        lock(&self.holders).get(key).map(|holder| holder.session)
    }

    /// How many commands are under way.
    pub(crate) fn count(&self) -> usize {
        lock(&self.holders).len()
    }

    /// The end of a command that is under way.
    pub(crate) fn end_of(&self, key: &CommandKey) -> Option<CommandEnd> {
        lock(&self.holders).get(key).map(|holder| CommandEnd(holder.held.subscribe()))
    }

    /// Remembers how a read ended.
    pub(crate) fn remember_read(&self, key: CommandKey, ended: Result<(), String>) {
        let mut reads = lock(&self.reads);
        if reads.ended.insert(key.clone(), ended).is_none() {
            reads.order.push_back(key);
        }
        if reads.order.len() > READS
            && let Some(oldest) = reads.order.pop_front()
        {
            reads.ended.remove(&oldest);
        }
    }

    /// How a read ended, where it is remembered.
    pub(crate) fn read_ended(&self, key: &CommandKey) -> Option<Result<(), String>> {
        lock(&self.reads).ended.get(key).cloned()
    }

    /// Notes that a command, first in its session's lane, waits for others, until the guard is dropped.
    ///
    /// # Errors
    /// The first of the others that would, in the end, wait for this one.
    pub(crate) fn wait<'a>(
        &'a self,
        key: &CommandKey,
        session: SessionId,
        dependencies: &[CommandId],
    ) -> Result<Wait<'a>, CommandId> {
        let holders = lock(&self.holders);
        let mut waits = lock(&self.waits);
        let dependencies: Vec<CommandKey> =
            dependencies.iter().map(|dependency| (key.0.clone(), dependency.clone())).collect();
        waits.heads.insert(session, key.clone());
        if let Some((_, dependency)) =
            dependencies.iter().find(|dependency| waits.leads_to(dependency, key, &holders))
        {
            let dependency = dependency.clone();
            waits.heads.remove(&session);
            return Err(dependency);
        }
        waits.dependencies.insert(key.clone(), dependencies);
        Ok(Wait { claims: self, key: key.clone(), session })
    }
}

impl WaitGraph {
    /// Whether a command waits for another, directly or through others or through their lanes.
    fn leads_to(&self, from: &CommandKey, to: &CommandKey, holders: &HashMap<CommandKey, Holder>) -> bool {
        let mut open = vec![from];
        let mut seen = HashSet::new();
        while let Some(next) = open.pop() {
            if next == to {
                return true;
            }
            if !seen.insert(next) {
                continue;
            }
            match self.dependencies.get(next) {
                Some(dependencies) => open.extend(dependencies),
                None => {
                    let holder = holders.get(next).filter(|holder| !holder.is_decided);
                    open.extend(holder.and_then(|holder| self.heads.get(&holder.session)));
                }
            }
        }
        false
    }
}

/// A command that waits for others.
pub(crate) struct Wait<'a> {
    claims: &'a Claims,
    key: CommandKey,
    session: SessionId,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = lock(&self.claims.waits);
        waits.dependencies.remove(&self.key);
        if waits.heads.get(&self.session) == Some(&self.key) {
            waits.heads.remove(&self.session);
        }
    }
}

/// An id that a creation holds until it is through.
pub(crate) struct Claim {
    claims: Arc<Claims>,
    key: CommandKey,
    session: SessionId,
}

impl Claim {
    /// Takes an id; none where another session has accepted a command under it.
    pub(crate) fn take(claims: &Arc<Claims>, key: CommandKey, session: SessionId) -> Option<Self> {
        claims.take(&key, session).then(|| Self { claims: Arc::clone(claims), key, session })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.release(&self.key, self.session);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn key(number: usize) -> CommandKey {
        (Principal::local(), CommandId::new(number.to_string()).unwrap())
    }

    fn session(number: usize) -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(number as u128))
    }

    #[test]
    fn a_cycle_is_found_across_sessions_and_through_lanes() {
        let claims = Claims::default();
        for number in 0..6 {
            claims.take(&key(number), session(number % 3));
        }
        let wait = |number: usize, others: &[usize]| {
            let others: Vec<CommandId> = others.iter().map(|other| key(*other).1).collect();
            claims.wait(&key(number), session(number % 3), &others)
        };
        // 3 is behind 0 in session 0, 4 behind 1 in session 1.
        let zero = wait(0, &[4]).unwrap();
        assert_eq!(wait(1, &[2, 3]).err(), Some(key(3).1));
        drop(zero);
        let _one = wait(1, &[2, 3]).unwrap();
        assert_eq!(wait(0, &[1]).err(), Some(key(1).1));
        assert_eq!(wait(2, &[5]).err(), Some(key(5).1), "it is behind in its own lane");
    }

    #[test]
    fn what_is_decided_waits_for_nobody() {
        let claims = Claims::default();
        for number in 0..2 {
            claims.take(&key(number), session(0));
        }
        let second_waits_for_first = || claims.wait(&key(1), session(0), &[key(0).1]).map(drop);
        assert_eq!(second_waits_for_first(), Err(key(0).1));
        claims.decide(&key(0), session(0));
        assert_eq!(second_waits_for_first(), Ok(()));
        claims.take(&key(0), session(0));
        assert_eq!(second_waits_for_first(), Err(key(0).1), "its outcome was lost");
    }

    proptest! {
        /// Each of six sessions has one command whose turn has come. A wait is refused just where granting it would leave some
        /// of them waiting for each other for ever.
        #[test]
        fn no_waits_that_are_granted_wait_for_each_other(
            wishes in prop::collection::vec((0_usize..6, prop::collection::vec(0_usize..6, 1..3)), 1..12),
        ) {
            let claims = Claims::default();
            prop_assert!((0..6).all(|number| claims.take(&key(number), session(number))));
            let mut granted: HashMap<usize, (Vec<usize>, Wait<'_>)> = HashMap::new();
            for (head, others) in wishes {
                if granted.contains_key(&head) {
                    continue;
                }
                let ids: Vec<CommandId> = others.iter().map(|other| key(*other).1).collect();
                let reaches = |from: usize| {
                    let mut reached = HashSet::from([from]);
                    for _ in 0..6 {
                        let next: Vec<usize> =
                            reached.iter().filter_map(|at| granted.get(at)).flat_map(|(to, _)| to.clone()).collect();
                        reached.extend(next);
                    }
                    reached.contains(&head)
                };
                let is_cycle = others.iter().any(|other| reaches(*other));
                match claims.wait(&key(head), session(head), &ids) {
                    Ok(wait) => {
                        prop_assert!(!is_cycle);
                        granted.insert(head, (others, wait));
                    }
                    Err(_) => prop_assert!(is_cycle),
                }
            }
        }
    }
}

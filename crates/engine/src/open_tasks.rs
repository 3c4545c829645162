//! What is kept in memory of the tasks that jobs gave to others: who follows them, who submits their commands, and which of those are to stop.
//!
//! It is only how the work is divided. What is known of a task is in the log; [`crate::delegations`] follows it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use mainstay_log::NewEvent;
use mainstay_model::{Delegation, Error, EventBody, Session, SessionId};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, mpsc, watch};

use crate::claims::CommandKey;
use crate::sync::Mutex;

/// A task, by the session of the job that gave it and the command that carries it out.
pub(crate) type TaskKey = (SessionId, CommandKey);

/// The tasks that are followed.
pub(crate) struct Delegations {
    /// Takes the sessions whose tasks have changed.
    changed: mpsc::UnboundedSender<SessionId>,
    /// Shared by those who submit the command of a task, and held alone by who finds that there is no such command.
    turns: Mutex<HashMap<CommandKey, Weak<RwLock<()>>>>,
    /// The commands that are to stop, and why: none of them begins any more.
    stopped: Mutex<HashMap<CommandKey, Error>>,
    /// The followers, each with what has it look again.
    followed: Mutex<HashMap<TaskKey, watch::Sender<()>>>,
}

/// Held while the command of a task is submitted. Then it is looked at whether there is one.
pub(crate) struct Submission {
    turn: Option<OwnedRwLockReadGuard<()>>,
    delegations: Arc<Delegations>,
    home: SessionId,
}

impl Drop for Submission {
    fn drop(&mut self) {
        self.turn = None;
        self.delegations.look_at(self.home);
    }
}

impl Delegations {
    /// Of an engine that hears of changed sessions by the receiver.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<SessionId>) {
        let (changed, changes) = mpsc::unbounded_channel();
        let (turns, stopped, followed) = Default::default();
        (Arc::new(Self { changed, turns, stopped, followed }), changes)
    }

    /// Has the tasks of a session looked at.
    pub(crate) fn look_at(&self, session: SessionId) {
        // Nobody looks once the engine is gone.
        self.changed.send(session).ok();
    }

    /// Has the tasks of a session looked at that were changed, and lets none begin that is to stop. Who follows one that is known no more hears of
    /// that, too.
    pub(crate) fn have_changed(&self, session: &Session) {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = followed.iter().filter(|((home, _), _)| *home == session.id);
        of_session.for_each(|(_, follower)| follower.send_replace(()));
        if session.delegations.is_empty() {
            return;
        }
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        for task in &session.delegations {
            if let Some(error) = parent_ended(task) {
                stopped.insert((task.principal.clone(), task.child.clone()), error);
            }
        }
        // A follower that stops just now takes its own away, and nothing of these.
        drop((stopped, followed));
        self.look_at(session.id);
    }

    /// Why a command does not begin any more: the job that gave it its task has come to its end.
    pub(crate) fn stopped(&self, key: &CommandKey) -> Option<Error> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Waits until the command of a task may be submitted.
    pub(crate) async fn submission(self: Arc<Self>, key: &CommandKey, home: SessionId) -> Submission {
        let turn = self.turn(key).read_owned().await;
        Submission { turn: Some(turn), delegations: self, home }
    }

    /// The turn to find that a task has no command; none while that is being submitted.
    pub(crate) fn nobody_submits(&self, key: &CommandKey) -> Option<OwnedRwLockWriteGuard<()>> {
        self.turn(key).try_write_owned().ok()
    }

    fn turn(&self, key: &CommandKey) -> Arc<RwLock<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::<RwLock<()>>::default();
        turns.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }

    /// What has a follower look again that begins with this; none where there is one, which looks again.
    pub(crate) fn begin_to_follow(&self, task: &TaskKey) -> Option<watch::Receiver<()>> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(follower) = followed.get(task) {
            follower.send_replace(());
            return None;
        }
        let (told, look_again) = watch::channel(());
        followed.insert(task.clone(), told);
        Some(look_again)
    }

    /// Ends the following of a task that is known no more; false where its follower is to look again, since it may have been given anew meanwhile.
    pub(crate) fn follow_no_more(&self, task: &TaskKey, look_again: &watch::Receiver<()>) -> bool {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if look_again.has_changed().unwrap_or_default() {
            return false;
        }
        followed.remove(task);
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).remove(&task.1);
        true
    }
}

/// Why the command of a task is to stop, where it is.
pub(crate) fn parent_ended(task: &Delegation) -> Option<Error> {
    let ending = task.stops?;
    Some(Error::ParentEnded { parent: task.parent.clone(), ending })
}

/// Whether any of these events changes what a session's tasks are, or which of them are to stop.
pub(crate) fn concern_tasks(events: &[NewEvent]) -> bool {
    events.iter().any(|NewEvent { body, .. }| match body {
        EventBody::JobDelegated { .. }
        | EventBody::CancelRequested { .. }
        | EventBody::EvalTimedOut { .. }
        | EventBody::JobDenied { .. } => true,
        body => body.job_end().is_some(),
    })
}

#[cfg(test)]
mod tests {
    use mainstay_model::{
        CommandId, Event, Metadata, Position, Principal, Seq, SessionKind, Source, Timestamp,
    };
    use uuid::Uuid;

    use super::*;

    fn task() -> TaskKey {
        let session = SessionId::from_uuid(Uuid::from_u128(1));
        (session, (Principal::local(), CommandId::new("child").unwrap()))
    }

    /// A session whose jobs have given no tasks that are known.
    fn session() -> Session {
        let body = EventBody::SessionCreated {
            kind: SessionKind::fsharp(),
            name: String::new(),
            working_directory: String::new(),
            project: None,
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
        };
        let source = Source::System;
        let metadata = Metadata { source, correlation: None, causation: None, environment: None };
        let (seq, position, at) = (Seq(1), Position(1), Timestamp::UNIX_EPOCH);
        Session::begin(&Event { session: task().0, seq, position, at, metadata, body }).unwrap()
    }

    #[test]
    fn who_follows_a_task_hears_that_its_job_has_ended_by_itself() {
        let (delegations, _changes) = Delegations::new();
        let look_again = delegations.begin_to_follow(&task()).unwrap();
        delegations.have_changed(&session());
        assert!(look_again.has_changed().unwrap());
    }

    #[test]
    fn who_follows_a_task_that_is_given_anew_goes_on() {
        let (delegations, _changes) = Delegations::new();
        let mut look_again = delegations.begin_to_follow(&task()).unwrap();
        assert!(delegations.begin_to_follow(&task()).is_none());
        assert!(!delegations.follow_no_more(&task(), &look_again));
        look_again.mark_unchanged();
        assert!(delegations.follow_no_more(&task(), &look_again));
        assert!(delegations.begin_to_follow(&task()).is_some());
    }
}

//! The tasks of the sessions in use: starting one when it is needed, and passing requests to it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use mainstay_model::{Error, Event, EventBody, PendingAsk, Seq, Session, SessionId};
use tokio::sync::{oneshot, watch};

use super::Engine;
use crate::claims::{CommandKey, key_of};
use crate::inherited::{Inherited, Spared};
use crate::lane::Queued;
use crate::session::{Ending, Entry, Request, SessionHandle, spawn};
use crate::sync::MutexGuard;

/// The tasks of the sessions in use.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) handles: HashMap<SessionId, Entry>,
    pub(super) stopping: bool,
    /// Whether runners are let go: then nobody is answered any more. Clients lose their connections, and ask the next daemon.
    pub(super) letting_go: bool,
}

/// What holds a session's claim on a command.
pub(crate) enum Holding {
    /// Its task, which shows this of it.
    Task(watch::Receiver<Arc<Session>>),
    /// The creation of the session.
    Creation,
    /// Nothing does any more.
    Nothing,
}

/// What a session's task is going to answer.
pub(super) struct PendingAnswer<T> {
    answer: oneshot::Receiver<T>,
    ending: Ending,
}

impl<T> PendingAnswer<T> {
    /// The answer, or why the task ended without one.
    pub(super) async fn answered(self, engine: &Engine) -> Result<T, Error> {
        match self.answer.await {
            Ok(answer) => Ok(answer),
            Err(_) => {
                engine.unless_letting_go().await;
                Err(engine.gone(&self.ending))
            }
        }
    }
}

impl Engine {
    /// How many sessions have a task: those that are not idle, or in which something waits.
    pub fn sessions_in_use(&self) -> usize {
        self.lock().handles.values().filter(|entry| entry.upgrade().is_some()).count()
    }

    /// Has a session's task serve a request, bringing the task up where it is not.
    pub(crate) async fn request<T>(
        &self,
        session: SessionId,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, Error> {
        self.hand_over(session, request).await?.answered(self).await
    }

    /// Gives a session's task a request, bringing the task up where it is not. What comes is what it answers.
    pub(super) async fn hand_over<T>(
        &self,
        session: SessionId,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<PendingAnswer<T>, Error> {
        let handle = self.handle(session).await?;
        let (reply, answer) = oneshot::channel();
        let ending = handle.ending();
        if handle.send(request(reply)).await {
            Ok(PendingAnswer { answer, ending })
        } else {
            self.unless_letting_go().await;
            Err(self.gone(&ending))
        }
    }

    /// Does what takes ownership in the store, unless the daemon goes down: then its lease may have been given up.
    ///
    /// # Errors
    /// [`Error::DaemonStopping`].
    pub(crate) fn unless_stopping<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        let tasks = self.lock();
        if tasks.stopping { Err(Error::DaemonStopping) } else { Ok(work()) }
    }

    /// Why a session's task does not answer.
    pub(crate) fn gone(&self, ending: &Ending) -> Error {
        if self.lock().stopping {
            return Error::DaemonStopping;
        }
        let failed = || "the session's task ended; see the daemon's log".to_owned();
        ending.reason().unwrap_or_else(|| Error::StoreFailed { reason: failed() })
    }

    /// Waits for ever where runners are let go ([`Engine::let_go`]): nobody is answered then.
    pub async fn unless_letting_go(&self) {
        let is_letting_go = self.lock().letting_go;
        if is_letting_go {
            std::future::pending().await
        }
    }

    pub(crate) async fn handle(&self, session: SessionId) -> Result<SessionHandle, Error> {
        self.unless_letting_go().await;
        if let Some(handle) = self.live_handle(session)? {
            return Ok(handle);
        }
        let _turn = self.activations.begin(session).await;
        if let Some(handle) = self.live_handle(session)? {
            return Ok(handle);
        }
        let epoch = self.shared.log.claim(session).await?;
        let stored = self.stored(session).await?;
        let answered = self.answered_elsewhere(&stored).await?;
        let lane = self.waiting_in(&stored).await?;
        let prompts = self.prompts_in(&stored).await?;
        let adopted = self.adopt(&stored, epoch).await?;
        let mut tasks = self.lock();
        if tasks.stopping {
            return Err(Error::DaemonStopping);
        }
        let (handle, entry) =
            spawn(Arc::clone(&self.shared), stored, epoch, Inherited { lane, answered, prompts, adopted });
        tasks.handles.retain(|_, handle| handle.upgrade().is_some());
        tasks.handles.insert(session, entry);
        Ok(handle)
    }

    /// What holds a session's claim on a command. Where no task does that the log has the command for, the claim is given up: the append that was
    /// to store it has failed.
    pub(crate) async fn look_into_claim(
        &self,
        session: SessionId,
        key: &CommandKey,
        is_stored: impl FnOnce(&Session) -> bool,
    ) -> Result<Holding, Error> {
        let turn = self.activations.begin(session).await;
        if let Some(handle) = self.live_handle(session)? {
            return Ok(Holding::Task(handle.visible));
        }
        if self.shared.log.session(session).await?.is_none() {
            return Ok(Holding::Creation);
        }
        // What a task before this had on its way to the log is refused from here on.
        self.unless_stopping(|| self.shared.log.claim(session))?.await?;
        if is_stored(&self.stored(session).await?) {
            drop(turn);
            return Ok(Holding::Task(self.handle(session).await?.visible));
        }
        self.shared.single_process.claims.release(key, session);
        Ok(Holding::Nothing)
    }

    /// The sessions that go on with runners which had outlived their daemon.
    pub fn adopted_sessions(&self) -> HashSet<SessionId> {
        let tasks = self.lock();
        tasks
            .handles
            .iter()
            .filter(|(_, entry)| entry.spared != Spared::Nothing)
            .map(|(session, _)| *session)
            .collect()
    }

    /// Whether a session goes on with the job that ran in a runner which had outlived its daemon.
    pub(super) fn has_kept_job(&self, session: SessionId) -> bool {
        self.lock().handles.get(&session).is_some_and(|entry| entry.spared == Spared::RunnerAndJob)
    }

    /// Claims what a session has accepted and not answered.
    pub(super) fn claim_accepted(&self, session: &Session) {
        let running = session.running().map(|running| (running.source.principal(), running.command.clone()));
        let waiting = session.lane.iter().map(|waiting| (waiting.principal.clone(), waiting.command.clone()));
        let asking = session.asks.iter().filter_map(PendingAsk::identity).map(|identity| key_of(&identity));
        for key in running.into_iter().chain(waiting).chain(asking) {
            self.shared.single_process.claims.take(&key, session.id);
        }
    }

    /// The commands that wait for their turn, as their events have them.
    async fn waiting_in(&self, session: &Session) -> Result<Vec<Queued>, Error> {
        let mut lane = Vec::with_capacity(session.lane.len());
        for waiting in &session.lane {
            let before = Seq(waiting.queued.0.saturating_sub(1));
            let event = self.shared.log.events(session.id, before, 1).await?.pop();
            if let Some(Event { metadata, body: EventBody::CommandQueued(queued), .. }) = event {
                lane.push(Queued::new(metadata.source, *queued));
            }
        }
        Ok(lane)
    }

    /// The command of a job that was cut off, where the log has an outcome under its id already.
    async fn answered_elsewhere(&self, session: &Session) -> Result<Option<CommandKey>, Error> {
        let Some(running) = session.running() else { return Ok(None) };
        let key = (running.source.principal(), running.command.clone());
        let outcome = self.shared.log.outcome(&key.0, &key.1).await?;
        Ok(outcome.map(|_| key))
    }

    /// A session as the log has it now, where that is known without a look into it.
    pub(crate) fn known_as_stored(&self, session: SessionId) -> Option<Arc<Session>> {
        // Another daemon may have taken the session over where that is possible.
        let entry_of = |tasks: &Tasks| tasks.handles.get(&session).and_then(Entry::as_stored);
        self.shared.lease.is_for_good().then(|| entry_of(&self.lock())).flatten()
    }

    /// A session as committed, where its task has it at hand. It is never older than any answer that was given.
    pub(super) fn committed(&self, session: SessionId) -> Option<Arc<Session>> {
        let tasks = self.lock();
        let handle = tasks.handles.get(&session)?.upgrade()?;
        Some(Arc::clone(&handle.visible.borrow()))
    }

    /// The way to a session's task, where there is one. A daemon that goes down begins no other; those that are there are asked
    /// until the end, and know themselves what may still be done.
    pub(super) fn live_handle(&self, session: SessionId) -> Result<Option<SessionHandle>, Error> {
        let tasks = self.lock();
        match tasks.handles.get(&session).and_then(Entry::upgrade) {
            Some(handle) => Ok(Some(handle)),
            None if tasks.stopping => Err(Error::DaemonStopping),
            None => Ok(None),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

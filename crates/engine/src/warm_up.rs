//! Bringing a worker up: wait out the back-off, start it, run again what defined the session, then pass on what it says.

mod application;
mod last_values;
mod notices;
mod reload;
mod replay;
mod replay_list;
mod restore;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_log::Log;
use mainstay_model::reload::FullReplayReason;
use mainstay_model::{
    AgentNotice, Compaction, Divergence, Error, Limits, Notice, NoticeNumber, Reload, Restored, RunnerId,
    RunnerInfo, RunnerNotice, Seq, Session, WorkerExit,
};
use mainstay_runner::{Runner, RunnerFactory, RunnerSpec, StartObserver, StartedRunner, WarmUpProgress};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::breakers::Breakers;
use crate::context::compaction_of;
use crate::sync::time::sleep;
use crate::watch::Watch;
use crate::worker::Life;

pub(crate) use self::last_values::LastValues;
pub(crate) use self::notices::Notices;
pub(crate) use self::reload::ReloadRequest;
use self::replay::{ReplayFailed, Replayed};
pub(crate) use self::replay_list::{is_no_reset, what_to_replay};

/// A worker to bring up.
pub(crate) struct WarmUp {
    pub(crate) factory: Arc<dyn RunnerFactory>,
    pub(crate) spec: RunnerSpec,
    /// Hears how far the start is.
    pub(crate) observer: StartObserver,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) limits: Limits,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// The circuit breakers that decide whether a worker may start.
    pub(crate) breakers: Arc<Breakers>,
    /// How long to wait first.
    pub(crate) after: Duration,
    /// The present state of the files that its code depends on.
    pub(crate) watch: Watch,
    /// What its submissions gave last.
    pub(crate) given: LastValues,
    /// Why the worker that was there could not run again what depends on what had changed.
    pub(crate) because: Option<FullReplayReason>,
    /// Replay when all up to this event is in the log: what ended just before the worker was lost is of it.
    pub(crate) up_to: Seq,
    /// The session as committed.
    pub(crate) committed: watch::Receiver<Arc<Session>>,
    /// Where to say what happens.
    pub(crate) tell: mpsc::Sender<FromWorker>,
}

/// What a session's task hears from its worker.
pub(crate) enum FromWorker {
    /// The runner of this id accepts code, though its definitions are not there yet.
    Started(RunnerId, Runner),
    /// It is so far.
    WarmsUp(WarmUpProgress),
    /// A new worker has to run all again, because of this.
    CannotReload(FullReplayReason),
    /// Something happened to the worker.
    Notice(Notice),
    /// This follows from the worker's notices up to the one of this number.
    Told(NoticeNumber, Notice),
}

impl WarmUp {
    /// Brings the worker up and passes on what it says, until it is gone. Aborting the task undoes a start; what was started has a life
    /// that others end.
    pub(crate) async fn run(mut self, reloads: mpsc::UnboundedReceiver<ReloadRequest>, life: Arc<Life>) {
        sleep(self.after).await;
        let began = Instant::now();
        let (id, runner, mut notices) = match self.start().await {
            Ok(StartedRunner { id, runner, next, notices }) => {
                (id, runner, Notices::after(next.previous(), next, notices))
            }
            Err(Error::WorkerFailed { reason }) => {
                tracing::warn!(session = %self.spec.session, reason, "a worker did not come up");
                return self.tell(Notice::StartFailed { reason }).await;
            }
            Err(error) => return self.tell(Notice::WarmUpFailed { error }).await,
        };
        // At once: what is dropped with this task must be known to whoever may end the worker.
        if !life.has_started(&runner) {
            return;
        }
        drop(life);
        if self.tell.send(FromWorker::Started(id, runner.clone())).await.is_err() {
            return;
        }
        let replayed = match &runner {
            Runner::Kernel(kernel) => self.replay(kernel.as_ref(), &mut notices).await,
            // It was given its conversation.
            Runner::Agent(_) => Ok(Replayed::default()),
        };
        match replayed {
            Ok(Replayed { count, diverged, changes, references, restored, .. }) => {
                let mut info = runner.process().info();
                info.references = references.or(info.references);
                let because = self.because.as_ref().map(ToString::to_string);
                let reload = Reload { of: count, because, changes, ..Reload::default() };
                let warmed_up = warmed_up(info, count, diverged, reload, restored, began);
                self.tell_of(notices.last(), warmed_up).await;
                drop(runner);
                self.pass_on(notices, reloads).await;
            }
            Err(failed) => self.tell_failure(failed).await,
        }
    }

    /// Passes on what a worker says that was up before, until it is gone.
    pub(crate) async fn go_on(self, notices: Notices, reloads: mpsc::UnboundedReceiver<ReloadRequest>) {
        self.pass_on(notices, reloads).await;
    }

    async fn tell_failure(&self, failed: ReplayFailed) {
        self.tell(match failed {
            ReplayFailed::Exited { exit, last_words } => {
                Notice::Runner(RunnerNotice::Exited { exit, last_words })
            }
            ReplayFailed::Error(error) => Notice::WarmUpFailed { error },
        })
        .await;
    }

    /// The session once all is in the log that came before this start.
    async fn committed_session(&self) -> Result<Arc<Session>, Error> {
        let is_there = |session: &Arc<Session>| session.last_seq >= self.up_to;
        self.committed_when(is_there).await
    }

    /// The session as committed, once it is as it is to be.
    async fn committed_when(&self, is_so: impl FnMut(&Arc<Session>) -> bool) -> Result<Arc<Session>, Error> {
        let mut committed = self.committed.clone();
        let session = committed.wait_for(is_so).await.map(|session| Arc::clone(&session));
        // An append failed, and the session's task with it.
        session.map_err(|_| Error::WorkerFailed { reason: "the session's task ended".to_owned() })
    }

    /// Passes on what the runner says, until it is gone, and has it run again what depends on what has changed, where that is wanted.
    async fn pass_on(&self, mut notices: Notices, mut reloads: mpsc::UnboundedReceiver<ReloadRequest>) {
        let mut messages = self.committed.borrow().messages;
        loop {
            let notice = tokio::select! {
                notice = notices.next() => notice,
                Some(wanted) = reloads.recv() => match self.reload(wanted, &mut notices).await {
                    true => continue,
                    false => return,
                },
            };
            let Some((number, notice)) = notice else { break };
            let notice = match notice {
                RunnerNotice::Agent(AgentNotice::Compacted { summary, kept, metadata }) => {
                    match self.compaction(messages, summary, kept, metadata).await {
                        Ok(compaction) => Notice::Compacted(compaction),
                        Err(error) => {
                            tracing::warn!(session = %self.spec.session, %error, "a compaction is not kept");
                            continue;
                        }
                    }
                }
                RunnerNotice::Agent(AgentNotice::Message(message)) => {
                    messages += u64::from(!message.parts.is_empty());
                    Notice::Runner(RunnerNotice::Agent(AgentNotice::Message(message)))
                }
                notice @ (RunnerNotice::Agent(_)
                | RunnerNotice::Output { .. }
                | RunnerNotice::Display { .. }
                | RunnerNotice::Cleared { .. }
                | RunnerNotice::Comm { .. }
                | RunnerNotice::CommTaken { .. }
                | RunnerNotice::Asks { .. }
                | RunnerNotice::Application(_)
                | RunnerNotice::Checks { .. }
                | RunnerNotice::Finished { .. }
                | RunnerNotice::Built { .. }
                | RunnerNotice::Exited { .. }) => Notice::Runner(notice),
            };
            self.tell_of(number, notice).await;
        }
        // Once more than needed, unless the worker went without a word; what is told twice is heard once.
        self.tell(exited(WorkerExit::Unknown)).await;
    }

    /// What an agent's summary stands for: it is known once all that the agent had said is in the log.
    async fn compaction(
        &self,
        messages: u64,
        summary: String,
        kept: u64,
        metadata: BTreeMap<String, Value>,
    ) -> Result<Compaction, Error> {
        let session = self.committed_when(|session| session.messages >= messages).await?;
        compaction_of(self.log.as_ref(), &session, summary, kept, metadata).await
    }

    /// Tells what follows from the worker's notices up to this one.
    async fn tell_of(&self, up_to: NoticeNumber, notice: Notice) {
        self.tell.send(FromWorker::Told(up_to, notice)).await.ok();
    }

    async fn tell(&self, notice: Notice) {
        // The session's task may be gone; then nobody needs to know.
        self.tell.send(FromWorker::Notice(notice)).await.ok();
    }
}

pub(crate) fn warmed_up(
    runner: RunnerInfo,
    replayed: u32,
    diverged: Vec<Divergence>,
    reload: Reload,
    restored: Option<Box<Restored>>,
    began: Instant,
) -> Notice {
    Notice::WarmedUp { runner, replayed, diverged, reload: Box::new(reload), restored, took: began.elapsed() }
}

pub(crate) fn exited(exit: WorkerExit) -> Notice {
    Notice::Runner(RunnerNotice::Exited { exit, last_words: None })
}

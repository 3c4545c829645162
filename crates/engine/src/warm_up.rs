//! Bringing a worker up: wait out the back-off, start it, run again what defined the session, then pass on what it says.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_log::Log;
use mainstay_model::session::{ReplayItem, ReplayList};
use mainstay_model::{
    Error, JobEnding, JobId, Limits, Notice, RunnerInfo, RunnerNotice, Seq, SessionId, WorkerExit,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use uuid::Uuid;

use crate::runner::{Runner, RunnerFactory, RunnerSpec, StartedRunner, Submission};

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// A worker to bring up.
pub(crate) struct WarmUp {
    pub(crate) factory: Arc<dyn RunnerFactory>,
    pub(crate) spec: RunnerSpec,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) limits: Limits,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// How long to wait first.
    pub(crate) after: Duration,
    /// Replay what was requested after this event.
    pub(crate) definitions_since: Seq,
    /// Where to say what happens.
    pub(crate) tell: mpsc::Sender<FromWorker>,
}

/// What a session's task hears from its worker.
pub(crate) enum FromWorker {
    /// It accepts code, though its definitions are not there yet.
    Started(Arc<dyn Runner>),
    /// Something happened.
    Notice(Notice),
}

impl WarmUp {
    /// Brings the worker up and passes on what it says, until it is gone. Aborting the task kills the worker.
    pub(crate) async fn run(self) {
        tokio::time::sleep(self.after).await;
        let began = Instant::now();
        let StartedRunner { runner, mut notices } = match self.start().await {
            Ok(started) => started,
            Err(Error::WorkerFailed { reason }) => {
                tracing::warn!(session = %self.spec.session, reason, "a worker did not come up");
                return self.tell(Notice::StartFailed { reason }).await;
            }
            Err(error) => return self.tell(Notice::WarmUpFailed { error }).await,
        };
        if self.tell.send(FromWorker::Started(Arc::clone(&runner))).await.is_err() {
            return;
        }
        match self.replay(runner.as_ref(), &mut notices).await {
            Ok(Replayed { count, diverged }) => {
                self.tell(warmed_up(runner.info(), count, diverged, began)).await;
                drop(runner);
                while let Some(notice) = notices.recv().await {
                    self.tell(Notice::Runner(notice)).await;
                }
                // Once more than needed, unless the worker went without a word; what is told twice is heard once.
                self.tell(exited(WorkerExit::Unknown)).await;
            }
            Err(ReplayFailed::Exited(exit)) => self.tell(exited(exit)).await,
            Err(ReplayFailed::Error(error)) => self.tell(Notice::WarmUpFailed { error }).await,
        }
    }

    async fn start(&self) -> Result<StartedRunner, Error> {
        // The semaphore is never closed.
        let _permit = self.starts.acquire().await;
        let limit_ms = self.limits.worker_start_ms;
        timeout(Duration::from_millis(limit_ms), self.factory.start(self.spec.clone())).await.unwrap_or_else(
            |_| Err(Error::WorkerFailed { reason: format!("it was not ready within {limit_ms} ms") }),
        )
    }

    async fn replay(
        &self,
        runner: &dyn Runner,
        notices: &mut mpsc::Receiver<RunnerNotice>,
    ) -> Result<Replayed, ReplayFailed> {
        let items = replay_items(self.log.as_ref(), self.spec.session, self.definitions_since).await?;
        let limit_ms = self.limits.replay_ms;
        timeout(Duration::from_millis(limit_ms), replay_all(runner, notices, items)).await.unwrap_or_else(
            |_| {
                let reason = format!("replaying the session took longer than {limit_ms} ms");
                Err(ReplayFailed::Error(Error::WorkerFailed { reason }))
            },
        )
    }

    async fn tell(&self, notice: Notice) {
        // The session's task may be gone; then nobody needs to know.
        self.tell.send(FromWorker::Notice(notice)).await.ok();
    }
}

fn warmed_up(runner: RunnerInfo, replayed: u32, diverged: Vec<Seq>, began: Instant) -> Notice {
    Notice::WarmedUp { runner, replayed, diverged, took: began.elapsed() }
}

pub(crate) fn exited(exit: WorkerExit) -> Notice {
    Notice::Runner(RunnerNotice::Exited { exit })
}

struct Replayed {
    count: u32,
    diverged: Vec<Seq>,
}

enum ReplayFailed {
    Exited(WorkerExit),
    Error(Error),
}

impl From<Error> for ReplayFailed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What must run again, read page by page so that a long session costs no memory for its output.
async fn replay_items(log: &dyn Log, session: SessionId, since: Seq) -> Result<VecDeque<ReplayItem>, Error> {
    let mut list = ReplayList::default();
    let mut after = since;
    loop {
        let page = log.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(list.into_items().into()) };
        after = last.seq;
        page.into_iter().for_each(|event| list.push(event));
    }
}

/// Runs the submissions one after another. What they print was recorded the first time and is dropped here.
async fn replay_all(
    runner: &dyn Runner,
    notices: &mut mpsc::Receiver<RunnerNotice>,
    items: VecDeque<ReplayItem>,
) -> Result<Replayed, ReplayFailed> {
    let mut replayed = Replayed { count: 0, diverged: Vec::new() };
    for item in items {
        let job = JobId::from_uuid(Uuid::now_v7());
        runner.run(Submission { job, code: item.code, file: item.file }).await;
        let succeeded = loop {
            match notices.recv().await {
                Some(RunnerNotice::Output { .. }) => {}
                Some(RunnerNotice::Finished { job: finished, report }) if finished == job => {
                    break report.ending == JobEnding::Completed;
                }
                Some(RunnerNotice::Finished { .. }) => {}
                Some(RunnerNotice::Exited { exit }) => return Err(ReplayFailed::Exited(exit)),
                None => return Err(ReplayFailed::Exited(WorkerExit::Unknown)),
            }
        };
        replayed.count += 1;
        if succeeded != item.succeeded {
            replayed.diverged.push(item.requested);
        }
    }
    Ok(replayed)
}

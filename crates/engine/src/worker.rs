//! A session's worker as its task holds it: being brought up, then up and taking orders.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use mainstay_model::{AskId, Error, JobId, JobSpec, QueuedPrompt, Reload, Seq, Session, WorkerExit};
use tokio::sync::{mpsc, watch};

use crate::sync::task::{AbortHandle, spawn};
use crate::sync::time::timeout;
use crate::sync::{Mutex, MutexGuard};
use crate::warm_up::{FromWorker, Notices, ReloadRequest, WarmUp, exited, warmed_up};
use crate::warm_up_progress::WarmingUp;
use mainstay_runner::{AskAnswer, Kernel, Runner, Submission};

/// A worker. Dropping it kills it, unless it outlives its daemon: then it is let go, and whoever has the session next goes on with
/// it. A worker that a decision ends is killed ([`Worker::kill`]).
pub(crate) struct Worker {
    task: AbortHandle,
    /// The runner from its start on, also before it accepts code.
    life: Arc<Life>,
    up: Option<ReadyWorker>,
    /// Where the task that hears it takes what it is to run again.
    reloads: mpsc::UnboundedSender<ReloadRequest>,
    /// While it is given what the session is to have.
    pub(crate) warming_up: Option<WarmingUp>,
}

/// A worker that accepts code.
struct ReadyWorker {
    runner: Runner,
    orders: mpsc::UnboundedSender<Order>,
    /// The task that passes the orders on.
    delivery: AbortHandle,
}

/// A runner's life, between the task that starts it and whoever may end it meanwhile.
#[derive(Default)]
pub(crate) struct Life(Mutex<LifeStage>);

/// How far a runner has come.
#[derive(Default)]
enum LifeStage {
    /// It is not there yet.
    #[default]
    Starting,
    /// The worker was just started.
    Started(Runner),
    /// It was killed, or is to be when it is there.
    Killed,
}

impl Life {
    /// Of a runner that is there.
    fn of(runner: Runner) -> Self {
        Self(Mutex::new(LifeStage::Started(runner)))
    }

    /// Notes that the runner was started; says whether it may live. Where it was to be killed meanwhile, it is.
    pub(crate) fn has_started(&self, runner: &Runner) -> bool {
        let mut stage = self.stage();
        match *stage {
            LifeStage::Killed => {
                runner.process().kill();
                false
            }
            LifeStage::Starting | LifeStage::Started(_) => {
                *stage = LifeStage::Started(runner.clone());
                true
            }
        }
    }

    fn kill(&self) {
        if let LifeStage::Started(runner) = std::mem::replace(&mut *self.stage(), LifeStage::Killed) {
            runner.process().kill();
        }
    }

    /// Ends the runner where nobody could go on with it.
    fn let_go(&self) {
        if let LifeStage::Started(runner) = &*self.stage()
            && runner.process().outlives_daemon()
        {
            return;
        }
        self.kill();
    }

    fn stage(&self) -> MutexGuard<'_, LifeStage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a worker is told to do.
pub(crate) enum Order {
    /// Run the submitted code: in a runner that outlives this daemon once the session as committed has this event.
    Run {
        /// The code that was submitted.
        submission: Submission,
        /// The event that accepted it.
        requested: Seq,
    },
    /// Do something, once the session as committed has this event.
    Work {
        /// The job that does the work.
        job: JobId,
        /// The work for the agent.
        work: JobSpec,
        /// Whether a grant bounds it.
        is_bounded: bool,
        /// The event that accepted it.
        requested: Seq,
    },
    /// Hear something while working: in a runner that outlives this daemon once the session as committed has this event.
    Steer {
        /// What the agent is to hear.
        queued: QueuedPrompt,
        /// The event that queued it.
        requested: Seq,
    },
    /// Hold back what tools are about to do, until an ask is answered: in a runner that outlives this daemon once the session as committed has
    /// this event.
    Pause {
        /// The job that pauses.
        job: JobId,
        /// The ask how it is to go on.
        ask: AskId,
        /// The event that raised it.
        raised: Seq,
    },
    /// Take the answer to an ask, or hear why there is none: in a runner that outlives this daemon once the session as committed has
    /// this event.
    Answer {
        /// The answer, or why there is none.
        answer: AskAnswer,
        /// The event that ended the ask; for one that was never raised the newest before.
        ended: Seq,
    },
    /// Interrupt the job that runs: in a runner that outlives this daemon once the session as committed has this event.
    Interrupt {
        /// The event that asked for its end.
        wanted: Seq,
    },
}

impl Worker {
    /// Begins to bring a worker up.
    pub(crate) fn start(warm_up: WarmUp) -> Self {
        let (reloads, wanted) = mpsc::unbounded_channel();
        let life = Arc::<Life>::default();
        let task = spawn(warm_up.run(wanted, Arc::clone(&life))).abort_handle();
        Self { task, life, up: None, reloads, warming_up: None }
    }

    /// Goes on with a worker that is up.
    pub(crate) fn adopt(warm_up: WarmUp, runner: Runner, notices: Notices) -> Self {
        let (reloads, wanted) = mpsc::unbounded_channel();
        Self {
            task: spawn(warm_up.go_on(notices, wanted)).abort_handle(),
            life: Arc::new(Life::of(runner)),
            up: None,
            reloads,
            warming_up: None,
        }
    }

    /// Has it run again what depends on what has changed; says whether there is somebody to see to that.
    pub(crate) fn reload(&self, wanted: ReloadRequest) -> bool {
        self.reloads.send(wanted).is_ok()
    }

    /// Notes that it accepts code now, and is to take note of an interrupt within `grace`.
    pub(crate) fn is_up(
        &mut self,
        runner: Runner,
        grace: Duration,
        committed: watch::Receiver<Arc<Session>>,
    ) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let delivery = spawn(deliver(runner.clone(), grace, committed, ordered)).abort_handle();
        self.up = Some(ReadyWorker { runner, orders, delivery });
    }

    /// Ends it with all that it started, also where it is only being started.
    pub(crate) fn kill(self) {
        self.life.kill();
    }

    /// The worker itself, once it accepts code.
    pub(crate) fn runner(&self) -> Option<&Runner> {
        self.up.as_ref().map(|up| &up.runner)
    }

    /// Passes an order on without waiting for it; says whether there is a worker to take it.
    pub(crate) fn order(&self, order: Order) -> bool {
        self.up.as_ref().is_some_and(|up| up.orders.send(order).is_ok())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(up) = &self.up
            && up.runner.process().outlives_daemon()
        {
            // Whoever has it next gives what it was not given.
            up.delivery.abort();
        }
        self.life.let_go();
    }
}

/// One order after another: an interrupt neither overtakes the job it is meant for nor lags behind into the next.
async fn deliver(
    runner: Runner,
    grace: Duration,
    committed: watch::Receiver<Arc<Session>>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    while let Some(order) = orders.recv().await {
        match (&runner, order) {
            (Runner::Kernel(kernel), Order::Run { submission, requested }) => {
                // Where the worker is lost with this daemon, so is what it did for code of which the log knows nothing.
                if !kernel.outlives_daemon() || has(&committed, requested).await {
                    kernel.run(submission).await;
                }
            }
            (runner, Order::Work { job, work, is_bounded, requested }) => {
                // What it does reaches beyond the session: that it was asked to must not get lost.
                if has(&committed, requested).await {
                    do_work(runner, job, work, is_bounded).await;
                }
            }
            (Runner::Agent(agent), Order::Steer { queued, requested }) => {
                if !agent.outlives_daemon() || has(&committed, requested).await {
                    agent.steer(queued, requested).await;
                }
            }
            (Runner::Agent(agent), Order::Pause { job, ask, raised }) => {
                if !agent.outlives_daemon() || has(&committed, raised).await {
                    agent.pause(job, ask).await;
                }
            }
            (Runner::Kernel(_), Order::Steer { .. } | Order::Pause { .. })
            | (Runner::Agent(_), Order::Run { .. }) => not_of_its_kind(),
            (runner, Order::Answer { answer, ended }) => {
                // Else one that is adopted would know an answer of which the log knows nothing, or a secret that nobody masks.
                if !runner.process().outlives_daemon() || has(&committed, ended).await {
                    runner.process().answer(answer).await;
                }
            }
            (runner, Order::Interrupt { wanted }) => {
                // Else a job would have been interrupted for whoever adopts the runner, and nobody have asked for that.
                if !runner.process().outlives_daemon() || has(&committed, wanted).await {
                    // A job that still runs then costs the worker its life; one that has ended must not block the next.
                    timeout(grace, runner.process().interrupt()).await.unwrap_or_default();
                }
            }
        }
    }
}

/// Waits until the session as committed has an event; says whether it ever will.
async fn has(committed: &watch::Receiver<Arc<Session>>, event: Seq) -> bool {
    committed.clone().wait_for(|session| session.last_seq >= event).await.is_ok()
}

async fn do_work(runner: &Runner, job: JobId, work: JobSpec, is_bounded: bool) {
    match (runner, work) {
        (Runner::Kernel(kernel), JobSpec::Build | JobSpec::Rebuild) => kernel.build(job).await,
        (Runner::Kernel(kernel), JobSpec::Comm(message)) => kernel.take_comm(job, *message).await,
        (Runner::Agent(_), JobSpec::Build | JobSpec::Rebuild | JobSpec::Comm(_))
        | (
            Runner::Kernel(_),
            JobSpec::Turn { .. } | JobSpec::Compaction { .. } | JobSpec::Shell { .. } | JobSpec::Setting(_),
        ) => not_of_its_kind(),
        (
            Runner::Agent(agent),
            work @ (JobSpec::Turn { .. }
            | JobSpec::Compaction { .. }
            | JobSpec::Shell { .. }
            | JobSpec::Setting(_)),
        ) => agent.work(job, work, is_bounded).await,
    }
}

fn not_of_its_kind() {
    tracing::error!("a runner was told what is not of its kind");
}

/// Resets a worker, and tells the session's task what came of it. One that does not reset counts as lost.
pub(crate) async fn reset(kernel: Arc<dyn Kernel>, limit: Duration, tell: mpsc::Sender<FromWorker>) {
    let began = Instant::now();
    let reset = timeout(limit, kernel.reset())
        .await
        .unwrap_or(Err(Error::Timeout { limit_ms: limit.as_millis() as u64 }));
    let notice = match reset {
        Ok(runner) => warmed_up(runner, 0, Vec::new(), Reload::default(), None, began),
        Err(error) => {
            tracing::warn!(%error, "a worker did not reset");
            exited(WorkerExit::Unknown)
        }
    };
    // The session's task may have dropped this worker meanwhile.
    tell.send(FromWorker::Notice(notice)).await.ok();
}

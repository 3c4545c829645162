//! Giving the runner what it was told, one after another, and asking it, beside the host.

use std::time::Duration;

use mainstay_model::{AskId, CommMessage, Error, JobId, JobSpec, QueuedPrompt, Seq};
use mainstay_runner::{AskAnswer, Runner, Submission, Upcoming};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::messages::{ShimAnswer, ShimQuestion};

/// How long a runner may take to note an interrupt. One that still runs its job after the daemon's grace is killed.
const INTERRUPT: Duration = Duration::from_secs(10);

/// What the runner is given.
pub(super) enum Order {
    Run(Submission),
    Expect(Vec<Upcoming>),
    Build(JobId),
    TakeComm(JobId, Box<CommMessage>),
    /// The flag says whether a grant bounds the job.
    Work(JobId, JobSpec, bool),
    Steer(QueuedPrompt, Seq),
    Pause(JobId, AskId),
    Answer(AskAnswer),
    Interrupt,
}

/// Gives the runner one order after another.
pub(super) async fn deliver(runner: Runner, mut orders: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        match (&runner, order) {
            (Runner::Kernel(kernel), Order::Run(submission)) => kernel.run(submission).await,
            (Runner::Kernel(kernel), Order::Expect(upcoming)) => kernel.expect(upcoming).await,
            (Runner::Kernel(kernel), Order::Build(job)) => kernel.build(job).await,
            (Runner::Kernel(kernel), Order::TakeComm(job, message)) => kernel.take_comm(job, *message).await,
            (Runner::Agent(agent), Order::Work(job, work, is_bounded)) => {
                agent.work(job, work, is_bounded).await;
            }
            (Runner::Agent(agent), Order::Steer(queued, requested)) => agent.steer(queued, requested).await,
            (Runner::Agent(agent), Order::Pause(job, ask)) => agent.pause(job, ask).await,
            (runner, Order::Answer(answer)) => runner.process().answer(answer).await,
            (runner, Order::Interrupt) => {
                if timeout(INTERRUPT, runner.process().interrupt()).await.is_err() {
                    tracing::warn!("the runner takes no note of an interrupt");
                }
            }
            (Runner::Kernel(_), Order::Work(..) | Order::Steer(..) | Order::Pause(..))
            | (Runner::Agent(_), Order::Run(_) | Order::Expect(_) | Order::Build(_) | Order::TakeComm(..)) => {
                tracing::error!("the runner was given what is not of its kind");
            }
        }
    }
}

/// What the runner answers to a question.
pub(super) async fn runner_answer(runner: &Runner, question: ShimQuestion) -> Result<ShimAnswer, Error> {
    match (runner, question) {
        (Runner::Kernel(kernel), ShimQuestion::Describe { codes }) => {
            kernel.describe(codes).await.map(ShimAnswer::Described)
        }
        (Runner::Kernel(kernel), ShimQuestion::Swap { files }) => {
            kernel.swap(files).await.map(ShimAnswer::Swapped)
        }
        (Runner::Kernel(kernel), ShimQuestion::Reset) => kernel.reset().await.map(ShimAnswer::Reset),
        (Runner::Kernel(kernel), ShimQuestion::Snapshot) => kernel.snapshot().await.map(ShimAnswer::Snapshot),
        (Runner::Kernel(kernel), ShimQuestion::ForgetSnapshot) => {
            kernel.forget_snapshot().await.map(|()| ShimAnswer::SnapshotForgotten)
        }
        (Runner::Kernel(kernel), ShimQuestion::Restore) => {
            kernel.restore().await.map(|()| ShimAnswer::Restored)
        }
        (Runner::Kernel(kernel), ShimQuestion::Check { code, file }) => {
            kernel.check(code, file).await.map(ShimAnswer::Checked)
        }
        (Runner::Kernel(kernel), ShimQuestion::Complete { code, cursor }) => {
            kernel.complete(code, cursor).await.map(ShimAnswer::Completed)
        }
        (Runner::Kernel(kernel), ShimQuestion::Query { query }) => {
            kernel.query(query).await.map(ShimAnswer::Queried)
        }
        (Runner::Agent(agent), ShimQuestion::Tell { question }) => {
            agent.tell(question).await.map(ShimAnswer::Told)
        }
        (Runner::Kernel(_), ShimQuestion::Tell { .. }) | (Runner::Agent(_), _) => {
            Err(Error::WorkerFailed { reason: "it was asked what is not of its kind".to_owned() })
        }
    }
}

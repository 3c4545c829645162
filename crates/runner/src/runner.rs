//! What kernels and agents have in common.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::{AskId, Error, NoticeNumber, RunnerInfo, Seq};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::kernel::Kernel;

/// What does one session's work, one job at a time. Dropping the last handle kills it, unless it outlives its daemon: then it is let go.
#[derive(Clone)]
pub enum Runner {
    /// A kernel, which runs code.
    Kernel(Arc<dyn Kernel>),
    /// It is spoken to.
    Agent(Arc<dyn Agent>),
}

impl Runner {
    /// What both have in common.
    pub fn process(&self) -> &dyn Process {
        match self {
            Self::Kernel(kernel) => kernel.as_ref(),
            Self::Agent(agent) => agent.as_ref(),
        }
    }

    /// What is spoken to, where it is that.
    pub fn agent(&self) -> Option<&Arc<dyn Agent>> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Kernel(_) => None,
        }
    }

    /// What runs code, where it does.
    pub fn kernel(&self) -> Option<&Arc<dyn Kernel>> {
        match self {
            Self::Kernel(kernel) => Some(kernel),
            Self::Agent(_) => None,
        }
    }
}

/// A process that does a session's work.
#[async_trait]
pub trait Process: Send + Sync {
    /// Describes the runner's process to clients.
    fn info(&self) -> RunnerInfo;

    /// Passes on the answer to an ask of the running job, or why there is none. Done once the worker has it.
    async fn answer(&self, answer: AskAnswer);

    /// Asks the running job to stop. Done once the worker has been told, so that no job after this one is meant; whether
    /// the job stops shows in its end.
    async fn interrupt(&self);

    /// Acknowledges all notices up to this one: what is kept of them is durable, and with it the session up to `stored`. It comes after
    /// the commit, in order, and not for each notice. A runner that must not lose a notice keeps it until then, and a tool whose effects nobody can undo acts only
    /// once the notice of its call is acknowledged. It must not wait for anything.
    fn acknowledge(&self, _up_to: NoticeNumber, _stored: Seq) {}

    /// Whether it lives on when the daemon is gone, and can be adopted ([`RunnerFactory::adopt`](crate::RunnerFactory::adopt)).
    /// Such a runner is given a job only once it is durable that the job was accepted: what it runs, the log knows.
    fn outlives_daemon(&self) -> bool {
        false
    }

    /// Ends the process and all that it started, at once.
    fn kill(&self);

    /// What the process uses now; none where that cannot be told.
    fn usage(&self) -> Option<ResourceUsage>;
}

/// What an ask was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskAnswer {
    /// The ask that is answered.
    pub ask: AskId,
    /// The answer, or why there is none.
    pub answer: Result<Value, Error>,
    /// Whether nobody may see the answer: it is stored nowhere.
    pub is_secret: bool,
}

impl AskAnswer {
    /// An answer that everybody may see who sees the session.
    pub const fn open(ask: AskId, answer: Result<Value, Error>) -> Self {
        Self { ask, answer, is_secret: false }
    }
}

/// What a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in milliseconds.
    pub cpu_ms: u64,
}

//! Agents: runners that are spoken to.

use async_trait::async_trait;
use mainstay_model::{AskId, Error, JobId, JobSpec, QueuedPrompt, Seq};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runner::Process;

/// An agent that is spoken to.
#[async_trait]
pub trait Agent: Process {
    /// Does something. Done once the agent has it; what it says, and its end, come as notices. Where a grant bounds the job, each thing that its
    /// tools are about to do is asked about first, by [`RunnerNotice::Checks`](mainstay_model::RunnerNotice::Checks).
    async fn work(&self, job: JobId, work: JobSpec, is_bounded: bool);

    /// Says something to it while it works. Done once the agent has it; whether it has heard it shows in what it has still to hear.
    /// `requested` is the event that queued it, and names it: of what comes twice, the first is heeded.
    async fn steer(&self, queued: QueuedPrompt, requested: Seq);

    /// Holds back what the tools of a job are about to do until `ask` is answered, also where nothing bounds the job. A text that is not empty is
    /// said to the agent, and what was held back is refused; an empty one lets it go on. A job that has ended is not meant any more.
    async fn pause(&self, job: JobId, ask: AskId);

    /// Whether it pauses where it is told to: one that an earlier version of Mainstay started does not.
    fn pauses(&self) -> bool {
        true
    }

    /// Tells what it knows, also while it works.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`], with what it says itself where it refuses.
    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error>;
}

/// What an agent may be asked about itself. It answers in its own words: each of pi's answers is that of its RPC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentQuestion {
    /// The models it may use.
    Models,
    /// What can be prompted with a slash: commands of extensions, templates, skills.
    Commands,
    /// Asks for the agent's state.
    State,
    /// What its conversation came to.
    Statistics,
}

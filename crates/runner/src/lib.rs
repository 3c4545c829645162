//! The contract between the engine and what does a session's work: a kernel, whatever its language, or an agent, whatever program that is.
//!
//! [`RunnerFactory`] starts a [`Runner`]: a [`Kernel`], which runs code, or an [`Agent`], which is spoken to. What a runner says comes back as
//! [`mainstay_model::RunnerNotice`]s, in order. They are numbered, and acknowledged once they are durable
//! ([`Process::acknowledge`]). So a runner that outlives its daemon can be taken over by the next ([`RunnerFactory::adopt`]), and each
//! notice is stored once.

pub mod agent;
pub mod environment;
pub mod factory;
pub mod kernel;
pub mod progress;
pub mod query;
pub mod runner;

pub use agent::{Agent, AgentQuestion};
pub use environment::Environment;
pub use factory::{
    Conversation, FoundRunner, GivenToRunner, RunnerFactory, RunnerSpec, StartLines, StartObserver,
    StartedRunner, StoredProgress,
};
pub use kernel::{CodeText, CompletionItem, Completions, Kernel, SourceText, Submission, Upcoming};
pub use progress::{Report, WarmUpPhase, WarmUpProgress};
pub use runner::{AskAnswer, Process, ResourceUsage, Runner};

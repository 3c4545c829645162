//! The vocabulary of agents, whatever program one is: what it is asked to do, what it says while it does so, and how that ends. What a
//! kernel is asked to do that is no code is said in the same words.
//!
//! What is said to last is a [`Message`](crate::Message), and a [`Compaction`](crate::Compaction) where it was shortened. Here is
//! what surrounds that. Sources: seed 001, "Protocol Patterns"; seed 003, yield reasons; pi's RPC mode.

mod job;
mod notice;
mod prompt;
mod setting;

pub use self::job::{JobKind, JobSpec, WorkEnding, WorkOutcome};
pub use self::notice::{AgentNotice, Delta, Note, ToolCall, YieldReason};
pub use self::prompt::{Delivery, Image, Prompt, QueuedPrompt};
pub use self::setting::{AgentState, Model, Setting, ThinkingLevel};

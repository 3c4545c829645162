//! Tool workers as runners: a program of the user's, in any language, that offers tools over ARCP on its standard input and output.
//!
//! To the engine such a worker is a kernel whose code is calls of tools ([`ToolCall`](mainstay_model::ToolCall)), so that every client reaches them,
//! and each call has one stored outcome. No call runs again by itself: it changes nothing that a new worker would need, and may have had effects.
//! The worker is the runtime of dialect B (draft-arcp-1.1), Mainstay its client. [`conversation`] turns what is said into the engine's vocabulary and
//! back, without I/O; [`runner`] joins that to a process; [`factory`] is what the engine is given; [`inventory`] remembers which tools a worker had.

mod chunks;
mod conversation;
mod factory;
mod inventory;
mod runner;

pub use factory::{ToolWorkerSettings, ToolWorkers};
pub use inventory::{Tool, known_tools};

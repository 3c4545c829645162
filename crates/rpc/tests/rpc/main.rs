//! JSON-RPC as the terminal client speaks it: its own client against a daemon's socket, with agents that a test tells what to say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod agents;
mod discovery;
mod opening;
#[path = "../../../engine/tests/sessions/scripted_agent.rs"]
#[allow(dead_code, reason = "it is shared with the engine's tests")]
mod scripted_agent;
mod support;

//! JSON-RPC as the terminal client speaks it: its own client against a daemon's socket, with agents that a test tells what to say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod agents;
mod discovery;
mod opening;
mod restart;
mod support;

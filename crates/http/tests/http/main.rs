//! HTTP as editors, pages and scripts speak it, over the loopback port, with a scripted worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "../../../mcp/tests/mcp/scripted.rs"]
mod scripted;
#[path = "../../../engine/tests/sessions/scripted_agent.rs"]
#[allow(dead_code, reason = "the engine's tests use more of it")]
mod scripted_agent;

mod agents;
mod bare;
mod browsers;
mod commands;
mod compression;
mod connections;
mod history;
mod import_export;
mod notebooks;
mod pages;
mod refusals;
mod schemas;
mod schemathesis;
mod sockets;
mod streams;
mod support;

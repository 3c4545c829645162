//! MCP as agents see it: `rmcp`'s own client against an engine with a real store and a scripted worker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod asks;
mod cancelling;
mod choosing;
mod conversation;
mod following;
mod http;
mod prompts;
mod refusals;
mod resources;
mod scripted;
mod streams;
mod support;
mod transcripts;

//! MCP as agents see it: `rmcp`'s own client against an engine with a real store and a scripted worker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod asks;
mod cancelling;
mod choosing;
mod conversation;
mod deadline;
mod diagnosing;
mod elicitation;
mod following;
mod http;
mod logging;
mod offers;
mod projects;
mod prompts;
mod refusals;
mod repeating;
mod resources;
mod results;
mod resuming;
mod scripts;
mod sse;
mod staleness;
mod streams;
mod support;
mod tasks;
mod transcripts;
mod versions;

//! MCP: an agent's tools on the sessions, over the daemon's local socket and over streamable HTTP.
//!
//! [`tool`] says what a tool is and lists them all; each lives with its arguments and its answer: [`eval`], [`cancel`],
//! [`query`], [`status`], [`events`], [`lifecycle`]. [`resources`] is what is read without calling a tool, [`prompts`] what people have an agent begin with, [`followers`] tells who follows resources of changes, [`completion`] helps with the
//! arguments of both. [`transport`] and [`lines`] are the ways in, [`server`] is what `rmcp` calls, [`call`] what every tool needs of one
//! call, [`error`] the one table from errors to answers.
//!
//! Answers are made for a context window: no echo of what the client sent, no advice that never changes, each text cut at
//! a limit, events by cursor. Nothing here is keyed by a transport's session, since the newest protocol has none: a call
//! says its session, or takes one by the rule in [`call`].

mod ask;
mod call;
mod cancel;
mod cells;
mod completion;
mod diagnostic;
mod error;
mod eval;
mod events;
mod exchange;
mod explore;
mod followers;
mod fork;
mod lifecycle;
mod lines;
mod prompts;
mod query;
mod resources;
mod schema;
mod search;
mod server;
mod status;
mod text;
mod tool;
mod transport;

pub use transport::{http_service, serve_stream};

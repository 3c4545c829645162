//! MCP: an agent's tools on the sessions, over the daemon's local socket and over streamable HTTP.
//!
//! [`tool`] says what a tool is and lists them all; each lives with its arguments and its answer. [`offer`] says which of them a client
//! is shown, [`names`] what they are called there. [`resources`] is what is read without calling a tool, [`prompts`] what people have an
//! agent begin with, [`subscriptions`] tells who follows resources of changes, [`logging`] logs for who wants it, [`completion`] helps with the arguments
//! of resources and prompts. [`transport`], [`lines`] and [`sse`] are the ways in, [`resumption`] has who lost a connection miss nothing, [`server`]
//! is what `rmcp` calls, [`call`] what every tool needs of one call, [`running_command`] waits for what takes its time, [`deadline`] answers before its client's patience ends ([`clients`]),
//! [`running_calls`] keeps what goes on then, and `get_result` and `get_output` find it; [`elicitation`] and [`tasks`] answer before it has ended,
//! [`orphans`] tells of what others left running, [`places`] has how many calls may be under way, [`settings`] has what a user decides, [`session_resolver`] says which session that is about, [`arguments`] what is wrong with its arguments,
//! [`error`] the one table from errors to answers, [`kinds`] which kinds of sessions there are, [`repeats`] what a bridge says of a call that it may have to send again.
//!
//! Answers are made for a context window: no echo of what the client sent, no advice that never changes, each text cut at
//! a limit, events by cursor. The newest protocol has no session of the transport, so every answer has the handle of ours, and a call
//! that says it needs nothing else; one that does not takes a session by the rule in [`session_resolver`].

mod arguments;
mod ask;
mod bounds;
mod call;
mod cancel;
mod cells;
mod clients;
mod completion;
mod daemon;
mod deadline;
mod diagnose;
mod diagnostic;
mod elicitation;
mod ended;
mod error;
mod eval;
mod events;
mod explore;
mod fork;
mod get_output;
mod get_result;
mod import_export;
mod kinds;
mod lifecycle;
mod lines;
mod load;
mod logging;
mod merge;
mod names;
mod notebook;
mod offer;
mod orphans;
mod places;
mod projects;
mod prompts;
mod protocol;
mod query;
mod rebuild;
mod refresh;
mod repeats;
mod replay_buffer;
mod resources;
mod resumption;
mod review;
mod running_calls;
mod running_command;
mod scaffold;
mod schema;
mod search;
mod server;
mod session_resolver;
mod settings;
mod sse;
mod staleness;
mod startup;
mod state;
mod status;
mod subscriptions;
mod switch;
mod tasks;
mod tests;
mod text;
mod timeline;
mod tool;
mod transport;

pub use clients::{RESULTS, Results};
pub use daemon::McpDaemon;
pub use lines::{AnyLines, unreadable};
pub use names::Names;
pub use protocol::{AttachMcp, Mcp};
pub use repeats::{AGAIN, COMMAND, SESSION, command_id};
pub use server::Server;
pub use settings::{Settings, Shared};
pub use sse::sse_routes;
pub use transport::{http_routes, http_routes_of, serve_stream};

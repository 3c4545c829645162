//! MCP: an agent's tools on the sessions, over the daemon's local socket and over streamable HTTP.
//!
//! Tools: [`tool`] says what a tool is, [`needs`] what it needs, and each tool lives in a file with its arguments and its answer. [`tools`] is
//! the table of all of them, [`listed`] how clients see one, [`offer`] which of them a client is shown, [`names`] what they are called there,
//! [`arguments`] what is wrong with their arguments, [`tool_result`] the result that a client is given, [`error`] the one table from errors to
//! answers.
//!
//! Connections: [`transport`], [`lines`] and [`sse`] are the ways in, a client that reconnects misses nothing by [`resumption`]. [`server`] is
//! what a connection remembers, [`handler`] what `rmcp` calls of it, [`places`] how many calls may be under way, [`settings`] what a user
//! decides, [`repeats`] what a bridge says of a call that it may have to send again.
//!
//! Calls: [`call`] is one call, [`session_resolver`] says which session it is about, and [`kinds`] which kinds of sessions there are.
//! [`command_wait`] waits for a command ([`running_command`]), [`deadline`] answers before the client's patience ends ([`clients`]),
//! [`running_calls`] keeps what goes on then, and `get_result` and `get_output` find it. [`elicitation`] and [`tasks`] answer before a command
//! has ended, [`stored_result`] once it has, [`orphans`] tells of what others left running.
//!
//! Besides tools: [`resources`] is what is read without calling one, [`subscriptions`] tells of changes to it, [`prompts`] is what people have
//! an agent begin with, [`completion`] helps with the arguments of both, [`logging`] logs for clients that want it.
//!
//! A file imports only files that do not import it, but for a few small groups: [`call`] knows no tool, and is handed the table by
//! [`handler`].
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
mod command_wait;
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
mod handler;
mod import_export;
mod kinds;
mod lifecycle;
mod lines;
mod listed;
mod live_tests;
mod load;
mod logging;
mod merge;
mod names;
mod needs;
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
mod stored_result;
mod subscriptions;
mod switch;
mod task_start;
mod tasks;
mod tests;
mod text;
mod timeline;
mod tool;
mod tool_result;
mod tools;
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
pub use tools::operations_of_tools;
pub use transport::{http_routes, http_routes_of, serve_stream};

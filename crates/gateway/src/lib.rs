//! The protocols clients speak, one module each. A gateway translates, and holds no state that matters.
//!
//! [`rpc`] is JSON-RPC 2.0 over the daemon's local socket: the command line and the terminal client. [`mcp`] is for AI agents,
//! over streamable HTTP and over the same socket. [`http`] is for editors, pages and scripts. [`port`] is the loopback port: who may come in, and where each path leads.
//! [`web`] is the page in the browser. [`tokens`] says whom a client stands for, [`view`] is what all of them show of sessions and evals, [`notebook`] runs files cell by cell,
//! [`trace`] where their requests become part of traces.

mod bounded_listener;
mod browser;
mod command;
mod connections;
mod default_kind;
pub mod entries;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod health;
pub mod highlight;
pub mod http;
mod kinds;
pub mod mcp;
pub mod notebook;
mod path;
pub mod pi;
pub mod port;
pub mod reset_warning;
pub mod rpc;
pub mod scaffold;
mod session_file;
pub mod tokens;
mod trace;
pub mod view;
pub mod web;

pub use default_kind::DefaultKind;
pub use kinds::{Kinds, KnownKind, Missing};

//! JSON-RPC 2.0, one message a line, over the daemon's local socket.
//!
//! [`api`] names the methods and their types, [`server`] serves them, [`client`] calls them.

pub mod api;
pub mod client;
mod codec;
mod connection;
mod dispatch;
mod follow;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz_invariants;
pub mod server;

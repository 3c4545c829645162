//! JSON-RPC 2.0, one message a line, over the daemon's local socket.
//!
//! [`api`] names the methods and their types, [`Rpc`] enters the protocol in the registry, [`client`] calls the methods.

pub mod api;
pub mod client;
mod connection;
mod dispatch;
mod follow;
#[cfg(feature = "fuzzing")]
mod fuzz_invariants;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
pub mod openrpc;
mod protocol;
mod trace;

pub use protocol::Rpc;

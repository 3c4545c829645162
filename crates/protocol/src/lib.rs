//! What a client can ask the daemon, and in what form it is answered.
//!
//! [`operations`] is the list of operations: the name, request, answer and documentation of each. The local socket carries out all of them, and the
//! other gateways name those that they carry out. [`view`] has what the answers show of sessions and their work. [`json_rpc`] has the messages in which
//! the local socket carries operations, and [`openrpc`] the document that describes them.
//!
//! Everything here is pure. What carries operations out is in the gateways, and the client is the crate `client`.

pub mod entries;
#[cfg(feature = "fuzzing")]
mod fuzz_invariants;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod json_rpc;
pub mod openrpc;
mod operation;
pub mod operations;
pub mod reset_warning;
mod sent;
pub mod view;

pub use operation::{Operation, OperationDescription, OperationId};
pub use sent::{Conditions, Sent};

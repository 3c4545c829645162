//! The client of the daemon's local socket.
//!
//! [`Client`] asks the operations of `protocol` over any stream that is connected to the daemon. [`socket`] connects to the daemon of this user, also for
//! a client that speaks another protocol over the connection.

mod connection;
mod receiver;
mod run_records;
pub mod socket;

pub use connection::Client;
pub use socket::{Stream, attach};

//! JSON-RPC 2.0, one message a line, over the daemon's local socket.
//!
//! [`Rpc`] enters the protocol in the registry, `dispatch` registers what carries out the operations of `mainstay_protocol`.

mod connection;
mod dispatch;
mod follow;
mod handlers;
mod protocol;
mod trace;

pub use protocol::Rpc;

//! The core that all protocols share, and the protocols. A protocol translates, and holds no state that matters.
//!
//! [`protocol`] is the registry in which protocols enter themselves. [`port`] is the loopback port, [`local_socket`] the local one: who may come in, and
//! which protocol a request or a connection is for, and [`arrivals`] how many connections clients may hold that have shown no credentials. [`tokens`] says whom a client stands for, by itself or by what [`issuers`] have signed ([`jwt`]), [`browser`] how a browser is let in without a token, [`view`] is what all protocols
//! show of sessions and evals, [`notebook`] runs files cell by cell, [`trace`] says where requests become part of traces.

pub mod admission;
pub mod arrivals;
pub mod authorities;
mod bounded_listener;
pub mod browser;
mod browser_secret;
pub mod client_certificate;
pub mod command;
mod connections;
mod cuttable_stream;
pub mod daemon;
pub mod identities;
pub mod introspection;
pub mod issuers;
pub mod jwt;
pub mod jwt_key;
pub mod key_cache;
mod keyed_places;
mod kinds;
pub mod local_socket;
pub mod notebook;
pub mod outbound;
pub mod path;
pub mod peer_network;
pub mod port;
pub mod problem;
pub mod protocol;
pub mod session_file;
mod shown_certificates;
pub mod tls;
pub mod tokens;
pub mod trace;
pub mod view;

pub use daemon::Daemon;
pub use kinds::{Kinds, KnownKind, KnownTool, Missing};

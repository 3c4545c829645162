//! The pi protocol, version 1.0.0: what was written for pi-server works here. Source: protocols/pi.md.
//!
//! A connection's commands are the engine's, and so are their outcomes: [`decode`] reads one, [`carrying_out`] and [`reading`] give it to the
//! engine, [`events`] tells what happens. Nothing is kept here that matters.

mod carrying_out;
mod command;
mod connection;
mod counts;
mod creating;
mod decode;
mod directory;
mod errors;
mod events;
mod frames;
mod history;
mod html;
mod info;
mod joining;
mod limits;
mod messages;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod promises;
mod rates;
mod reading;
mod recovery;
mod seen;
mod session_path;
mod socket;
mod stdio;

pub use connection::Shared;
pub use limits::upstream_limits;
pub(crate) use socket::routes;
pub use stdio::serve_stream;

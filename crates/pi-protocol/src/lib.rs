//! The pi protocol, version 1.0.0: what was written for pi-server works here. Source: protocols/pi.md.
//!
//! A connection's commands are the engine's, and so are their outcomes: [`decode`] reads one, [`handlers`] and [`queries`] give it to the
//! engine, [`events`] tells what happens. Nothing is kept here that matters.

mod answer_cache;
mod command;
mod connection;
mod counts;
mod create;
mod daemon;
mod decode;
mod directory;
mod errors;
mod events;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz_invariants;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
mod history;
mod html;
mod info;
mod limits;
mod messages;
mod protocol;
mod queries;
mod rates;
mod recovery;
mod running_command;
mod session_path;
mod shared;
mod socket;
mod stdio;
mod turn_catch_up;

pub use daemon::PiDaemon;
pub use limits::upstream_limits;
pub use protocol::{AttachPi, PiProtocol};
pub use shared::Shared;
pub use stdio::serve_stream;

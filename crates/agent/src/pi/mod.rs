//! pi, the coding agent, as a runner: `pi --mode rpc`, one process a session.
//!
//! [`rpc`] is what goes over its pipes, [`translation`] turns that into the engine's vocabulary and back, without I/O; [`runner`]
//! joins the two to a process. [`session_file`] writes what pi resumes from, [`messages`] what is said in it. [`locate`] and
//! [`install`] find pi and bring it, [`factory`] is what the engine is given. [`live_sessions`] lets it use the daemon's other sessions.

mod dialog;
mod factory;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz_invariants;
mod install;
mod live_sessions;
mod locate;
mod operation_checks;
mod orphans;
mod rpc;
mod runner;
mod session_file;
mod translation;

pub use factory::{PiAgents, PiSettings};
pub use install::{InstallError, install};
pub use live_sessions::LiveSessions;
pub use locate::{FoundPi, NoPi, Origin, PINNED, Search, choose, discover};

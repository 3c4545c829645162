//! What the command line, the prompt and other programs for people share as clients of a daemon.
//!
//! - [`connect`] finds the daemon or starts one, [`daemon_fate`] the next where one is lost. [`link`] follows a session, [`own_asks`] are the
//!   questions of a client's own code.
//! - [`sessions`] finds, creates and starts sessions in view of the user; [`kernels`] installs what they need.
//! - The other modules have one subject each: what the daemon answers as text, and the calls that need more than one request.
//!
//! Nothing here reads a command line or a prompt.

pub mod agent_settings;
pub mod ask;
pub mod compilers;
pub mod connect;
pub mod coverage;
pub mod daemon_fate;
pub mod event_table;
pub mod events;
pub mod exit;
pub mod explore;
pub mod export;
pub mod fault;
mod first_kernel;
pub mod history;
pub mod import;
pub mod kernels;
pub mod label;
pub mod lineage;
pub mod link;
pub mod merge;
pub mod own_asks;
pub mod paths;
pub mod reset;
pub mod search;
pub mod session_changes;
pub mod session_text;
pub mod sessions;
pub mod shims;
pub mod statistics;
pub mod status;
pub mod store;
pub mod transcript;

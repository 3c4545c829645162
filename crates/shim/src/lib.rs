//! Shims: small processes that host runners and outlive the daemon, and what the daemon has them by.
//!
//! The daemon starts one shim for each runner. The shim starts the runner in its own process, owns the worker's process, pipes and
//! sockets, and speaks the **runner protocol** ([`messages`], docs/runner-protocol.md) with the daemon over a Unix socket. When the
//! daemon is lost the runner goes on; the next daemon finds the shim in the folder of shims ([`ShimFolder`]) and adopts it.
//!
//! - [`Shims`] is a [`RunnerFactory`](mainstay_runner::RunnerFactory) around another: what that starts in the daemon's process, this
//!   starts in a shim. Its kernels and agents ([`proxy`]) pass on what they are told.
//! - A standby is a process that was started ahead, in a shim that belongs to no session yet ([`StandbyTerms`]). The next start of its
//!   kind takes both.
//! - [`host`] is the shim's side: it keeps notices until they are acknowledged, heeds what comes twice once, and obeys only the owner of
//!   the newest epoch.

mod activity;
mod ending;
mod factory;
mod folder;
pub mod host;
mod leftover;
pub mod messages;
mod proxy;
mod standby;
mod stream;

pub use activity::{Activity, Busy};
pub use ending::{end_all, end_standbys, living, see_off_all, standby};
pub use factory::{LaunchShim, ShimSettings, Shims};
pub use folder::{ShimFolder, ShimRecord, StandbyRecord};
pub use standby::StandbyTerms;

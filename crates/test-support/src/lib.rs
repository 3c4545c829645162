//! What tests and benchmarks of several crates share. No crate of the program depends on it.
//!
//! - [`provided`] has what `cargo xtask test` installs for tests.
//! - [`model`] is a scripted model behind an HTTP server, for coding agents.
//! - [`browser`] drives a real Chromium.
//! - [`scripted_kernel`] and [`scripted_agent`] are runners in the test's own process: a kernel that knows a few submissions, and an agent that does
//!   what the test says.
//! - [`short_folder`] makes a folder whose path is short enough for sockets.
//! - [`tls`] makes certificates, and connects with them.
//! - [`signed_token`] has tokens that an issuer has signed, and `test_issuer` (of the feature `gateway`) the issuer as a daemon knows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

pub mod browser;
pub mod model;
pub mod provided;
pub mod scripted_agent;
mod scripted_coverage;
pub mod scripted_kernel;
pub mod short_folder;
pub mod signed_token;
#[cfg(feature = "gateway")]
pub mod test_issuer;
pub mod tls;

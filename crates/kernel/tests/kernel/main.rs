//! Kernels with real compilers and interpreters, through the runner that the engine is given.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which may panic"
)]

mod jupyter;
mod projects;
mod provision;
mod support;
mod worker;

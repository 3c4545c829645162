//! Each package of `cargo xtask dist` is installed on a machine that has never seen Mainstay, tried and removed again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod archives;
mod container;
mod debian;
mod dotnet;
mod node;
mod python;
mod reproducible;
mod support;

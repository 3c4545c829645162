//! The rules of the model, over arbitrary inputs, and the shape of what it stores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod agents;
mod decide;
mod delegations;
mod elevations;
mod evolve;
mod filter;
mod grants;
mod leases;
mod support;
mod transcribe;
mod votes;
mod wire;

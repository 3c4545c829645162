//! The pi protocol as its clients see it: frames in and out of an engine with a real store and an agent that does what the test says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod commands;
mod golden;
mod load;
mod outcomes;
mod refusals;
mod resuming;
mod socket;
mod support;
mod turns;
mod unloading;
mod upstream;

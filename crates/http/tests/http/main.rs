//! HTTP as editors, pages and scripts speak it, over the loopback port, with a scripted worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod agents;
mod bare;
mod browsers;
mod commands;
mod compression;
mod connections;
mod credentials;
mod history;
mod import_export;
mod notebooks;
mod pages;
mod refusals;
mod schemas;
mod schemathesis;
mod sockets;
mod streams;
mod support;

//! The protocol's own conformance suite, against the product's handler, transport and sessions. The suite knows tools, resources and
//! prompts by name; they stand before the product's own ([`server`]), and most have the product's work behind them ([`tools`]).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod kernel;
mod prompts;
mod resources;
mod served;
mod server;
mod suite;
mod tools;

use served::Served;
use suite::Found;

/// The scenarios of tasks, which are an extension of the newest version.
const TASKS: [&str; 10] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

/// Runs the suite: the results are the expected ones, and `docs/conformance.md` has their numbers.
async fn conforms(version: &'static str, extensions: &'static [&str]) {
    let served = Served::start().await;
    let url = served.url.clone();
    let found = tokio::task::spawn_blocking(move || suite::run(version, &url, extensions)).await.unwrap();
    let Found { passed, expected, unexpected } = found;
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    let line = format!("| {version} | {} | {passed} | {expected} |", passed + expected);
    let page = include_str!("../../../../docs/conformance.md");
    assert!(page.contains(&line), "docs/conformance.md has no line `{line}`");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2025_03_26_conforms() {
    conforms("2025-03-26", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2025_06_18_conforms() {
    conforms("2025-06-18", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2025_11_25_conforms() {
    conforms("2025-11-25", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2026_07_28_conforms() {
    conforms("2026-07-28", &TASKS).await;
}

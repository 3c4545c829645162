//! The command itself: its exit codes, its list, and a runtime over standard streams.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::process::{Command, Output};

fn command(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_arcp-conformance")).args(arguments).output().unwrap()
}

#[test]
fn the_list_names_the_scenarios_of_a_dialect() {
    let output = command(&["--list", "--dialect", "a", "--only", "16.3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert_eq!(text.lines().count(), 1);
    assert!(text.starts_with("a.16.3.retention"), "{text}");
}

#[test]
fn a_command_without_a_runtime_is_refused() {
    let output = command(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--url or --stdio"));
}

#[test]
fn a_runtime_over_standard_streams_is_tried_and_passes() {
    let welcome = serde_json::json!({
        "arcp": "1.1", "id": "1", "type": "session.welcome", "session_id": "s",
        "payload": {
            "resume_token": "rt", "resume_window_sec": 1, "runtime": { "name": "sh", "version": "1" },
            "capabilities": { "features": [] },
        },
    });
    let script = format!("read line; echo '{welcome}'; cat > /dev/null");
    let output =
        command(&["--dialect", "b", "--only", "b.6.2.welcome", "--json", "--stdio", "sh", "-c", &script]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["scenarios"][0]["outcome"], "passed", "{report:#}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_runtime_that_ends_at_once_fails_without_a_panic() {
    let output = command(&["--dialect", "both", "--only", "b.6.2.welcome,a.8.1.accepted", "--stdio", "true"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("0 passed, 2 failed (2 of them MUST)"), "{text}");
    assert!(!String::from_utf8(output.stderr).unwrap().contains("panicked"));
}

#[test]
fn over_standard_streams_a_second_connection_skips_a_scenario() {
    let output = command(&["--dialect", "b", "--only", "b.6.3.unknown-session", "--stdio", "true"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("over standard streams there is one connection"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

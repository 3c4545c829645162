//! ARCP with the public Python SDK of dialect B, unchanged, and over kills of the daemon.

mod both_dialects;
mod command;
mod conformance;
mod connection;
mod examples;
mod kills;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{World, python};

/// The SDK in the middle of a story.
pub(super) struct Sdk {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Sdk {
    /// Begins a story with the daemon of a world, which stays at its port.
    pub(super) fn begin(world: &World, story: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/arcp/sdk.py");
        let token = std::fs::read_to_string(world.home().join("token")).unwrap();
        let mut child = Command::new(python())
            .args([script, &format!("ws://127.0.0.1:{}/arcp", port(world)), token.trim()])
            .arg(world.work())
            .arg(story)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, lines: BufReader::new(stdout) }
    }

    /// What it sees next.
    pub(super) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn go_on(&mut self) {
        self.stdin.write_all(b"on\n").unwrap();
    }

    /// Whether it has come to its end.
    pub(super) fn ends(mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(super) fn port(world: &World) -> u64 {
    let record = std::fs::read(world.home().join("daemon.json")).unwrap();
    serde_json::from_slice::<Value>(&record).unwrap()["port"].as_u64().unwrap()
}

/// A daemon with a live session of Python, which the SDK's jobs share.
fn world() -> World {
    let world = World::with_jupyter();
    std::fs::write(world.home().join("config.toml"), "[arcp]\nchunk-bytes = 1000\n").unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    assert_eq!(world.run(["eval", "--kind", "python3", "shared = 41"]).code, 0);
    world
}

/// The messages of the events of this kind.
fn texts(events: &Value, kind: &str) -> String {
    let of_kind = events.as_array().unwrap().iter().filter(|event| event[0] == kind);
    of_kind.map(|event| event[1]["message"].as_str().unwrap_or_default()).collect()
}

#[test]
fn the_python_sdk_submits_jobs_and_is_told_what_comes_of_them() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "eval");
    let welcome = sdk.next();
    let features = [
        "heartbeat",
        "ack",
        "list_jobs",
        "subscribe",
        "lease_expires_at",
        "cost.budget",
        "progress",
        "result_chunk",
        "agent_versions",
    ];
    assert_eq!(welcome["features"], json!(features));
    assert!(welcome["agents"].as_array().unwrap().contains(&json!("python3")), "{welcome}");
    let done = sdk.next();
    assert_eq!(done["agent"], "python3@1");
    assert_eq!(texts(&done["events"], "log"), "hello\n");
    let end = &done["end"];
    assert_eq!((&end["final_status"], &end["result"]["value"]), (&json!("success"), &json!("42")), "{end}");
    let failed = sdk.next();
    assert_eq!(failed["failed"]["message"], "ValueError: oops");
    assert_eq!(sdk.next()["no_agent"], "AGENT_NOT_AVAILABLE");
    assert_eq!(sdk.next()["no_version"], "AGENT_VERSION_NOT_AVAILABLE");
    assert_eq!(sdk.next()["no_token"], "UNAUTHENTICATED");
    assert!(sdk.ends());
}

#[test]
fn a_key_that_is_used_again_runs_nothing_and_tells_the_end_again() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "key");
    let first = sdk.next()["first"].clone();
    assert_eq!(first["final_status"], "success");
    let again = sdk.next();
    assert_eq!((&again["same"], &again["again"]), (&json!(true), &first));
    let elsewhere = sdk.next();
    assert_eq!((&elsewhere["same"], &elsewhere["elsewhere"]), (&json!(true), &first));
    assert_eq!(sdk.next()["conflict"], "DUPLICATE_KEY");
    assert!(sdk.ends());
    let ran = world.events().iter().filter(|event| event["kind"] == "evalRequested").count();
    assert_eq!(ran, 2, "that of the session's creator, and one");
}

#[test]
fn a_job_is_cancelled_by_the_session_that_submitted_it_alone_and_ends_in_its_time() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "cancel");
    assert_eq!(sdk.next()["listed"], json!([true]));
    let cancelled = sdk.next();
    assert_eq!(cancelled["cancelled"]["error"], "CANCELLED", "{cancelled}");
    assert_eq!(cancelled["refused"]["error"], "PERMISSION_DENIED", "{cancelled}");
    assert_eq!(sdk.next()["timed_out"]["error"], "TIMEOUT");
    assert!(sdk.ends());
}

#[test]
fn another_session_is_told_what_happened_to_a_job_and_what_comes() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "watch");
    assert_eq!(sdk.next()["subscribed"], true);
    std::fs::write(world.work().join("go"), "").unwrap();
    sdk.go_on();
    let told = sdk.next();
    assert_eq!(texts(&told["events"], "log"), "before\n");
    assert_eq!(told["end"]["result"]["value"], "1");
    assert!(sdk.ends());
}

#[test]
fn a_lease_is_told_as_it_is_granted_and_ends_the_job_with_it() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "lease");
    let granted = sdk.next();
    assert_eq!(granted["lease"], json!({ "cost.budget": ["USD:5.25"] }));
    assert_eq!(granted["budget"], json!({ "USD": "5.25" }));
    assert_eq!(granted["expires_at"], "2099-01-01T00:00:00Z");
    assert_eq!(sdk.next()["expired"]["error"], "LEASE_EXPIRED");
    assert!(sdk.ends());
}

#[test]
fn a_large_result_comes_in_parts() {
    let world = world();
    let mut sdk = Sdk::begin(&world, "chunk");
    let told = sdk.next();
    assert_eq!((&told["final_status"], &told["inline"]), (&json!("success"), &Value::Null));
    assert_eq!(told["length"], 5002, "the text, and the quotes around it");
    assert!(sdk.ends());
}

#[test]
fn a_session_is_resumed_without_a_gap_though_its_daemon_was_killed_while_it_was_away() {
    let world = world();
    let port = port(&world).to_string();
    let mut sdk = Sdk::begin(&world, "resume");
    assert_eq!(sdk.next()["begun"], true);
    world.kill_daemon();
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(world.run(["-d", "--port", &port]).code, 0);
    sdk.go_on();
    let told = sdk.next();
    for was in ["same_session", "rotated", "gapless"] {
        assert_eq!(told[was], true, "{was}: {told}");
    }
    let lines: String = (0..200).map(|line| format!("{line}\n")).collect();
    assert_eq!(told["text"], format!("{lines}success"));
    assert_eq!(sdk.next()["old_token"], "UNAUTHENTICATED");
    assert!(sdk.ends());
}

//! `mainstay arcp`: a job from the command line, over a lost daemon too, and ARCP itself over stdio.

use serde_json::{Value, json};

use crate::support::World;

fn world() -> World {
    let world = World::scripted();
    world.eval("let shared = 41");
    world
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_job_prints_what_it_prints_and_its_value_and_fails_where_it_fails() {
    let world = world();
    let done = world.run(["arcp", "submit", "--agent", "fsharp", "printfn \"hello\"; shared + 1"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "hello\nval it: int = 42\n"), "{done:?}");
    let failed = world.run(["arcp", "submit", "--agent", "fsharp", "failwith \"oops\""]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{failed:?}");
    assert!(failed.stderr.starts_with("JOB_FAILED: "), "{failed:?}");
    let nobody = world.run(["arcp", "submit", "--agent", "nobody", "1"]);
    assert_eq!(nobody.code, 1);
    assert!(nobody.stderr.starts_with("AGENT_NOT_AVAILABLE: there is no agent nobody"), "{nobody:?}");
    assert_eq!(world.run(["arcp", "submit", "--agent", "a b", "1"]).code, 2);
}

#[test]
fn a_job_that_is_left_alone_is_looked_at_cancelled_and_replayed_later() {
    let world = world();
    let forever = "while true do System.Threading.Thread.Sleep 5";
    let left = world.run(["arcp", "submit", "--agent", "fsharp", "--detach", forever]);
    let job = left.stdout.trim();
    assert!(left.code == 0 && job.starts_with("job_"), "{left:?}");
    assert_eq!(world.run(["arcp", "cancel", job]).code, 0);
    let tail = world.run(["arcp", "tail", "--json", job]);
    assert_eq!(tail.code, 1);
    let told = lines(&tail.stdout);
    assert_eq!(told.last().unwrap()["payload"]["code"], "CANCELLED");
    let again = world.run(["arcp", "cancel", job]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("[not_running]"), "{again:?}");
    assert_eq!(world.run(["arcp", "sessions", "--json"]).json(), json!([]), "none can be resumed");
    let sessions = world.run(["arcp", "sessions", "--all", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    assert_eq!(sessions[0]["isClosed"], true);
    let replayed = world.run(["arcp", "replay", "sess_nothing"]);
    assert_eq!(replayed.code, 1);
    assert!(replayed.stderr.starts_with("RESUME_WINDOW_EXPIRED: "), "{replayed:?}");
    let submitter = sessions[1]["session"].as_str().unwrap();
    let replayed = lines(&world.run(["arcp", "replay", submitter]).stdout);
    let numbers: Vec<_> = replayed.iter().map(|envelope| envelope["event_seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(replayed.last().unwrap()["type"], "job.error");
    let rest = lines(&world.run(["arcp", "replay", "--after", "1", submitter]).stdout);
    assert_eq!(rest, replayed[1..]);
}

#[test]
fn a_job_is_held_to_its_lease_and_who_submits_it_is_told_what_it_is_not_held_to() {
    let world = world();
    let submit =
        |arguments: &[&str]| world.run([&["arcp", "submit", "--agent", "fsharp"], arguments].concat());
    let forever = "while true do System.Threading.Thread.Sleep 5";
    let expired = submit(&["--lease-seconds", "1", forever]);
    assert_eq!(expired.code, 1);
    assert!(expired.stderr.contains("LEASE_EXPIRED: "), "{expired:?}");
    let told = submit(&["--lease", "fs.read=/work/**", "--budget", "USD:1", "1"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("it is not held to fs.read\n"), "{told:?}");
    assert_eq!(submit(&["--lease", "fs.read", "1"]).code, 2);
    let refused = submit(&["--budget", "much", "1"]);
    assert!(refused.code == 1 && refused.stderr.starts_with("INVALID_REQUEST: "), "{refused:?}");
}

#[test]
fn who_waits_for_a_job_goes_on_with_the_next_daemon() {
    let world = world();
    let code =
        "printfn \"begun\"; while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5; 7";
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let running = world
        .command()
        .args(["arcp", "submit", "--agent", "fsharp", code])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    world.follow(since).wait_for("outputProduced");
    for _ in 0..2 {
        world.replace_daemon();
    }
    std::fs::write(world.work().join("go"), "").unwrap();
    let output = running.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), printed.as_str()), (Some(0), "begun\nval it: int = 7\n"));
}

#[test]
fn arcp_itself_passes_over_stdio() {
    let world = world();
    let hello = json!({
        "arcp": "1.1", "id": "1", "type": "session.hello",
        "payload": { "client": { "name": "test", "version": "1" }, "capabilities": { "features": [] } },
    });
    let job = json!({
        "arcp": "1.1", "id": "2", "type": "job.submit",
        "payload": { "agent": "fsharp", "input": { "code": "shared", "session": world.session()["session"] } },
    });
    let list = json!({ "arcp": "1.1", "id": "3", "type": "session.list_jobs", "payload": {} });
    let input = format!("{hello}\n{job}\n{list}\n");
    let finished = world.run_with_input(["arcp"], input.as_bytes());
    assert_eq!(finished.code, 0, "{finished:?}");
    let told = lines(&finished.stdout);
    assert_eq!(told[0]["type"], "session.welcome");
    assert_eq!(told[0]["payload"]["capabilities"]["agents"], json!(["fsharp"]), "without versions: names");
    let refused = told.iter().find(|envelope| envelope["payload"]["details"]["request_id"] == "3");
    assert_eq!(refused.unwrap()["payload"]["code"], "INVALID_REQUEST", "it is no feature of both");
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["payload"]["result"]["value"]), (&json!("job.result"), &json!("41")));
}

#[test]
fn the_other_dialect_passes_over_stdio_too_and_its_session_can_be_replayed() {
    let world = world();
    let message = |kind: &str, payload: Value| {
        json!({
            "arcp": "1.0", "id": kind, "type": kind, "timestamp": "2026-05-09T13:00:00Z", "payload": payload,
        })
    };
    let capabilities = json!({ "durable_jobs": true });
    let open = message("session.open", json!({ "capabilities": capabilities }));
    let arguments = json!({ "code": "shared", "session": world.session()["session"] });
    let invoke = message("tool.invoke", json!({ "tool": "fsharp", "arguments": arguments }));
    let finished = world.run_with_input(["arcp"], format!("{open}\n{invoke}\n").as_bytes());
    assert_eq!(finished.code, 0, "{finished:?}");
    let told = lines(&finished.stdout);
    let kinds: Vec<_> = told.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session.accepted", "job.accepted", "job.started", "job.completed"]);
    assert_eq!(told[3]["payload"]["value"]["value"], "41");
    let session = told[0]["payload"]["session_id"].as_str().unwrap();
    let listed = world.run(["arcp", "sessions"]);
    assert!(listed.stdout.starts_with(&format!("{session}  1.0  unknown")), "{listed:?}");
    assert_eq!(lines(&world.run(["arcp", "replay", session]).stdout), told[1..]);
}

#[test]
fn a_job_runs_tests() {
    // What runs them is F#'s own worker.
    let world = World::new();
    assert_eq!(world.run(["eval", "--kind", "fsharp", "1"]).code, 0);
    let input = r#"{"tests": {"pattern": "price"}}"#;
    let ran = world.run(["arcp", "submit", "--json", "--agent", "fsharp", "--input", input]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = lines(&ran.stdout).into_iter().find(|line| line["payload"]["kind"] == "x-mainstay.display");
    let came = &shown.expect("what came of them")["payload"]["body"]["data"];
    assert_eq!(came["application/vnd.mainstay.tests+json"]["failed"], 0, "{came}");
    let wrong = world.run(["arcp", "submit", "--agent", "fsharp", "--input", r#"{"tests": 1}"#]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.starts_with("INVALID_REQUEST: "), "{wrong:?}");
}

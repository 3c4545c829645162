//! Tool workers: a program with the public Python SDK offers tools, which people, scripts and clients of ARCP call in sessions that all see.

use serde_json::{Value, json};

use crate::arcp::Sdk;
use crate::support::{World, kill, python, wait_for_end, watch};

/// A home whose settings name the example as the worker `stock`.
fn world() -> World {
    let world = World::with_jupyter();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tool-workers/stock.py");
    let command = json!([python(), script]);
    let settings = format!("[tool-workers.stock]\ncommand = {command}\n");
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    world
}

fn value(world: &World, code: &str) -> Value {
    let ran = world.run(["eval", "--kind", "stock", "--json", code]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let outcome: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = outcome.pointer("/result/value").or(outcome.get("value")).and_then(Value::as_str);
    serde_json::from_str(text.unwrap_or_else(|| panic!("{outcome}"))).unwrap()
}

#[test]
fn a_tool_is_called_as_code_and_no_call_runs_again() {
    let world = world();
    assert_eq!(value(&world, r#"quote {"sku": "A1", "count": 3}"#), json!({ "cents": 750 }));
    let counted = world.run(["eval", "--kind", "stock", "count 2"]);
    assert_eq!(counted.code, 0, "{counted:?}");
    assert!(counted.stdout.contains("2 shelves are counted"), "{counted:?}");
    assert!(counted.stdout.contains(r#"{"found":24}"#), "{counted:?}");
    for (code, says) in [
        (r#"quote {"sku": "C3"}"#, "nothing is called C3"),
        ("price {}", "there is no tool price; there are quote, count"),
        ("quote@1 {}", "the tool quote has no version 1; there are 2"),
        ("quote {sku}", "what the tool is given is no JSON"),
    ] {
        let failed = world.run(["eval", "--kind", "stock", code]);
        assert_eq!(failed.code, 1, "{code}: {failed:?}");
        assert!(format!("{}{}", failed.stdout, failed.stderr).contains(says), "{code}: {failed:?}");
    }
    // Its worker is killed: the next call has another, and nothing of what was called before runs again.
    let worker = world.worker_pid();
    let end = watch(worker);
    kill(worker);
    wait_for_end(&end);
    assert_eq!(value(&world, r#"quote@2 {"sku": "B2"}"#), json!({ "cents": 1300 }));
    let ran = world.events().iter().filter(|event| event["kind"] == "evalRequested").count();
    assert_eq!(ran, 7, "each call once");
}

#[test]
fn a_call_outlives_the_daemon_that_took_it() {
    let world = world();
    assert_eq!(value(&world, r#"quote {"sku": "A1"}"#), json!({ "cents": 250 }));
    let call = world.start_eval_with(&["--kind", "stock"], "count 20");
    world.follow(0).wait_for("outputDisplayed");
    world.kill_daemon();
    let outcome = call.wait_with_output().unwrap();
    let outcome: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert!(outcome.to_string().contains(r#"{\"found\":240}"#), "{outcome}");
    let ran = world.events().iter().filter(|event| event["kind"] == "evalRequested").count();
    assert_eq!(ran, 2, "each call once");
}

#[test]
fn clients_of_arcp_give_jobs_to_tools() {
    let world = world();
    // Which tools there are, is known once the worker has been started.
    let quoted = world.run(["arcp", "submit", "--agent", "stock.quote", "--input", r#"{"sku": "B2"}"#]);
    assert_eq!((quoted.code, quoted.stdout.as_str()), (0, "{\"cents\":1300}\n"), "{quoted:?}");
    let mut sdk = Sdk::begin(&world, "tool");
    assert_eq!(sdk.next()["agents"], json!(["stock", "stock.quote", "stock.count"]));
    let counted = sdk.next();
    assert_eq!(counted["end"]["result"], json!({ "found": 24 }), "{counted}");
    // What comes too soon after what was told before waits, and the last is always told.
    let progress = |current| json!({ "current": current, "total": 2, "units": "shelves" });
    let told = counted["progress"].as_array().unwrap();
    assert_eq!((told.first(), told.last()), (Some(&progress(0)), Some(&progress(1))), "{counted}");
    assert_eq!(counted["agent"], "stock@1");
    assert_eq!(sdk.next()["quote"]["result"], json!({ "cents": 250 }));
    assert_eq!(sdk.next()["no_version"], "AGENT_VERSION_NOT_AVAILABLE");
    let unknown = sdk.next();
    assert!(unknown.to_string().contains("there is no tool nothing; there are quote, count"), "{unknown}");
    assert_eq!(sdk.next()["stopped"]["error"], "CANCELLED");
    assert!(sdk.ends());
}

#[test]
fn a_worker_that_cannot_run_says_which_settings_start_it() {
    let world = World::new();
    let settings = "[tool-workers.gone]\ncommand = ['/nowhere/tool']\n\
        [tool-workers.broken]\ncommand = ['sh', '-c', 'echo it lacks something >&2; exit 3']\n";
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    for (kind, says) in [("gone", "`/nowhere/tool` could not be started"), ("broken", "it lacks something")] {
        let refused = world.run(["eval", "--kind", kind, "x"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
        assert!(refused.stderr.contains(&format!("`[tool-workers.{kind}]`")), "{refused:?}");
        assert!(refused.stderr.contains("the tool worker cannot be used: "), "{refused:?}");
        assert!(!refused.stderr.contains("kernel"), "{refused:?}");
    }
}

#[test]
fn the_tools_of_an_mcp_server_are_called_in_sessions_and_by_clients_of_arcp() {
    let world = World::scripted();
    let own = env!("CARGO_BIN_EXE_mainstay");
    let command = json!([own, "arcp", "tools", "--", own, "mcp"]);
    std::fs::write(world.home().join("config.toml"), format!("[tool-workers.live]\ncommand = {command}\n"))
        .unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    world.eval("let kept = 41");
    let fsharp = world.session()["session"].clone();
    let code = r#"send_code {"code": "kept + 1"}"#;
    let ran = world.run(["eval", "--kind", "live", code]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("42"), "{ran:?}");
    let input = json!({ "sessionId": fsharp, "code": "kept + 2" }).to_string();
    let submitted = world.run(["arcp", "submit", "--agent", "live.send_code", "--input", &input]);
    assert_eq!(submitted.code, 0, "{submitted:?}");
    assert!(submitted.stdout.contains("43"), "{submitted:?}");
    // A task is a text, and so nothing that such a tool takes; the worker takes it as a call.
    let message = |id: &str, kind: &str, payload: Value| {
        let timestamp = "2026-05-09T13:00:00Z";
        json!({ "arcp": "1.0", "id": id, "type": kind, "timestamp": timestamp, "payload": payload })
    };
    let open = json!({ "capabilities": { "durable_jobs": true } });
    let told: String = [
        message("m1", "session.open", open),
        message("m2", "agent.delegate", json!({ "target": "live.send_code", "task": "kept + 3" })),
        message(
            "m3",
            "agent.delegate",
            json!({ "target": "live", "task": r#"send_code {"code": "kept + 3"}"# }),
        ),
    ]
    .map(|message| format!("{message}\n"))
    .concat();
    let answers = world.run_with_input(["arcp"], told.as_bytes()).stdout;
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |to: &str| answers.iter().find(|answer| answer["correlation_id"] == to).unwrap();
    assert_eq!(answer("m2")["payload"]["code"], "INVALID_ARGUMENT", "{answers:?}");
    let step = answer("m2")["payload"]["details"]["next_step"].as_str().unwrap();
    assert!(step.starts_with("Name the worker as the target"), "{step}");
    assert!(answers.iter().any(|answer| answer.to_string().contains("44")), "{answers:?}");
    let failed = world.run(["eval", "--kind", "live", "nothing {}"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("there is no tool nothing"), "{failed:?}");
}

//! A public MCP client drives a real F# session, over stdio, over HTTP and over the old HTTP+SSE.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::World;

fn examples() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

/// Runs the client, and gives what each of its steps gave.
fn drive(world: &World, server: &[&str]) -> Value {
    let mut command = Command::new(support::python());
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/drive_mcp.py"))
        .args(server)
        .arg(examples().join("submissions.fsx"))
        .current_dir(world.work())
        .env("MAINSTAY_HOME", world.home())
        .env("DOTNET_ROOT", support::dotnet());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn judge(steps: &Value) {
    let tools: Vec<&str> = steps["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for tool in [
        "cancel_eval",
        "check_fsharp_code",
        "create_session",
        "get_completions",
        "get_fsi_status",
        "get_recent_fsi_events",
        "hard_reset_fsi_session",
        "list_sessions",
        "reset_fsi_session",
        "send_fsharp_code",
        "stop_session",
    ] {
        assert!(tools.contains(&tool), "{tool}: {tools:?}");
    }
    assert_eq!(steps["defined"]["success"], true, "{steps}");
    let printed = &steps["printed"];
    assert_eq!(
        (&printed["value"], &printed["type"], &printed["output"]),
        (&json!("3"), &json!("int"), &json!("Rex\n"))
    );
    assert_eq!(steps["rejected"]["isError"], true);
    assert_eq!(steps["rejected"]["diagnostics"][0]["code"], "FS0001");
    let transcript = steps["transcript"].as_str().unwrap();
    assert!(transcript.starts_with("# agent\n") && transcript.contains("### Cell 3\n"), "{transcript}");
    let [ask, cell] = steps["repair"].as_array().unwrap().as_slice() else { panic!("{}", steps["repair"]) };
    assert!(ask.as_str().unwrap().contains("Cell 3 "), "{ask}");
    assert!(cell.as_str().unwrap().contains("rex.Name + 1"), "{cell}");
    let checked = &steps["checked"]["diagnostics"][0];
    assert_eq!((&checked["line"], &checked["column"]), (&json!(1), &json!(24)), "{checked}");
    let items = steps["completed"]["items"].as_array().unwrap();
    assert!(items.iter().any(|item| item["label"] == "Name"), "{items:?}");
    assert_eq!(steps["status"]["state"], "Ready");
    assert!(!steps["events"]["events"].as_array().unwrap().is_empty());
    assert_eq!(steps["later"]["events"], json!([]), "only what is new");
    let expected = std::fs::read_to_string(examples().join("expected/submissions.txt")).unwrap();
    assert_eq!(steps["script"]["output"].as_str().unwrap(), expected);
    let refused = &steps["refused"];
    assert_eq!((&refused["isError"], &refused["code"]), (&json!(true), &json!("not_offered")), "{refused}");
    assert!(refused["offered"].as_array().unwrap().contains(&json!("cancel_eval")), "{refused}");
    assert_eq!(steps["ended"]["success"], false);
    assert_eq!(steps["kept"]["value"], "\"Rex\"", "definitions survive a cancel");
    assert_eq!(steps["gone"]["success"], false, "and not a reset");
    for step in ["created", "defined", "status", "cancelled", "reset", "hardReset", "stopped"] {
        assert_eq!(steps[step]["isError"], false, "{step}: {}", steps[step]);
        assert!(steps[step]["sessionId"].is_string(), "{step}: {}", steps[step]);
    }
}

#[test]
fn over_stdio() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    judge(&drive(&world, &["stdio", env!("CARGO_BIN_EXE_mainstay")]));
}

/// Over the daemon's port, at a path.
fn over_port(way: &str, path: &str) {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let port = world.run(["status", "--json"]).json()["port"].clone();
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    judge(&drive(&world, &[way, &format!("http://127.0.0.1:{port}{path}"), token.trim()]));
}

#[test]
fn over_http() {
    over_port("http", "/mcp");
}

#[test]
fn over_the_old_stream_of_events() {
    over_port("sse", "/sse");
}

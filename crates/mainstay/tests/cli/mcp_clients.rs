//! Public MCP clients drive a session, all but the inspector one of real F#: the SDK for Python over stdio, over HTTP and over the old HTTP+SSE, the SDK for
//! TypeScript and the inspector's command line over stdio and over HTTP.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::World;
use serde_json::{Value, json};

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
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // It ends its session over HTTP when it goes, and says only here that it could not.
    assert!(!told.contains("termination failed"), "{told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn judge(steps: &Value) {
    let tools: Vec<&str> = steps["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for tool in [
        "cancel_eval",
        "check_code",
        "create_session",
        "get_completions",
        "get_status",
        "get_recent_events",
        "hard_reset_session",
        "list_sessions",
        "reset_session",
        "send_code",
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
    assert_eq!(steps["waited"]["value"], "1", "it had its turn");
    assert_eq!(steps["kept"]["value"], "\"Rex\"", "definitions survive a cancel");
    assert_eq!(steps["gone"]["success"], false, "and not a reset");
    for step in ["created", "defined", "status", "cancelled", "reset", "hardReset", "stopped"] {
        assert_eq!(steps[step]["isError"], false, "{step}: {}", steps[step]);
        assert!(steps[step]["sessionId"].is_string(), "{step}: {}", steps[step]);
    }
}

/// The daemon's address for this path, and its token.
fn served(world: &World, path: &str) -> (String, String) {
    let port = world.run(["status", "--json"]).json()["port"].clone();
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    (format!("http://127.0.0.1:{port}{path}"), token.trim().to_owned())
}

/// A home whose daemon runs.
fn running(world: World) -> World {
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    world
}

#[test]
fn over_stdio() {
    judge(&drive(&running(World::new()), &["stdio", env!("CARGO_BIN_EXE_mainstay")]));
}

/// Over the daemon's port, at a path.
fn over_port(way: &str, path: &str) {
    let world = running(World::new());
    let (url, token) = served(&world, path);
    judge(&drive(&world, &[way, &url, &token]));
}

#[test]
fn over_http() {
    over_port("http", "/mcp");
}

#[test]
fn over_the_old_stream_of_events() {
    over_port("sse", "/sse");
}

/// Runs the client that is written with the SDK for TypeScript, and gives what each of its steps gave.
fn drive_in_javascript(world: &World, server: &[&str]) -> Value {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(support::node());
    command
        .arg(here.join("tests/clients/drive_mcp.mjs"))
        .arg(support::mcp_packages())
        .arg(here.join("../formats/tests/samples/claude-code-branches.jsonl").canonicalize().unwrap())
        .args(server)
        .current_dir(world.work())
        .env("MAINSTAY_HOME", world.home())
        .env("DOTNET_ROOT", support::dotnet());
    let output = command.output().unwrap();
    // It also says there what of a schema it does not know.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn judge_javascript(steps: &Value) {
    assert_eq!(steps["server"]["name"], "mainstay");
    let names = |step: &str| -> Vec<String> { serde_json::from_value(steps[step].clone()).unwrap() };
    assert!(names("tools").iter().any(|name| name == "send_code"), "{}", steps["tools"]);
    assert_eq!(steps["toldOfAnother"], true);
    assert_eq!((&steps["value"]["value"], &steps["value"]["type"]), (&json!("3"), &json!("int")));
    assert_eq!(steps["rejected"]["isError"], true);
    assert_eq!(steps["rejected"]["diagnostics"][0]["code"], "FS0001");
    assert_eq!(steps["printed"]["output"], "1\n2\n3\n");
    let heard = steps["heard"].as_array().unwrap();
    let told: String = heard.iter().filter_map(|heard| heard[1].as_str()).collect();
    assert!(heard.len() > 1 && told == "1\n2\n3\n", "{heard:?}");
    assert_eq!(steps["asked"]["value"], "\"Ada\"");
    let transcript = steps["transcript"].as_str().unwrap();
    assert!(transcript.starts_with("# driven\n") && transcript.contains("rex.Name.Length"), "{transcript}");
    assert_eq!(names("toolsOfConversation"), names("tools"), "the list is one for all sessions");
    assert_eq!(steps["ended"], steps["hadSession"], "{steps}");
    for step in ["created", "defined", "imported", "stopped"] {
        assert_eq!(steps[step]["isError"], false, "{step}: {}", steps[step]);
    }
}

#[test]
fn with_the_sdk_for_typescript_over_stdio() {
    judge_javascript(&drive_in_javascript(
        &running(World::new()),
        &["stdio", env!("CARGO_BIN_EXE_mainstay")],
    ));
}

#[test]
fn with_the_sdk_for_typescript_over_http() {
    let world = running(World::new());
    let (url, token) = served(&world, "/mcp");
    judge_javascript(&drive_in_javascript(&world, &["http", &url, &token]));
}

/// Has the inspector's command line ask a server for something.
fn inspect(world: &World, server: &[String], what: &[&str]) -> Value {
    let inspector = support::mcp_packages()
        .join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let mut command = Command::new(support::node());
    command.arg(inspector).arg("--cli").args(server).args(what).current_dir(world.work());
    // It keeps servers that it knows in its user's home.
    command.env("HOME", world.work());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{what:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn judge_inspector(world: &World, server: &[String]) {
    // It ends with an error where a schema is one that some clients cannot read.
    let listed = inspect(world, server, &["--method", "tools/list", "--strict"]);
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "send_code"), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "send_code", "--tool-arg"];
    let send = |code: &str| inspect(world, server, &[&call[..], &[&format!("code={code}")]].concat());
    assert_eq!(send("let x = 20 + 1")["structuredContent"]["success"], true);
    // Each of its runs is a connection of its own, and the session is the same.
    assert_eq!(send("x * 2")["structuredContent"]["value"], "42");
    let sessions = inspect(world, server, &["--method", "resources/read", "--uri", "mainstay://sessions"]);
    let text = sessions["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"state\":\"Ready\""), "{text}");
}

#[test]
fn with_the_inspector_over_stdio() {
    let world = running(World::scripted());
    let mut server = vec![env!("CARGO_BIN_EXE_mainstay").to_owned(), "mcp".to_owned()];
    for (name, value) in [("MAINSTAY_HOME", world.home()), ("DOTNET_ROOT", support::dotnet())] {
        server.extend(["-e".to_owned(), format!("{name}={}", value.display())]);
    }
    judge_inspector(&world, &server);
}

#[test]
fn with_the_inspector_over_http() {
    let world = running(World::scripted());
    let (url, token) = served(&world, "/mcp");
    let header = format!("Authorization: Bearer {token}");
    judge_inspector(&world, &[&url, "--transport", "http", "--header", &header].map(str::to_owned));
}

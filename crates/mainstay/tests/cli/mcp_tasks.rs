//! An MCP task outlives its connection and its daemon.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::World;
use serde_json::{Value, json};

/// Asks once, over a connection of its own, as a client of the newest protocol that knows tasks.
fn ask(world: &World, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let mut client = world.command().arg("mcp").stdin(stdin).stdout(stdout).spawn().unwrap();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    writeln!(client.stdin.as_mut().unwrap(), "{request}").unwrap();
    let lines = BufReader::new(client.stdout.as_mut().unwrap()).lines();
    let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = messages.find(|message| message["id"] == 1).expect("an answer");
    drop(client.stdin.take());
    client.wait().unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

/// A world with a task that has begun to run: it waits for a file.
fn begun() -> (World, Value) {
    let world = World::scripted();
    std::fs::write(world.home().join("config.toml"), "[limits]\ntask-after-ms = 1\n").unwrap();
    world.eval("let a = 3");
    let code = json!({ "code": "printfn \"begun\"\nwhile not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5\na * 2" });
    let begun = ask(&world, "tools/call", json!({ "name": "send_code", "arguments": code }));
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")));
    assert_eq!(ask(&world, "tasks/get", of(&begun))["status"], json!("working"));
    world.follow(0).wait_for("outputProduced");
    (world, begun)
}

fn of(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

#[test]
fn a_task_goes_on_under_the_next_daemon_which_finds_it_by_its_id() {
    let (world, begun) = begun();
    world.kill_daemon();
    assert_eq!(ask(&world, "tasks/get", of(&begun))["status"], json!("working"));
    let since = world.session()["lastSeq"].as_u64().unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    world.follow(since).wait_for("evalCompleted");
    let ended = ask(&world, "tasks/get", of(&begun));
    assert_eq!((&ended["taskId"], &ended["status"]), (&begun["taskId"], &json!("completed")));
    let answer = &ended["result"]["structuredContent"];
    assert_eq!((&answer["value"], &answer["output"]), (&json!("6"), &json!("begun\n")), "{ended}");
}

#[test]
fn a_task_that_a_restart_of_the_machine_cut_off_is_found_by_its_id_in_the_next_daemon() {
    let (world, begun) = begun();
    world.kill_everything();
    let ended = ask(&world, "tasks/get", of(&begun));
    assert_eq!((&ended["taskId"], &ended["status"]), (&begun["taskId"], &json!("completed")));
    let answer = &ended["result"];
    assert_eq!(answer["isError"], json!(true));
    assert_eq!(answer["structuredContent"]["error"]["kind"], json!("Interrupted"));
    assert_eq!(answer["structuredContent"]["output"], json!("begun\n"));
    let value = world.eval("a")["value"].clone();
    assert_eq!(value, json!("3"), "the session is back with its definitions");
}

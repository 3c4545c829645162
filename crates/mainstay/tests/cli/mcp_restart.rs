//! What an MCP client finds when the daemon was lost under it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{World, kill, within};
use serde_json::{Value, json};

/// Starts a daemon, and gives its port.
fn start(world: &World) -> u16 {
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    u16::try_from(world.run(["status", "--json"]).json()["port"].as_u64().unwrap()).unwrap()
}

/// Says something to MCP over HTTP, and gives all that comes back; nothing where the daemon is lost meanwhile.
fn say(world: &World, port: u16, session: Option<&str>, message: &Value) -> String {
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let session = session.map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default();
    let (folder, token, body) = (world.work(), token.trim(), message.to_string());
    let request = format!(
        "POST /mcp?folder={} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{session}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        folder.display(),
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8(answer).unwrap()
}

/// Begins a session of the transport, and gives its id.
fn begin(world: &World, port: u16) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "it", "version": "1" } } });
    let answer = say(world, port, None, &hello);
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.unwrap_or_else(|| panic!("{answer}")).trim().to_owned();
    say(world, port, Some(&id), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    id
}

#[test]
fn a_lost_daemon_leaves_a_clean_end_of_the_transport_session_and_the_outcome_of_its_code() {
    let world = World::scripted();
    let port = start(&world);
    assert_eq!(world.eval("let kept = 20")["success"], true);
    let before = world.events().len() as u64;
    let id = begin(&world, port);
    let code = "printfn \"begun\"; while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5; kept * 2";
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "send_code", "arguments": { "code": code, "idempotencyKey": "once" } } });
    std::thread::scope(|scope| {
        let running = scope.spawn(|| say(&world, port, Some(&id), &call));
        world.follow(before).wait_for("outputProduced");
        world.kill_daemon();
        let cut = running.join().unwrap();
        assert!(!cut.contains("structuredContent"), "{cut}");
    });

    let port = start(&world);
    let gone = say(&world, port, Some(&id), &call);
    assert!(gone.starts_with("HTTP/1.1 404 "), "{gone}");
    let id = begin(&world, port);
    let found = std::thread::scope(|scope| {
        let found = scope.spawn(|| say(&world, port, Some(&id), &call));
        std::fs::write(world.work().join("go"), "").unwrap();
        found.join().unwrap()
    });
    assert!(found.contains(r#""value":"40""#) && found.contains(r#""output":"begun\n""#), "{found}");
    let evals = world.events().iter().filter(|event| event["kind"] == "evalRequested").count();
    assert_eq!(evals, 2, "it ran once");
    assert_eq!(world.eval("kept + 1")["value"], "21");
}

#[test]
fn code_whose_client_was_killed_goes_on_and_the_session_says_so() {
    let world = World::scripted();
    start(&world);
    assert_eq!(world.eval("let kept = 20")["success"], true);
    let before = world.events().len() as u64;
    let mut client = world.command().arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "lost", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let code = "printfn \"begun\"; System.Threading.Thread.Sleep -1";
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "send_fsharp_code", "arguments": { "code": code } } });
    let said = format!("{hello}\n{ready}\n{call}\n");
    client.stdin.as_mut().unwrap().write_all(said.as_bytes()).unwrap();
    world.follow(before).wait_for("outputProduced");
    let told = || world.run(["status"]).stdout;
    assert!(!told().contains("its client is gone"), "{}", told());

    kill(i32::try_from(client.id()).unwrap());
    client.wait().unwrap();
    let words = "what mcp:lost sent ";
    assert!(within(Duration::from_secs(10), || told().contains(words)), "{}", told());
    let session = world.session();
    assert_eq!(session["orphaned"]["by"], "mcp:lost", "{session}");
    assert!(told().contains("still runs, and its client is gone; `mainstay cancel --session"), "{}", told());
    assert_eq!(world.run(["cancel"]).code, 0);
    assert!(!told().contains("its client is gone"), "{}", told());
}

//! Agents: MCP over the daemon's socket and over its port. Their answers are looked at for form only; what their evals do is in the
//! events that everyone follows.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::load::Done;
use super::rpc::{Connection, Trouble};
use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(150);

/// Comes, looks round, runs code, and goes.
pub(super) fn speak(stage: &Stage, session: &str) -> Done {
    let mut connection = Connection::open_mcp(&stage.installation)?;
    connection.call("initialize", initialize())?;
    connection.notify("notifications/initialized")?;
    for tool in tools(session) {
        let answer = connection.call("tools/call", tool)?;
        if answer["content"].is_null() {
            stage.fault(format!("a tool answered without content: {answer}"));
        }
    }
    Ok(())
}

/// The same over HTTP, with a session of the transport that is given back at the end.
pub(super) fn speak_over_http(stage: &Stage, session: &str) -> Done {
    let opened = post(stage, None, &request(1, "initialize", initialize()))?;
    let transport = opened.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    let transport = transport.as_deref();
    post(stage, transport, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    for (id, tool) in (2..).zip(tools(session)) {
        let answer = post(stage, transport, &request(id, "tools/call", tool))?;
        if !answer.contains("\"content\"") {
            stage.fault(format!("a tool answered without content over HTTP: {answer}"));
        }
    }
    exchange(stage, "DELETE", transport, "")?;
    Ok(())
}

fn tools(session: &str) -> [Value; 3] {
    [
        json!({ "name": "list_sessions", "arguments": {} }),
        json!({ "name": "send_code", "arguments": { "sessionId": session, "code": "3 * 3" } }),
        json!({ "name": "get_recent_events", "arguments": { "sessionId": session } }),
    ]
}

fn initialize() -> Value {
    let client = json!({ "name": "soak", "version": "1" });
    json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client })
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn post(stage: &Stage, transport: Option<&str>, message: &Value) -> Result<String, Trouble> {
    exchange(stage, "POST", transport, &message.to_string())
}

/// One request on a connection of its own; gives head and body as they came.
fn exchange(stage: &Stage, method: &str, transport: Option<&str>, body: &str) -> Result<String, Trouble> {
    let daemon = stage.installation.daemon().ok_or(Trouble::Lost)?;
    let token = stage.installation.token().ok_or(Trouble::Lost)?;
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(daemon.port).unwrap_or_default()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let session = transport.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let (port, length) = (daemon.port, body.len());
    let head = format!(
        "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{session}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.contains("transfer-encoding: chunked") && !answer.ends_with("0\r\n\r\n") {
        // The last chunk is missing: the daemon was killed.
        return Err(Trouble::Lost);
    }
    match answer.split_whitespace().nth(1) {
        Some(status) if status.starts_with('2') => Ok(answer),
        // The transport's sessions end with the daemon that has them.
        Some("404") | None => Err(Trouble::Lost),
        Some(status) => Err(Trouble::Refused { code: format!("HTTP {status}"), error: json!(answer) }),
    }
}

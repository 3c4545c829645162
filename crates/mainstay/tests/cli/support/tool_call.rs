//! An agent that calls one tool.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::World;

/// Calls a tool over MCP, over a connection of its own.
pub(crate) fn call(world: &World, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let mut client = world.command().arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    writeln!(client.stdin.as_mut().unwrap(), "{request}").unwrap();
    let lines = BufReader::new(client.stdout.as_mut().unwrap()).lines();
    let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = messages.find(|message| message["id"] == 1).expect("an answer");
    drop(client.stdin.take());
    client.wait().unwrap();
    answer["result"]["structuredContent"].clone()
}

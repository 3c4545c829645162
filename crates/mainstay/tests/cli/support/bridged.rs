//! A client of MCP over `mainstay mcp`, as agents start it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::support::World;

/// One client, whose bridge ends with it.
pub(crate) struct Bridged {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What came while something else was waited for.
    early: VecDeque<Value>,
    last_id: u64,
}

impl Bridged {
    /// Starts the bridge, and says nothing yet.
    pub(crate) fn silent(world: &World, arguments: &[&str]) -> Self {
        let mut command = world.command();
        command.arg("mcp").args(arguments);
        Self::started(command)
    }

    /// The same, of a command that is ready to start.
    pub(crate) fn started(mut command: std::process::Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, early: VecDeque::new(), last_id: 0 }
    }

    /// Starts the bridge, and introduces itself.
    pub(crate) fn begin(world: &World) -> Self {
        let mut client = Self::silent(world, &[]);
        client.introduce();
        client
    }

    pub(crate) fn introduce(&mut self) {
        let answer = self.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "bridged", "version": "1" } }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request, and gives its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a call of a tool, and gives its id.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits for the next message that fits; what comes before it is kept.
    pub(crate) fn wait_until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the bridge ended: {:?}", self.early);
            let message: Value = serde_json::from_str(&line).unwrap();
            if fits(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait_until(|message| message["id"] == id && message["method"].is_null())
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool; gives whether it failed, and its words.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let id = self.begin_call(tool, arguments);
        self.called(id)
    }

    /// Waits for the answer to a call.
    pub(crate) fn called(&mut self, id: u64) -> (bool, String) {
        let answer = self.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(!answer.to_string().contains("mainstay/session"), "{answer}");
        (answer["result"]["isError"] == true, text.to_owned())
    }

    /// Runs code; gives whether it failed, and what is said of it.
    pub(crate) fn eval(&mut self, code: &str) -> (bool, String) {
        self.call("send_fsharp_code", json!({ "code": code }))
    }

    /// Ends its input, and waits for the end of the bridge.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.input.take();
        self.child.wait().unwrap()
    }
}

impl Drop for Bridged {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

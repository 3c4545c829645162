//! The real netcoredbg, where `MAINSTAY_TEST_NETCOREDBG` names its program: a session is debugged as by an editor, and lives on.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::debug_command::{framed, project_world, request, save};
use crate::support::World;

/// An editor with a debug adapter of its own.
struct Editor {
    adapter: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: u64,
}

impl Editor {
    fn begin(world: &World) -> Self {
        let mut command = world.command();
        command.args(["debug", "--dap"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut adapter = command.spawn().unwrap();
        let (input, output) = (adapter.stdin.take().unwrap(), adapter.stdout.take().unwrap());
        Self { adapter, input, output: BufReader::new(output), sent: 0 }
    }

    fn message(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the adapter has ended");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(bytes) => length = bytes.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn until(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.message();
            if is_meant(&message) {
                return message;
            }
        }
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        self.sent += 1;
        let seq = self.sent;
        self.input.write_all(framed(&request(seq, command, arguments)).as_bytes()).unwrap();
        self.until(|message| message["type"] == "response" && message["request_seq"] == seq)
    }

    /// Attaches with a breakpoint in a line; what came of it.
    fn attach(&mut self, world: &World, line: u32) -> Value {
        let source = world.work().canonicalize().unwrap().join("Shop.fs");
        self.ask("initialize", &json!({"adapterID": "coreclr"}));
        self.ask("attach", &json!({"justMyCode": false}));
        self.ask("setBreakpoints", &json!({"source": {"path": source}, "breakpoints": [{"line": line}]}));
        self.ask("configurationDone", &json!({}))
    }

    /// Lets go, and stays: the adapter ends by itself.
    fn part(mut self) {
        assert_eq!(self.ask("disconnect", &json!({"terminateDebuggee": true}))["success"], true);
        assert!(self.adapter.wait().unwrap().success());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn netcoredbg_stops_an_eval_and_lets_the_session_live_on() {
    let Some(debugger) = std::env::var_os("MAINSTAY_TEST_NETCOREDBG") else {
        return eprintln!("MAINSTAY_TEST_NETCOREDBG names no debugger: nothing is tested");
    };
    let temporary = tempfile::tempdir().unwrap();
    let world = project_world(&format!("[fsharp]\ndebugger = {debugger:?}\n"), temporary.path());
    let pid = world.worker_pid();
    let mut editor = Editor::begin(&world);
    let attached = editor.attach(&world, 2);
    assert_eq!(attached["success"], true, "{attached}");
    let waiting = world.start_eval("Shop.Cart.price 4");
    let stopped = editor.until(|message| message["event"] == "stopped");
    let thread = &stopped["body"]["threadId"];
    let frames = editor.ask("stackTrace", &json!({"threadId": thread}));
    let frame = &frames["body"]["stackFrames"][0];
    assert_eq!((&frame["name"], &frame["line"]), (&json!("Shop.Cart.price()"), &json!(2)), "{frames}");
    let scopes = editor.ask("scopes", &json!({"frameId": frame["id"]}));
    let reference = &scopes["body"]["scopes"][0]["variablesReference"];
    let variables = editor.ask("variables", &json!({"variablesReference": reference}));
    let count = &variables["body"]["variables"][0];
    assert_eq!((&count["name"], &count["value"]), (&json!("count"), &json!("4")), "{variables}");
    editor.ask("continue", &json!({"threadId": thread}));
    let done = waiting.wait_with_output().unwrap();
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done["value"], "40", "{done}");
    editor.part();
    assert_eq!((world.eval("Shop.Cart.price 2")["value"].clone(), world.worker_pid()), ("20".into(), pid));

    // It is refused once code was swapped, until there is another worker.
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    save(&world, 100);
    follower.wait_for("sourcesSwapped");
    assert_eq!(world.eval("Shop.Cart.price 2")["value"], "200");
    let mut editor = Editor::begin(&world);
    let refused = editor.attach(&world, 2);
    assert_eq!(refused["success"], false, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("session rebuild --keep"), "{refused}");
    editor.part();
    let rebuilt = world.run(["session", "rebuild", "--keep"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert!(!world.run(["debug", "--json"]).stderr.contains("0x80131c69"));
    let mut editor = Editor::begin(&world);
    let attached = editor.attach(&world, 2);
    assert_eq!(attached["success"], true, "{attached}");
    editor.part();
}

//! `mainstay debug`: what it starts, what passes through it, and a worker that a debugger is attached to: the debugging library of the
//! runtime itself.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Finished, World};

fn scripted_debugger() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted/netcoredbg.py")
}

fn configure(world: &World, settings: &str) {
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
}

/// A session whose worker knows a few forms of F#, with the scripted debugger.
fn scripted_world() -> World {
    let world = World::scripted();
    configure(&world, &format!("[fsharp]\ndebugger = {:?}\n", scripted_debugger()));
    assert_eq!(world.eval("1 + 1")["value"], "2");
    world
}

pub(crate) fn framed(message: &Value) -> String {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

/// The messages in what an adapter has written.
fn messages(text: &str) -> Vec<Value> {
    let bodies = text.split("Content-Length: ").skip(1).map(|part| part.split_once("\r\n\r\n").unwrap().1);
    bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
}

/// What an editor that sends these messages gets, and what the debugger got.
fn adapted(world: &World, sent: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let log = world.work().join("log");
    let mut command = world.command();
    command.args(["debug", "--dap"]).env("NETCOREDBG_LOG", &log);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text: String = sent.iter().map(framed).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = std::fs::read_to_string(log).unwrap();
    let got = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (messages(std::str::from_utf8(&output.stdout).unwrap()), got)
}

pub(crate) fn request(seq: u64, command: &str, arguments: &Value) -> Value {
    json!({"seq": seq, "type": "request", "command": command, "arguments": arguments})
}

#[test]
fn an_editor_that_launches_a_program_is_attached_to_the_worker() {
    let world = scripted_world();
    let pid = world.worker_pid();
    let sent = [
        request(1, "initialize", &json!({"adapterID": "mainstay"})),
        request(2, "launch", &json!({"program": "/somewhere/else.dll", "processId": 1, "justMyCode": false})),
        request(3, "setBreakpoints", &json!({"source": {"path": "/shop/Cart.fs"}})),
        request(4, "terminate", &json!({})),
    ];
    let (answered, got) = adapted(&world, &sent);
    assert_eq!((&got[0], &got[2]), (&sent[0], &sent[2]), "these pass as they are");
    assert_eq!((&got[1]["command"], &got[1]["arguments"]["processId"]), (&json!("attach"), &json!(pid)));
    assert_eq!(got[3], request(4, "disconnect", &json!({"terminateDebuggee": false})));
    let commands: Vec<_> = answered.iter().map(|answer| answer["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["initialize", "launch", "setBreakpoints", "terminate"], "as the editor named them");
    assert_eq!(answered[0]["body"]["supportsTerminateRequest"], false);
    assert_eq!(world.worker_pid(), pid);
}

#[test]
fn an_editor_that_stays_after_the_debugger_has_let_go_keeps_no_adapter() {
    let world = scripted_world();
    let mut command = world.command();
    command.args(["debug", "--dap"]).env("NETCOREDBG_LOG", world.work().join("log"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // What it reads stays open until it has ended.
    let mut editor = child.stdin.take().unwrap();
    let sent = [request(1, "attach", &json!({})), request(2, "disconnect", &json!({}))];
    editor.write_all(sent.iter().map(framed).collect::<String>().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(editor);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(messages(std::str::from_utf8(&output.stdout).unwrap()).len(), 2);
}

#[test]
fn an_editor_is_told_why_the_runtime_refuses_a_debugger_and_what_helps() {
    let world = scripted_world();
    let log = world.work().join("log");
    let mut command = world.command();
    command.args(["debug", "--dap"]).env("NETCOREDBG_LOG", log);
    command.env("NETCOREDBG_REFUSAL", "Failed command 'configurationDone' : 0x80131c69");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let sent = [request(1, "attach", &json!({})), request(2, "configurationDone", &json!({}))];
    let text: String = sent.iter().map(framed).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answered = messages(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!((&answered[0]["success"], &answered[1]["success"]), (&json!(true), &json!(false)));
    let told = answered[1]["message"].as_str().unwrap();
    assert!(told.contains("session rebuild --keep"), "{told}");
    assert_eq!(answered[1]["body"]["error"]["format"], told);
}

#[test]
fn an_editor_that_goes_without_a_word_has_the_debugger_let_go() {
    let world = scripted_world();
    let (_, got) = adapted(&world, &[request(1, "attach", &json!({}))]);
    let commands: Vec<_> = got.iter().map(|message| message["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["attach", "disconnect"]);
}

#[test]
fn the_debugger_has_the_terminal_and_the_worker() {
    let world = scripted_world();
    let debugged = world.run_with_input(["debug"], b"backtrace\n");
    assert_eq!(debugged.code, 0, "{debugged:?}");
    assert_eq!(debugged.stdout, format!("attached to {}\nbacktrace\n", world.worker_pid()));
}

/// The same with the process left out, which is another each time.
fn shown(world: &World, finished: &Finished) -> String {
    let text = format!("{}{}", finished.stdout, finished.stderr);
    text.replace(&world.worker_pid().to_string(), "PID")
}

#[test]
fn where_there_is_no_debugger_it_is_said_how_to_get_one() {
    let world = World::scripted();
    assert_eq!(world.eval("1 + 1")["value"], "2");
    let mut command = world.command();
    let output = command.arg("debug").env("PATH", "/no/such/folder").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(text.replace(&world.worker_pid().to_string(), "PID"));
    configure(&world, "[fsharp]\ndebugger = \"/no/such/netcoredbg\"\n");
    let wrong = world.run(["debug"]);
    assert_eq!(wrong.code, 1);
    insta::assert_snapshot!(shown(&world, &wrong));
    let error = world.run(["debug", "--dap"]);
    assert_eq!((error.code, error.stdout.as_str()), (1, ""), "an editor reads messages alone");
    let needed = world.run(["debug", "--json"]).json();
    assert_eq!((&needed["pid"], &needed["debugger"]), (&json!(world.worker_pid()), &Value::Null));
}

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Shop.fs" /></ItemGroup>
</Project>"#;

/// Saves as editors do: another file takes the place of the former.
pub(crate) fn save(world: &World, price: u32) {
    let text = format!("module Shop.Cart\nlet price (count: int) = count * {price}\n");
    std::fs::write(world.work().join("new"), text).unwrap();
    std::fs::rename(world.work().join("new"), world.work().join("Shop.fs")).unwrap();
}

/// A session of a project, in whose environment this folder is that of temporary files.
pub(crate) fn project_world(settings: &str, temporary: &Path) -> World {
    let world = World::new();
    configure(&world, settings);
    std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
    save(&world, 10);
    // Only the session is to have the folder: the daemon has its own.
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut made = world.command();
    made.args(["session", "new", "--project", "Shop.fsproj"]).env("TMPDIR", temporary);
    let made = made.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    assert_eq!(world.eval("Shop.Cart.price 2")["value"], "20");
    world
}

fn doors(temporary: &Path) -> Vec<String> {
    let names = std::fs::read_dir(temporary).unwrap().map(|entry| entry.unwrap().file_name());
    let mut doors: Vec<_> = names
        .map(|name| name.into_string().unwrap())
        .filter(|name| name.starts_with("clr-debug-pipe-") || name.starts_with("dotnet-diagnostic-"))
        .collect();
    doors.sort();
    doors
}

fn attaching(pid: i32, temporary: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/managed_debugger.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(pid.to_string()).env("TMPDIR", temporary);
    command
}

/// The debugging library of the runtime, attached to a process.
struct Debugger {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Debugger {
    fn attach(pid: i32, temporary: &Path) -> Self {
        let mut command = attaching(pid, temporary);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut debugger = Self { process, input, output: BufReader::new(output) };
        assert_eq!(debugger.answer(), "attached");
        debugger
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Has it do something, and waits until it is done.
    fn has(&mut self, word: &str) {
        writeln!(self.input, "{word}").unwrap();
        assert_eq!(self.answer(), word);
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_swapped_or_built_while_a_debugger_is_attached() {
    let temporary = tempfile::tempdir().unwrap();
    let world = project_world("[fsharp]\non-obstacle = \"build\"\n", temporary.path());
    let pid = world.worker_pid();
    let pipes = doors(temporary.path());
    assert!(pipes.iter().all(|pipe| pipe.starts_with(&format!("clr-debug-pipe-{pid}-"))), "{pipes:?}");
    assert_eq!(pipes.len(), 2, "a debugger's alone: {pipes:?}");
    let needed = world.run(["debug", "--json"]);
    assert!(!needed.stderr.contains("0x80131c69"), "{needed:?}");
    let needed = needed.json();
    assert_eq!((&needed["pid"], &needed["launch"]["processId"]), (&json!(pid), &json!(pid)), "{needed}");
    let assembly = &needed["assemblies"][0];
    let built = world.work().canonicalize().unwrap().join("bin/Debug/net10.0/Shop.dll");
    assert_eq!(assembly["built"], json!(built), "{needed}");
    let symbols = PathBuf::from(assembly["symbols"].as_str().unwrap());
    assert_eq!(json!(symbols.with_extension("dll")), assembly["loaded"]);
    assert!(symbols.is_file() && symbols.starts_with(world.home().join("copies")), "{needed}");

    let mut debugger = Debugger::attach(pid, temporary.path());
    assert_eq!(world.eval("System.Diagnostics.Debugger.IsAttached")["value"], "true");
    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    save(&world, 100);
    let swap = follower.wait_for("sourcesSwapped");
    let obstacle = &swap["body"]["obstacles"][0];
    assert_eq!(
        (&obstacle["code"], &obstacle["reason"]),
        (&json!("debugger_attached"), &json!("a debugger is attached")),
        "{swap}"
    );
    assert_eq!((world.eval("Shop.Cart.price 2")["value"].clone(), world.worker_pid()), ("20".into(), pid));
    debugger.has("detach");
    save(&world, 1000);
    follower.wait_for("sourcesSwapped");
    assert_eq!((world.eval("Shop.Cart.price 2")["value"].clone(), world.worker_pid()), ("2000".into(), pid));
    // The runtime refuses a debugger from then on, which is said before one tries.
    let refused = attaching(pid, temporary.path()).output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("0x80131c69"), "{why}");
    let told = world.run(["debug", "--json"]);
    assert!(told.stderr.contains("session rebuild --keep"), "{told:?}");
    let built = world.events().iter().any(|event| event["kind"] == "jobRequested");
    assert!(!built, "another worker would have been lost to the debugger");

    crate::support::kill(pid);
    follower.wait_for("workerExited");
    assert!(
        !doors(temporary.path()).iter().any(|pipe| pipe.contains(&format!("-{pid}-"))),
        "a killed one leaves nothing"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_that_stands_is_ended_by_a_cancel_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let world = project_world("[limits]\nquery-ms = 500\ncancel-grace-ms = 300\n", temporary.path());
    let pid = world.worker_pid();
    let mut debugger = Debugger::attach(pid, temporary.path());
    debugger.has("stop");
    let waiting = world.start_eval("40 + 2");
    let asked = world.run(["explore", "Shop.Cart"]);
    assert_eq!(asked.code, 1, "nobody answers: {asked:?}");
    assert!(asked.stderr.contains("timeout") || asked.stderr.contains("no answer within"), "{asked:?}");
    assert_eq!(world.worker_pid(), pid);
    debugger.has("go");
    let done = waiting.wait_with_output().unwrap();
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&done["value"], world.worker_pid()), (&json!("42"), pid));

    debugger.has("stop");
    world.replace_daemon();
    assert_eq!(world.worker_pid(), pid, "another daemon takes over what stands");
    debugger.has("go");
    assert_eq!((world.eval("40 + 4")["value"].clone(), world.worker_pid()), ("44".into(), pid));

    let mut follower = world.follow(world.session()["lastSeq"].as_u64().unwrap());
    debugger.has("stop");
    let standing = world.start_eval("40 + 3");
    follower.wait_for("evalRequested");
    assert_eq!(world.run(["cancel"]).code, 0);
    follower.wait_for("warmUpCompleted");
    let ended = standing.wait_with_output().unwrap();
    let ended: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended["success"], false, "{ended}");
    drop(debugger);
    assert_eq!(world.eval("Shop.Cart.price 2")["value"], "20");
    assert_ne!(world.worker_pid(), pid);
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_that_was_started_without_admits_none_until_there_is_another() {
    let temporary = tempfile::tempdir().unwrap();
    let settings = |debugging: bool| {
        format!("[fsharp]\ndebugging = {debugging}\ndebugger = {:?}\n", scripted_debugger())
    };
    let world = project_world(&settings(false), temporary.path());
    assert_eq!(doors(temporary.path()), Vec::<String>::new());
    let refused = world.run(["debug"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let short = world.session()["shortId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(shown(&world, &refused).replace(&short, "SESSION"));
    // What it says helps.
    configure(&world, &settings(true));
    for step in [&["restart"][..], &["session", "rebuild", "--keep", &short]] {
        let done = world.run(step);
        assert_eq!(done.code, 0, "{done:?}");
    }
    let debugged = world.run(["debug"]);
    assert_eq!((debugged.code, debugged.stdout), (0, format!("attached to {}\n", world.worker_pid())));
}

//! What agents' sessions cost the daemon: from nothing to the first frame of the pi protocol, and the memory of many idle sessions, of
//! which nothing was asked yet or which have had a turn of the real pi. `cargo xtask bench` runs it with the release build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

#[path = "shared/memory.rs"]
mod memory;

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_test_support::model::{Model, say};
use serde_json::{Value, json};

use memory::Memory;

const STARTS: usize = 20;
const SESSIONS: usize = 50;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(target).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(Model::start());
    let home = Home::new(folder.path().join("home"), &model);
    println!("| from the start of | to its first `server_ready`, median | longest |\n|---|---|---|");
    tell("a daemon, over WebSocket", || home.over_web_socket());
    tell("a daemon, by `mainstay pi`, which starts it", || home.over_stdio());
    let daemon = home.daemon();
    tell("`mainstay pi`, beside a daemon", || home.first_line());
    drop(daemon);
    println!(
        "\n| the daemon alone | resident | of that not the program's file | each session |\n|---|---|---|---|"
    );
    measure_memory(&home, &model);
}

fn tell(what: &str, measure: impl Fn() -> Duration) {
    let mut took: Vec<Duration> = (0..STARTS).map(|_| measure()).collect();
    took.sort_unstable();
    let ms = |took: Duration| took.as_secs_f64() * 1000.0;
    println!("| {what} | {:.1} ms | {:.1} ms |", ms(took[STARTS / 2]), ms(took[STARTS - 1]));
}

/// A daemon's memory with one client of the pi protocol, before it has sessions, with many, and once each has had a turn.
fn measure_memory(home: &Home, model: &Model) {
    let daemon = home.daemon();
    let mut client = home.client();
    client.ask(&json!({ "id": "1", "type": "list_sessions" }));
    let empty = daemon.memory();
    println!("| idle | {empty} | |");
    let row = |what: &str| {
        let memory = daemon.memory();
        let each = memory.own.saturating_sub(empty.own) / SESSIONS as u64 / 1000;
        println!("| {SESSIONS} {what} | {memory} | {each} kB |");
    };
    for number in 0..SESSIONS {
        client.ask(
            &json!({ "id": format!("c{number}"), "type": "create_session", "sessionId": format!("s{number}") }),
        );
    }
    row("sessions that were created");
    if std::env::var_os("MAINSTAY_TEST_PI").is_none() {
        println!("MAINSTAY_TEST_PI names no pi, so they have no turn");
        return;
    }
    for number in 0..SESSIONS {
        model.will(say(&["Good day."]));
        client.ask(&json!({ "id": format!("p{number}"), "type": "prompt", "sessionId": format!("s{number}"), "message": "good day" }));
    }
    while home.has_workers() {
        std::thread::sleep(Duration::from_millis(200));
    }
    row("idle sessions, each after a turn");
    drop(daemon);
    drop(client);
    let daemon = home.daemon();
    println!("| the same, in the next daemon | {} | |", daemon.memory());
}

/// Where a daemon lives whose agents ask a model that says what it is told to.
struct Home(PathBuf);

impl Home {
    fn new(folder: PathBuf, model: &Model) -> Self {
        let agents = folder.join("pi");
        std::fs::create_dir_all(&agents).unwrap();
        let models = json!({ "providers": { "local": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "hidden",
            "models": [{ "id": "m", "contextWindow": 128_000, "maxTokens": 4096 }],
        }}});
        std::fs::write(agents.join("models.json"), models.to_string()).unwrap();
        let pi = std::env::var("MAINSTAY_TEST_PI").unwrap_or_else(|_| "pi".to_owned());
        let settings = format!(
            "[daemon]\nport = 0\n[limits]\nagent-idle-ms = 100\n\
             [pi]\npath = {pi:?}\nprovider = \"local\"\nmodel = \"m\"\n[pi.environment]\nPI_CODING_AGENT_DIR = {agents:?}\n",
        );
        std::fs::write(folder.join("config.toml"), settings).unwrap();
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(arguments)
            .env("MAINSTAY_HOME", &self.0)
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn daemon(&self) -> Daemon {
        let mut child =
            self.command(&["serve", "--announce", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap();
        let port = announced["ready"]["port"].as_u64().unwrap().try_into().unwrap();
        Daemon { child, port }
    }

    fn client(&self) -> Client {
        let mut child = self.command(&["pi"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Client { child, stdin, frames: BufReader::new(stdout).lines() }
    }

    fn over_web_socket(&self) -> Duration {
        let began = Instant::now();
        let daemon = self.daemon();
        let token = std::fs::read_to_string(self.0.join("token")).unwrap();
        is_ready(&daemon.first_frame(token.trim()));
        began.elapsed()
    }

    fn over_stdio(&self) -> Duration {
        let took = self.first_line();
        assert!(self.command(&["stop"]).stdout(Stdio::null()).status().unwrap().success());
        took
    }

    fn first_line(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client();
        is_ready(&client.frame());
        began.elapsed()
    }

    fn has_workers(&self) -> bool {
        let listed = self.command(&["session", "list", "--json"]).output().unwrap().stdout;
        let sessions: Value = serde_json::from_slice(&listed).unwrap();
        sessions.as_array().unwrap().iter().any(|session| session["worker"].is_object())
    }
}

fn is_ready(frame: &Value) {
    assert_eq!(frame["type"], "server_ready", "{frame}");
}

/// A daemon of its own, stopped with the value.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    fn memory(&self) -> Memory {
        Memory::of(self.child.id().into())
    }

    /// The least of a WebSocket: the first frame that comes.
    fn first_frame(&self, token: &str) -> Value {
        let port = self.port;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
        write!(stream, "GET /pi?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{key}\r\n\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let mut begin = [0; 2];
        stream.read_exact(&mut begin).unwrap();
        let mut length = u16::from(begin[1]);
        if length == 126 {
            let mut long = [0; 2];
            stream.read_exact(&mut long).unwrap();
            length = u16::from_be_bytes(long);
        }
        let mut frame = vec![0; length.into()];
        stream.read_exact(&mut frame).unwrap();
        serde_json::from_slice(&frame).unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

/// A client that speaks to `mainstay pi`.
struct Client {
    child: Child,
    stdin: ChildStdin,
    frames: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn frame(&mut self) -> Value {
        serde_json::from_str(&self.frames.next().unwrap().unwrap()).unwrap()
    }

    /// Sends a command, and waits for its answer.
    fn ask(&mut self, command: &Value) {
        writeln!(self.stdin, "{command}").unwrap();
        loop {
            let frame = self.frame();
            if frame["type"] == "response" && frame["id"] == command["id"] {
                assert_eq!(frame["success"], true, "{frame}");
                return;
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

//! The daemon beside jupyter_server on the same machine, each with one session and one client: an execution there and back, and the lines that
//! code prints. `cargo xtask bench` runs it with the release build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

const EXECUTIONS: usize = 300;
const LINES: usize = 5_000;
const TOKEN: &str = "bench";

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    println!(
        "| | `1+1` there and back, median | p99 | {LINES} lines printed, all at the client | lines a second | the server's memory |\n|---|---|---|---|---|---|"
    );
    let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(target).unwrap();
    ours(folder.path());
    match std::env::var("MAINSTAY_TEST_PYTHON") {
        Ok(python) => theirs(folder.path(), &python),
        Err(_) => println!("MAINSTAY_TEST_PYTHON names no Python with jupyter_server and ipykernel"),
    }
}

/// A process that ends with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.0.wait().ok();
    }
}

fn row(what: &str, mut took: Vec<Duration>, printed: Duration, Server(server): &Server) {
    took.sort_unstable();
    let ms = |took: Duration| took.as_secs_f64() * 1000.0;
    let (median, p99) = (ms(took[took.len() / 2]), ms(took[took.len() * 99 / 100]));
    let (all, rate) = (ms(printed), LINES as f64 / printed.as_secs_f64());
    let memory = resident(server);
    println!("| {what} | {median:.1} ms | {p99:.1} ms | {all:.0} ms | {rate:.0} | {memory:.0} MB |");
}

/// Megabytes of a process alone, without the kernel.
fn resident(process: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1.024 / 1000.0
}

/// A session of F#: what is answered is on the disk.
fn ours(folder: &Path) {
    let home = folder.join("home");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["serve", "--announce", "--port", "0"])
        .env("MAINSTAY_HOME", &home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let server = Server(child);
    let announced: Value = serde_json::from_str(&line).unwrap();
    let port = announced["ready"]["port"].as_u64().unwrap().try_into().unwrap();
    let token = std::fs::read_to_string(home.join("token")).unwrap().trim().to_owned();
    let mut http = Http::to(port, &format!("Authorization: Bearer {token}"));
    let created = json!({ "kind": "fsharp", "name": "bench", "workingDirectory": folder });
    let created = http.ask("POST", "/sessions", "Prefer: wait=60\r\n", &created);
    assert_eq!(created["state"], "Ready", "{created}");
    let mut execute = |code: &str| {
        let done = http.ask("POST", "/exec?session=bench", "Prefer: wait=60\r\n", &json!({ "code": code }));
        assert_eq!(done["success"], true, "{done}");
        Duration::from_millis(done["durationMs"].as_u64().unwrap_or_default())
    };
    for _ in 0..20 {
        execute("1+1");
    }
    let (mut took, mut in_worker) = (Vec::new(), Vec::new());
    for _ in 0..EXECUTIONS {
        let began = Instant::now();
        in_worker.push(execute("1+1"));
        took.push(began.elapsed());
    }
    in_worker.sort_unstable();
    let mut stream = Http::to(port, &format!("Authorization: Bearer {token}"));
    stream.send("GET", "/eval?session=bench", "", None);
    stream.skip_head();
    let began = Instant::now();
    let code = format!("for i in 1 .. {LINES} do printfn \"line %d\" i");
    let printing = std::thread::spawn(move || {
        let mut printer = Http::to(port, &format!("Authorization: Bearer {token}"));
        printer.ask("POST", "/exec?session=bench", "Prefer: wait=60\r\n", &json!({ "code": code }));
    });
    // The line is told within a text in JSON.
    let last = format!("line {LINES}\\n");
    while !stream.line().contains(&last) {}
    let printed = began.elapsed();
    printing.join().unwrap();
    let worker = in_worker[in_worker.len() / 2].as_millis();
    row(&format!("Mainstay, F# (in its worker: {worker} ms)"), took, printed, &server);
}

/// jupyter_server with ipykernel, over its WebSocket.
fn theirs(folder: &Path, python: &str) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(python)
        .args(["-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.port_retries=0"])
        // Else it drops what is printed faster than a thousand messages a second.
        .arg("--ZMQChannelsWebsocketConnection.limit_rate=False")
        .args([
            format!("--ServerApp.port={port}"),
            format!("--IdentityProvider.token={TOKEN}"),
            format!("--ServerApp.root_dir={}", folder.display()),
        ])
        .envs(["HOME", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"].map(|name| (name, folder.join("jupyter"))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(server.0.try_wait().unwrap().is_none(), "jupyter_server ended: is it installed?");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut http = Http::to(port, &format!("Authorization: token {TOKEN}"));
    let kernel = http.ask("POST", "/api/kernels", "", &json!({ "name": "python3" }));
    let id = kernel["id"].as_str().unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let address = format!("ws://127.0.0.1:{port}/api/kernels/{id}/channels?token={TOKEN}");
    let (socket, _) = tungstenite::client(address, stream).unwrap();
    let mut kernel = Kernel { socket, sent: 0 };
    (0..20).for_each(|_| kernel.execute("1+1", &mut |_| ()));
    let took = (0..EXECUTIONS).map(|_| {
        let began = Instant::now();
        kernel.execute("1+1", &mut |_| ());
        began.elapsed()
    });
    let took = took.collect();
    let last = format!("line {LINES}\n");
    let (began, mut printed) = (Instant::now(), None);
    let code = format!("for i in range(1, {LINES} + 1): print('line', i, flush=True)");
    kernel.execute(&code, &mut |message| {
        let text = message["content"]["text"].as_str();
        if text.is_some_and(|text| text.ends_with(&last)) {
            printed = Some(began.elapsed());
        }
    });
    row("jupyter_server, ipykernel", took, printed.expect("lines are missing"), &server);
}

/// A kernel behind jupyter_server.
struct Kernel {
    socket: WebSocket<TcpStream>,
    sent: usize,
}

impl Kernel {
    /// Until it is answered, and idle again.
    fn execute(&mut self, code: &str, hear: &mut dyn FnMut(&Value)) {
        self.sent += 1;
        let id = format!("bench-{}", self.sent);
        let request = json!({
            "channel": "shell",
            "header": {
                "msg_id": id, "msg_type": "execute_request", "version": "5.3", "session": "bench",
                "username": "bench", "date": "2026-01-01T00:00:00Z",
            },
            "parent_header": {}, "metadata": {},
            "content": { "code": code, "silent": false, "store_history": true, "allow_stdin": false },
            "buffers": [],
        });
        self.socket.send(Message::text(request.to_string())).unwrap();
        let (mut is_answered, mut is_idle) = (false, false);
        while !(is_answered && is_idle) {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["parent_header"]["msg_id"] != id.as_str() {
                continue;
            }
            hear(&message);
            is_answered |= message["msg_type"] == "execute_reply";
            is_idle |= message["content"]["execution_state"] == "idle";
        }
    }
}

/// A connection that is kept.
struct Http {
    stream: BufReader<TcpStream>,
    host: String,
    authorization: String,
}

impl Http {
    fn to(port: u16, authorization: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let host = format!("127.0.0.1:{port}");
        Self { stream: BufReader::new(stream), host, authorization: authorization.to_owned() }
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: Option<&Value>) {
        let (host, authorization) = (&self.host, &self.authorization);
        let body = body.map(Value::to_string).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(head.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the connection ended");
        line
    }

    /// How long the body is; none where it comes in chunks.
    fn skip_head(&mut self) -> Option<usize> {
        let mut length = None;
        loop {
            let line = self.line().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse().unwrap());
            }
            if line.trim().is_empty() {
                return length;
            }
        }
    }

    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &Value) -> Value {
        self.send(method, path, headers, Some(body));
        let answer = match self.skip_head() {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        };
        serde_json::from_slice(&answer).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let length = usize::from_str_radix(self.line().trim(), 16).unwrap();
            all.extend(self.bytes(length));
            self.line();
            if length == 0 {
                return all;
            }
        }
    }
}

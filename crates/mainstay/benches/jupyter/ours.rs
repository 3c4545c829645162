//! The daemon, over its socket and over HTTP: what it answers is on the disk.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_model::Admission;
use mainstay_protocol::Sent;
use mainstay_protocol::operations::Eval;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::figures::{Lines, Memory, Server};
use crate::http::Http;

/// How a line ends within a text in JSON.
const END: &str = "\\n";

pub(crate) struct Daemon {
    server: Server,
    folder: PathBuf,
    port: u16,
    token: String,
    http: Http,
    runtime: Runtime,
    socket: Client,
}

impl Daemon {
    /// It finds kernelspecs on these paths.
    pub(crate) fn start(folder: &Path, kernels: &OsStr) -> Self {
        let home = folder.join("home");
        let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
            .args(["serve", "--announce", "--port", "0"])
            .env("MAINSTAY_HOME", &home)
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .env("JUPYTER_PATH", kernels)
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
        let http = connect(port, &token);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let socket = Path::new(announced["ready"]["socket"].as_str().unwrap());
        let (socket, _) = runtime.block_on(Client::connect(socket, token.clone(), "bench")).unwrap();
        Self { server, folder: folder.to_owned(), port, token, http, runtime, socket }
    }

    /// A session, by its id, and how long it took from the request for it until it takes code.
    pub(crate) fn create(&mut self, kind: &str, name: &str) -> (String, Duration) {
        let began = Instant::now();
        let new = json!({ "kind": kind, "name": name, "workingDirectory": self.folder });
        let created = self.http.ask("POST", "/sessions", "Prefer: wait=60\r\n", &new);
        assert_eq!(created["state"], "Ready", "{created}");
        (created["session"].as_str().unwrap().to_owned(), began.elapsed())
    }

    pub(crate) fn execute(&self, session: &str, code: &str) {
        let (session, code) = (session.to_owned(), code.to_owned());
        let (admission, sent) = (Admission::Queue, Sent::default());
        let eval = Eval { session, code, file: None, command_line: None, withheld: false, admission, sent };
        assert!(self.runtime.block_on(self.socket.call(eval)).unwrap().success);
    }

    pub(crate) fn execute_over_http(&mut self, session: &str, code: &str) {
        execute(&mut self.http, session, code);
    }

    pub(crate) fn print(&self, session: &str, code: &str) -> Lines {
        let mut stream = self.events(session, "");
        let (mut printer, session, code) =
            (connect(self.port, &self.token), session.to_owned(), code.to_owned());
        let mut lines = Lines::begin();
        let printing = std::thread::spawn(move || execute(&mut printer, &session, &code));
        // The code itself is told as well.
        while !stream.line().contains("running") {}
        while !lines.take(&stream.line(), END) {}
        printing.join().unwrap();
        lines
    }

    /// Until all that a session has said is at a client that comes again.
    pub(crate) fn history(&self, session: &str) -> Duration {
        let began = Instant::now();
        let mut stream = self.events(session, "Last-Event-ID: 0\r\n");
        let mut lines = Lines::begin();
        while !lines.take(&stream.line(), END) {}
        began.elapsed()
    }

    fn events(&self, session: &str, headers: &str) -> Http {
        let mut stream = connect(self.port, &self.token);
        stream.send("GET", &format!("/eval?session={session}"), headers, None);
        stream.skip_head();
        stream
    }

    pub(crate) fn memory(&self) -> Memory {
        self.server.memory()
    }
}

fn connect(port: u16, token: &str) -> Http {
    Http::to(port, &format!("Authorization: Bearer {token}"))
}

fn execute(http: &mut Http, session: &str, code: &str) {
    let path = format!("/exec?session={session}");
    let done = http.ask("POST", &path, "Prefer: wait=60\r\n", &json!({ "code": code }));
    assert_eq!(done["success"], true, "{done}");
}

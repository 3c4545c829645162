//! jupyter_server with ipykernel, over its WebSocket.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::figures::{EXECUTIONS, Figures, IDLE, LINES, Server};
use crate::http::Http;

const TOKEN: &str = "bench";

pub(crate) fn measured(folder: &Path, python: &str, print: &str) -> Figures {
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
    let mut figures = Figures::default();
    // A kernel takes code once it has answered; what a server does for its first is none of a session's.
    drop(Kernel::start(&mut http, port));
    let began = Instant::now();
    let mut kernel = Kernel::start(&mut http, port);
    figures.creation = Some(began.elapsed());

    (0..20).for_each(|_| kernel.execute("1+1", &mut |_| ()));
    for _ in 0..EXECUTIONS {
        let began = Instant::now();
        kernel.execute("1+1", &mut |_| ());
        figures.executions.push(began.elapsed());
    }

    let last = format!("line {LINES}\n");
    let (began, mut first_came, mut all_came, mut came) = (Instant::now(), None, None, 0);
    kernel.execute(print, &mut |message| {
        let Some(text) = message["content"]["text"].as_str() else { return };
        came += text.matches("line ").count();
        first_came.get_or_insert_with(|| began.elapsed());
        if text.ends_with(&last) {
            all_came = Some(began.elapsed());
        }
    });
    figures.came = came;
    figures.lines = first_came.zip(all_came);

    let one = server.resident();
    let _kernels: Vec<Kernel> = (2..IDLE).map(|_| Kernel::start(&mut http, port)).collect();
    figures.memory = Some((one, server.resident()));
    figures
}

/// A kernel behind jupyter_server.
struct Kernel {
    socket: WebSocket<TcpStream>,
    sent: usize,
}

impl Kernel {
    /// Until it has answered for the first time.
    fn start(http: &mut Http, port: u16) -> Self {
        let kernel = http.ask("POST", "/api/kernels", "", &json!({ "name": "python3" }));
        let id = kernel["id"].as_str().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let address = format!("ws://127.0.0.1:{port}/api/kernels/{id}/channels?token={TOKEN}");
        let (socket, _) = tungstenite::client(address, stream).unwrap();
        let mut kernel = Self { socket, sent: 0 };
        kernel.execute("", &mut |_| ());
        kernel
    }

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

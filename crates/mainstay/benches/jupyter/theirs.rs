//! jupyter_server, over its WebSocket.

use std::ffi::OsStr;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::figures::{Lines, Memory, Server};
use crate::http::Http;

const TOKEN: &str = "bench";

pub(crate) struct JupyterServer {
    server: Server,
    port: u16,
    http: Http,
}

impl JupyterServer {
    /// It finds kernelspecs on these paths, besides its own.
    pub(crate) fn start(folder: &Path, python: &str, kernels: &OsStr) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(python)
            .args(["-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.port_retries=0"])
            // Else it drops what is printed faster than a thousand messages a second.
            .arg("--ZMQChannelsWebsocketConnection.limit_rate=False")
            .args([
                format!("--ServerApp.port={port}"),
                format!("--IdentityProvider.token={TOKEN}"),
                format!("--ServerApp.root_dir={}", folder.display()),
            ])
            .envs(
                ["HOME", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"]
                    .map(|name| (name, folder.join("jupyter"))),
            )
            .env("JUPYTER_PATH", kernels)
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
        let http = Http::to(port, &format!("Authorization: token {TOKEN}"));
        Self { server, port, http }
    }

    /// A kernel that has answered for the first time, and how long that took.
    pub(crate) fn kernel(&mut self, name: &str) -> (Kernel, Duration) {
        let began = Instant::now();
        let kernel = self.http.ask("POST", "/api/kernels", "", &json!({ "name": name }));
        let id = kernel["id"].as_str().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let address = format!("ws://127.0.0.1:{}/api/kernels/{id}/channels?token={TOKEN}", self.port);
        let (socket, _) = tungstenite::client(address, stream).unwrap();
        let mut kernel = Kernel { socket, sent: 0 };
        kernel.execute("");
        (kernel, began.elapsed())
    }

    pub(crate) fn memory(&self) -> Memory {
        self.server.memory()
    }
}

/// A kernel behind jupyter_server.
pub(crate) struct Kernel {
    socket: WebSocket<TcpStream>,
    sent: usize,
}

impl Kernel {
    pub(crate) fn execute(&mut self, code: &str) {
        self.hear_out(code, &mut |_| ());
    }

    pub(crate) fn print(&mut self, code: &str) -> Lines {
        let mut lines = Lines::begin();
        self.hear_out(code, &mut |message| {
            lines.take(message["content"]["text"].as_str().unwrap_or_default(), "\n");
        });
        lines
    }

    /// Until it is answered, and idle again.
    fn hear_out(&mut self, code: &str, hear: &mut dyn FnMut(&Value)) {
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

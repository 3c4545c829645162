//! A kernel spoken to directly over ZeroMQ, by a client that does nothing but measure.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_kernel::jupyter::connection::{Channel, Connection};
use mainstay_kernel::jupyter::wire::{Header, Key, Message};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use zeromq::{DealerSocket, Socket, SocketRecv, SocketSend, SubSocket};

use crate::figures::{Lines, Server};

/// A kernel, and the way to it.
pub(crate) struct Direct {
    _server: Server,
    runtime: Runtime,
    kernel: Kernel,
    /// How long it took until it answered.
    pub(crate) created: Duration,
}

impl Direct {
    /// Starts the kernel that a command begins; the path of its connection file is the last argument.
    pub(crate) fn start(folder: &Path, mut kernel: Command) -> Self {
        let connection = Connection::ipc(folder);
        let file = folder.join("direct.json");
        connection.write(&file).unwrap();
        let began = Instant::now();
        let child = kernel
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let kernel = runtime.block_on(Kernel::connect(&connection));
        Self { _server: Server(child), runtime, kernel, created: began.elapsed() }
    }

    pub(crate) fn execute(&mut self, code: &str) {
        self.runtime.block_on(self.kernel.execute(code, &mut |_| ()));
    }

    pub(crate) fn print(&mut self, code: &str) -> Lines {
        let mut lines = Lines::begin();
        let hear = &mut |message: &Message| {
            let content: Value = message.read().unwrap_or_default();
            lines.take(content["text"].as_str().unwrap_or_default(), "\n");
        };
        self.runtime.block_on(self.kernel.execute(code, hear));
        lines
    }
}

struct Kernel {
    shell: DealerSocket,
    iopub: SubSocket,
    key: Key,
}

impl Kernel {
    /// Connects, and retries until the kernel answers.
    async fn connect(connection: &Connection) -> Self {
        while connection.sockets().iter().any(|path| !path.exists()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (mut shell, mut iopub) = (DealerSocket::new(), SubSocket::new());
        shell.connect(&connection.endpoint(Channel::Shell)).await.unwrap();
        iopub.connect(&connection.endpoint(Channel::Iopub)).await.unwrap();
        iopub.subscribe("").await.unwrap();
        let mut kernel = Self { shell, iopub, key: Key::new(&connection.key) };
        // Whoever subscribes too late misses the end of the first.
        while !kernel.is_heard().await {}
        kernel
    }

    fn request(kind: &str, content: &Value) -> (String, Message) {
        let header = Header::new(kind, "bench");
        (header.msg_id.clone(), Message::new(header, content))
    }

    /// Whether what it publishes is heard; it says something on every request.
    async fn is_heard(&mut self) -> bool {
        let (_, info) = Self::request("kernel_info_request", &json!({}));
        self.shell.send(info.encode(&self.key)).await.unwrap();
        self.shell.recv().await.unwrap();
        let soon = Duration::from_millis(100);
        let mut is_heard = false;
        while tokio::time::timeout(soon, self.iopub.recv()).await.is_ok() {
            is_heard = true;
        }
        is_heard
    }

    /// Until it is answered, and idle again.
    async fn execute(&mut self, code: &str, hear: &mut dyn FnMut(&Message)) {
        let content = json!({ "code": code, "silent": false, "store_history": true, "allow_stdin": false });
        let (id, request) = Self::request("execute_request", &content);
        self.shell.send(request.encode(&self.key)).await.unwrap();
        let (mut is_answered, mut is_idle) = (false, false);
        while !(is_answered && is_idle) {
            tokio::select! {
                frames = self.iopub.recv() => {
                    let message = Message::decode(frames.unwrap(), &self.key).unwrap();
                    if message.parent_id().as_ref() != Some(&id) {
                        continue;
                    }
                    hear(&message);
                    let state = message.read::<Value>().unwrap_or_default();
                    is_idle |= state["execution_state"] == "idle";
                }
                _ = self.shell.recv() => is_answered = true,
            }
        }
    }
}

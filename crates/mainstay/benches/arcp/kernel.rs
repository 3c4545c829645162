//! A Jupyter kernel that answers at once, so that what is measured is not a compiler: this program itself, started with [`COMMAND`]. It knows
//!
//! | code | what it does |
//! |---|---|
//! | `nothing` | ends at once |
//! | `wait PATH` | runs until there is a file |
//! | `print COUNT PAUSE PATH` | waits like that, then prints so many lines, so many milliseconds apart: each has its number, and when it was printed |
//! | `show COUNT PATH` | waits like that, then shows so many displays, each with the same |

use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use mainstay_kernel::jupyter::connection::{Channel, Connection};
use mainstay_kernel::jupyter::wire::{Header, Key, Message};
use serde_json::{Value, json};
use zeromq::{PubSocket, RepSocket, RouterSocket, Socket, SocketRecv, SocketSend};

/// The argument with which the bench is this kernel; the path of a connection file follows.
pub(crate) const COMMAND: &str = "kernel";
/// Its kind of session.
pub(crate) const KIND: &str = "bench";

/// How often a file is looked for: many kernels may wait for one.
const LOOKS: Duration = Duration::from_millis(25);
/// A publisher drops what a subscriber does not take: after so many displays it waits for a moment.
const AT_ONCE: usize = 20;
const MOMENT: Duration = Duration::from_millis(2);

/// Serves until the process is killed.
pub(crate) fn serve(connection: &Path) {
    let connection = Connection::read(connection).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut heartbeat: RepSocket = bound(&connection, Channel::Heartbeat).await;
        let mut control: RouterSocket = bound(&connection, Channel::Control).await;
        let _stdin: RouterSocket = bound(&connection, Channel::Stdin).await;
        let mut kernel = Kernel {
            key: Key::new(&connection.key),
            iopub: bound(&connection, Channel::Iopub).await,
            shell: bound(&connection, Channel::Shell).await,
        };
        loop {
            tokio::select! {
                frames = kernel.shell.recv() => {
                    let request = Message::decode(frames.unwrap(), &kernel.key).unwrap();
                    kernel.answer(&request).await;
                }
                beat = heartbeat.recv() => heartbeat.send(beat.unwrap()).await.unwrap(),
                // Nothing is interrupted, and whoever shuts it down kills it.
                _ = control.recv() => {}
            }
        }
    });
}

async fn bound<S: Socket>(connection: &Connection, channel: Channel) -> S {
    let mut socket = S::new();
    socket.bind(&connection.endpoint(channel)).await.unwrap();
    socket
}

struct Kernel {
    key: Key,
    iopub: PubSocket,
    shell: RouterSocket,
}

impl Kernel {
    async fn answer(&mut self, request: &Message) {
        self.publish(request, "status", &json!({ "execution_state": "busy" })).await;
        let (kind, content) = match request.header.msg_type.as_str() {
            "execute_request" => {
                let asked: Value = request.read().unwrap();
                self.execute(request, asked["code"].as_str().unwrap()).await;
                ("execute_reply", json!({ "status": "ok", "execution_count": 1, "user_expressions": {} }))
            }
            _ => (
                "kernel_info_reply",
                json!({
                    "status": "ok", "protocol_version": "5.4", "implementation": "bench",
                    "implementation_version": "1", "banner": "",
                    "language_info": { "name": "bench", "version": "1", "mimetype": "text/plain", "file_extension": ".txt" },
                }),
            ),
        };
        let mut reply = self.message(request, kind, &content);
        reply.identities.clone_from(&request.identities);
        self.shell.send(reply.encode(&self.key)).await.unwrap();
        self.publish(request, "status", &json!({ "execution_state": "idle" })).await;
    }

    async fn execute(&mut self, request: &Message, code: &str) {
        let words: Vec<&str> = code.split_whitespace().collect();
        match words.as_slice() {
            ["wait", path] => wait_for(path).await,
            ["print", count, pause, path] => {
                let pause = Duration::from_millis(pause.parse().unwrap());
                wait_for(path).await;
                let count: usize = count.parse().unwrap();
                for line in 1..=count {
                    let text = format!("{}\n", numbered(line));
                    self.publish(request, "stream", &json!({ "name": "stdout", "text": text })).await;
                    if line < count && !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                }
            }
            ["show", count, path] => {
                wait_for(path).await;
                for shown in 1_usize..=count.parse().unwrap() {
                    let shows = json!({ "data": { "text/plain": numbered(shown) }, "metadata": {} });
                    self.publish(request, "display_data", &shows).await;
                    if shown.is_multiple_of(AT_ONCE) {
                        tokio::time::sleep(MOMENT).await;
                    }
                }
            }
            _ => {}
        }
    }

    async fn publish(&mut self, request: &Message, kind: &str, content: &Value) {
        let mut message = self.message(request, kind, content);
        message.identities = vec![Bytes::from_static(b"kernel")];
        self.iopub.send(message.encode(&self.key)).await.unwrap();
    }

    fn message(&self, request: &Message, kind: &str, content: &Value) -> Message {
        let message = Message::new(Header::new(kind, "bench"), content);
        Message { parent: Bytes::from(serde_json::to_vec(&request.header).unwrap()), ..message }
    }
}

/// What is printed or shown: its number, and the time.
fn numbered(number: usize) -> String {
    format!("{number} {}", now().as_nanos())
}

async fn wait_for(path: &str) {
    while !Path::new(path).exists() {
        tokio::time::sleep(LOOKS).await;
    }
}

/// The time, which is the same for all processes of the machine.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

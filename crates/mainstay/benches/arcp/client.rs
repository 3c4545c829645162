//! The least of a client of dialect B. It sees to it that no number is missing.

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

/// Where a runtime serves, and the token that it wants.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A session on its connection.
pub(crate) struct Arcp {
    sender: Sender,
    receiver: Receiver,
    pub(crate) session: String,
    pub(crate) resume_token: String,
}

/// What a client says.
pub(crate) struct Sender {
    socket: SplitSink<WebSocketStream<TcpStream>, Message>,
    session: String,
}

/// What a client is told.
pub(crate) struct Receiver {
    socket: SplitStream<WebSocketStream<TcpStream>>,
    /// The number of the last message.
    last_seq: u64,
}

impl Arcp {
    /// Opens a session of its own.
    pub(crate) async fn open(address: &Address) -> Self {
        Self::begin(address, Value::Null, 0).await
    }

    /// Resumes a session behind this number.
    pub(crate) async fn resume(address: &Address, session: &str, token: &str, last_seq: u64) -> Self {
        let resume = json!({ "session_id": session, "resume_token": token, "last_event_seq": last_seq });
        Self::begin(address, resume, last_seq).await
    }

    async fn begin(address: &Address, resume: Value, last_seq: u64) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", address.port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://127.0.0.1:{}/arcp", address.port);
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let (out, into) = socket.split();
        let mut sender = Sender { socket: out, session: String::new() };
        let mut receiver = Receiver { socket: into, last_seq };
        let mut hello = json!({
            "client": { "name": "bench", "version": "1" },
            "auth": { "scheme": "bearer", "token": address.token },
            "capabilities": { "features": ["subscribe"] },
        });
        if !resume.is_null() {
            hello["resume"] = resume;
        }
        sender.send("session.hello", hello).await;
        let welcome = receiver.next().await;
        assert_eq!(welcome["type"], "session.welcome", "{welcome}");
        let text = |name: &str| welcome["payload"][name].as_str().unwrap_or_default().to_owned();
        let session = welcome["session_id"].as_str().map_or_else(|| text("session_id"), str::to_owned);
        sender.session.clone_from(&session);
        Self { sender, receiver, session, resume_token: text("resume_token") }
    }

    /// Its two directions, which are used at once.
    pub(crate) const fn split(&mut self) -> (&mut Sender, &mut Receiver) {
        (&mut self.sender, &mut self.receiver)
    }

    /// Submits a job to an agent.
    pub(crate) async fn submit(&mut self, agent: &str, input: &Value) {
        self.sender.submit(agent, input).await;
    }

    /// Sends a message of this type.
    pub(crate) async fn send(&mut self, kind: &str, payload: Value) {
        self.sender.send(kind, payload).await;
    }

    /// Reads the next message.
    pub(crate) async fn next(&mut self) -> Value {
        self.receiver.next().await
    }

    /// The next message of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await;
            assert_ne!(message["type"], "job.error", "{message}");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// The number of the last message.
    pub(crate) const fn last_seq(&self) -> u64 {
        self.receiver.last_seq
    }
}

impl Sender {
    /// Submits a job to an agent.
    pub(crate) async fn submit(&mut self, agent: &str, input: &Value) {
        self.send("job.submit", json!({ "agent": agent, "input": input })).await;
    }

    /// Sends a message of this type.
    async fn send(&mut self, kind: &str, payload: Value) {
        let id = Uuid::now_v7().to_string();
        let mut envelope = json!({ "arcp": "1.1", "id": id, "type": kind, "payload": payload });
        if !self.session.is_empty() {
            envelope["session_id"] = self.session.clone().into();
        }
        self.socket.send(Message::text(envelope.to_string())).await.unwrap();
    }
}

impl Receiver {
    /// The next message. No number may be missing.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let Message::Text(text) = self.socket.next().await.unwrap().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            assert_ne!(message["type"], "session.error", "{message}");
            if let Some(seq) = message["event_seq"].as_u64() {
                assert_eq!(seq, self.last_seq + 1, "{message}");
                self.last_seq = seq;
            }
            return message;
        }
    }
}

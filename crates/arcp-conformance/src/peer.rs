//! One connection of a scenario: sends envelopes, and waits for those that match. All that it sees goes into
//! the scenario's transcript.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::json::{kind, text};
use crate::scenario::{Frame, FrameKind, Stop, Verdict};
use crate::transport::{Incoming, Link};

/// What happened on all connections of a scenario, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript(Arc<Mutex<Vec<Frame>>>);

impl Transcript {
    pub(crate) fn add(&self, connection: usize, kind: FrameKind, text: &str) {
        let frame = Frame { connection, kind, text: text.to_owned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
    }

    pub(crate) fn frames(&self) -> Vec<Frame> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The field that stands for a binary frame among what arrived: how many bytes it had.
pub(crate) const BINARY: &str = "(binary frame)";

/// A message that arrived, and whether a wait took it.
struct Arrived {
    value: Value,
    taken: bool,
}

/// A connection that remembers what arrived on it.
pub(crate) struct Peer {
    /// The open connection, unless it was cut.
    link: Option<Link>,
    number: usize,
    transcript: Transcript,
    arrived: Vec<Arrived>,
    closed: bool,
    wait: Duration,
    quiet: Duration,
}

impl Peer {
    pub(crate) fn new(
        link: Link,
        number: usize,
        transcript: Transcript,
        wait: Duration,
        quiet: Duration,
    ) -> Self {
        Self { link: Some(link), number, transcript, arrived: Vec::new(), closed: false, wait, quiet }
    }

    /// Sends an envelope, with an id of its own unless it has one, and returns the id.
    pub(crate) async fn send(&mut self, mut envelope: Value) -> Result<String, Stop> {
        if envelope.get("id").is_none()
            && let Some(fields) = envelope.as_object_mut()
        {
            fields.insert("id".to_owned(), json!(Uuid::now_v7().to_string()));
        }
        let id = text(&envelope, "/id").to_owned();
        self.send_text(envelope.to_string()).await?;
        Ok(id)
    }

    /// Sends a binary frame.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Verdict {
        let text = format!("{} bytes in a binary frame", bytes.len());
        self.transcript.add(self.number, FrameKind::Sent, &text);
        let Some(link) = &mut self.link else {
            return Err(Stop::failed("a connection that can be written to", "one that was cut"));
        };
        let sent = link.send_bytes(bytes).await;
        sent.map_err(|error| Stop::failed("a connection that can be written to", error.to_string()))
    }

    pub(crate) async fn send_text(&mut self, text: String) -> Verdict {
        self.transcript.add(self.number, FrameKind::Sent, &text);
        let Some(link) = &mut self.link else {
            return Err(Stop::failed("a connection that can be written to", "one that was cut"));
        };
        let sent = link.send(text).await;
        sent.map_err(|error| Stop::failed("a connection that can be written to", error.to_string()))
    }

    /// Waits for the first message that matches and that no earlier wait took.
    pub(crate) async fn take(
        &mut self,
        expected: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> Result<Value, Stop> {
        let deadline = Instant::now() + self.wait;
        loop {
            let found = self.arrived.iter_mut().find(|message| !message.taken && matches(&message.value));
            if let Some(message) = found {
                message.taken = true;
                return Ok(message.value.clone());
            }
            match timeout_at(deadline, self.read()).await {
                Ok(true) => {}
                Ok(false) => return Err(Stop::failed(expected, "the connection was closed")),
                Err(_) => {
                    let got = format!("nothing like it within {:?}", self.wait);
                    return Err(Stop::failed(expected, got));
                }
            }
        }
    }

    /// Lets no later wait take the messages that match and have arrived.
    pub(crate) fn discard(&mut self, matches: impl Fn(&Value) -> bool) {
        for message in self.arrived.iter_mut().filter(|message| matches(&message.value)) {
            message.taken = true;
        }
    }

    /// Reads whatever arrives until nothing does for the quiet time; the end of the connection is no failure.
    pub(crate) async fn settle(&mut self) {
        let end = Instant::now() + self.wait;
        let mut quiet = Instant::now() + self.quiet;
        while Instant::now() < end {
            match timeout_at(quiet.min(end), self.read()).await {
                Ok(true) => quiet = Instant::now() + self.quiet,
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Waits for the runtime to end the connection.
    pub(crate) async fn take_close(&mut self, expected: &str) -> Verdict {
        let deadline = Instant::now() + self.wait;
        while !self.closed {
            if timeout_at(deadline, self.read()).await.is_err() {
                let got = format!("a connection that is still open after {:?}", self.wait);
                return Err(Stop::failed(expected, got));
            }
        }
        Ok(())
    }

    /// Everything that arrived so far, in order.
    pub(crate) fn received(&self) -> impl Iterator<Item = &Value> {
        self.arrived.iter().map(|message| &message.value)
    }

    /// How many messages have arrived so far.
    pub(crate) fn count(&self) -> usize {
        self.arrived.len()
    }

    /// Whether the runtime ended the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops the connection without a word, as a network that fails does.
    pub(crate) fn cut(&mut self) {
        self.transcript.add(self.number, FrameKind::Closed, "cut by the runner");
        self.link = None;
        self.closed = true;
    }

    /// Reads one message; returns false where the connection has ended.
    async fn read(&mut self) -> bool {
        let Some(link) = self.link.as_mut().filter(|_| !self.closed) else { return false };
        match link.next().await {
            Incoming::Text(text) => {
                self.transcript.add(self.number, FrameKind::Received, &text);
                let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                self.answer_ping(&value).await;
                self.arrived.push(Arrived { value, taken: false });
                true
            }
            Incoming::Binary(length) => {
                let text = format!("{length} bytes in a binary frame");
                self.transcript.add(self.number, FrameKind::Received, &text);
                self.arrived.push(Arrived { value: json!({ BINARY: length }), taken: true });
                true
            }
            Incoming::Closed(why) => {
                self.transcript.add(self.number, FrameKind::Closed, &why);
                self.closed = true;
                false
            }
        }
    }

    /// Answers a heartbeat of the runtime, as every client must.
    async fn answer_ping(&mut self, message: &Value) {
        let now = jiff::Timestamp::now().to_string();
        let answer = match kind(message) {
            "session.ping" => json!({
                "arcp": "1.1", "id": Uuid::now_v7().to_string(), "type": "session.pong",
                "session_id": message.get("session_id"),
                "payload": { "ping_nonce": message.pointer("/payload/nonce"), "received_at": now },
            }),
            "ping" => json!({
                "arcp": "1.0", "id": Uuid::now_v7().to_string(), "type": "pong", "timestamp": now,
                "session_id": message.get("session_id"), "correlation_id": message.get("id"),
                "payload": message.get("payload"),
            }),
            _ => return,
        };
        let text = answer.to_string();
        self.transcript.add(self.number, FrameKind::Sent, &text);
        let Some(link) = &mut self.link else { return };
        if link.send(text).await.is_err() {
            self.transcript.add(self.number, FrameKind::Closed, "the answer to a ping was refused");
        }
    }
}

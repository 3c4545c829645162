//! A session of dialect A, as a scenario drives it.

use serde_json::{Value, json};

use crate::json::{items, kind, short, text};
use crate::peer::Peer;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect};

/// An accepted session on one connection.
pub(crate) struct Session {
    pub(super) peer: Peer,
    pub(super) id: String,
    pub(super) accepted: Value,
}

/// The capabilities that the runner offers (§7).
pub(super) fn capabilities() -> Value {
    json!({
        "streaming": true, "durable_jobs": true, "checkpoints": true, "human_input": true, "artifacts": true,
        "subscriptions": true, "scheduled_jobs": true, "interrupt": true, "binary_streams": true,
        "binary_encoding": ["base64"], "heartbeat_interval_seconds": 1,
    })
}

/// A `session.open` with a token and capabilities (§8.2).
pub(super) fn open(token: Option<&str>, capabilities: Value) -> Value {
    let auth = match token {
        Some(token) => json!({ "scheme": "bearer", "token": token }),
        None => json!({ "scheme": "none" }),
    };
    envelope(
        "session.open",
        json!({
            "auth": auth,
            "client": {
                "kind": "arcp-conformance", "version": env!("CARGO_PKG_VERSION"), "fingerprint": "sha256:0",
            },
            "capabilities": capabilities,
        }),
    )
}

/// An envelope before there is a session (§6.1).
pub(super) fn envelope(kind: &str, payload: Value) -> Value {
    let now = jiff::Timestamp::now().to_string();
    json!({ "arcp": "1.0", "type": kind, "timestamp": now, "payload": payload })
}

/// Whether a message ends a job or a tool's invocation (§6.3).
pub(super) fn is_terminal(message: &Value) -> bool {
    matches!(kind(message), "job.completed" | "job.failed" | "job.cancelled" | "tool.result" | "tool.error")
}

impl Session {
    /// Opens a session with the token of the settings.
    pub(crate) async fn open(probe: &Probe) -> Result<Self, Stop> {
        Self::open_with(probe, open(probe.settings.token.as_deref(), capabilities())).await
    }

    /// Opens a session of the other principal.
    pub(super) async fn open_other(probe: &Probe) -> Result<Self, Stop> {
        Self::open_with(probe, open(Some(probe.other_token()?), capabilities())).await
    }

    /// Opens a session with this message in place of the usual `session.open`.
    pub(super) async fn open_with(probe: &Probe, open: Value) -> Result<Self, Stop> {
        let mut peer = probe.connect().await?;
        peer.send(open).await?;
        Self::decided(peer, probe).await
    }

    /// Waits for the acceptance on a connection that has asked for it, and answers a challenge with the token
    /// (§8.1).
    pub(super) async fn decided(mut peer: Peer, probe: &Probe) -> Result<Self, Stop> {
        let decided = |message: &Value| kind(message).starts_with("session.") || kind(message) == "nack";
        let mut answer = peer.take("session.accepted", decided).await?;
        if kind(&answer) == "session.challenge" {
            let token = probe.settings.token.as_deref().unwrap_or_default();
            let auth = json!({ "scheme": "bearer", "token": token });
            let mut reply = envelope("session.authenticate", json!({ "auth": auth, "token": token }));
            reply["correlation_id"] = answer["id"].clone();
            peer.send(reply).await?;
            answer = peer.take("session.accepted", decided).await?;
        }
        expect(kind(&answer) == "session.accepted", "session.accepted", || short(&answer))?;
        let outer = text(&answer, "/session_id");
        let id = Some(text(&answer, "/payload/session_id")).filter(|id| !id.is_empty()).unwrap_or(outer);
        Ok(Self { peer, id: id.to_owned(), accepted: answer.clone() })
    }

    /// Whether the runtime advertises a capability; an absent one is false (§7).
    pub(super) fn has(&self, capability: &str) -> bool {
        let pointer = format!("/payload/capabilities/{capability}");
        self.accepted.pointer(&pointer).is_some_and(|value| value == true)
    }

    /// Skips the scenario where the runtime does not advertise a capability.
    pub(super) fn needs(&self, capability: &str) -> Verdict {
        if self.has(capability) {
            Ok(())
        } else {
            Err(Stop::skipped(format!("the runtime does not advertise {capability}")))
        }
    }

    pub(super) fn envelope(&self, kind: &str, payload: Value) -> Value {
        let mut envelope = envelope(kind, payload);
        envelope["session_id"] = json!(self.id);
        envelope
    }

    /// Sends a message of the session, and returns its id.
    pub(super) async fn send(&mut self, kind: &str, payload: Value) -> Result<String, Stop> {
        let envelope = self.envelope(kind, payload);
        self.peer.send(envelope).await
    }

    /// Waits for an answer to a message: one of these types, or a refusal.
    pub(super) async fn answer(&mut self, id: &str, kinds: &[&str]) -> Result<Value, Stop> {
        let expected = format!("{} with the correlation_id", kinds.join(" or "));
        let answered = |message: &Value| {
            text(message, "/correlation_id") == id
                && (kinds.contains(&kind(message)) || matches!(kind(message), "nack" | "tool.error"))
        };
        let answer = self.peer.take(&expected, answered).await?;
        expect(kinds.contains(&kind(&answer)), &expected, || short(&answer))?;
        Ok(answer)
    }

    /// Waits for a refusal of a message, with one of these codes (§6.3, §18).
    pub(super) async fn refusal(&mut self, id: &str, codes: &[&str]) -> Result<Value, Stop> {
        let expected =
            format!("a nack or an error with the code {} and the correlation_id", codes.join(" or "));
        let answered = |message: &Value| {
            text(message, "/correlation_id") == id
                && !matches!(kind(message), "ack" | "log" | "metric" | "job.started")
        };
        let answer = self.peer.take(&expected, answered).await?;
        expect(codes.contains(&text(&answer, "/payload/code")), &expected, || short(&answer))?;
        Ok(answer)
    }

    /// The payload of a `tool.invoke` that behaves so.
    pub(super) fn work(probe: &Probe, behaviour: Behaviour) -> Result<Value, Stop> {
        let (tool, arguments) = probe.tool(behaviour)?;
        Ok(json!({ "tool": tool, "arguments": arguments }))
    }

    /// Invokes the tool that behaves so, and returns the command's id and the job's.
    pub(super) async fn start(
        &mut self,
        probe: &Probe,
        behaviour: Behaviour,
    ) -> Result<(String, String), Stop> {
        let command = self.send("tool.invoke", Self::work(probe, behaviour)?).await?;
        let accepted = self.answer(&command, &["job.accepted"]).await?;
        Ok((command, job_id(&accepted)?))
    }

    /// Waits for the first message that ends a command's work.
    pub(super) async fn end(&mut self, command: &str, job: &str) -> Result<Value, Stop> {
        let ends = |message: &Value| is_terminal(message) && concerns(message, command, job);
        self.peer.take("the terminal event of the job", ends).await
    }

    /// Cancels a job that a scenario is done with; the answer is of no interest.
    pub(super) async fn clean_up(&mut self, job: &str) -> Verdict {
        let reason = "the scenario is over";
        let payload = json!({ "target": "job", "target_id": job, "reason": reason, "deadline_ms": 1000 });
        self.send("cancel", payload).await?;
        self.peer.settle().await;
        Ok(())
    }

    /// Waits until the runtime has answered a ping that was sent after all else (§6.2).
    pub(super) async fn round_trip(&mut self) -> Verdict {
        let id = self.send("ping", json!({})).await?;
        self.answer(&id, &["pong"]).await?;
        Ok(())
    }

    /// The events about a job that arrived so far, in order.
    pub(super) fn about(&self, command: &str, job: &str) -> Vec<&Value> {
        self.peer.received().filter(|message| concerns(message, command, job)).collect()
    }

    /// Whether a list among the runtime's capabilities has a value.
    pub(super) fn lists(&self, capability: &str, value: &str) -> bool {
        items(&self.accepted, &format!("/payload/capabilities/{capability}")).iter().any(|each| each == value)
    }
}

/// Whether a message is about a job, or answers the command that started it.
pub(super) fn concerns(message: &Value, command: &str, job: &str) -> bool {
    (!job.is_empty() && text(message, "/job_id") == job) || text(message, "/correlation_id") == command
}

/// The job's id from its `job.accepted` (§6.1.1).
pub(super) fn job_id(accepted: &Value) -> Result<String, Stop> {
    let inner = text(accepted, "/payload/job_id");
    let id = Some(text(accepted, "/job_id")).filter(|id| !id.is_empty()).unwrap_or(inner);
    expect(!id.is_empty(), "job.accepted with a job_id", || short(accepted))?;
    Ok(id.to_owned())
}

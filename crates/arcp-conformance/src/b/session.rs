//! A session of dialect B, as a scenario drives it.

use serde_json::{Value, json};

use crate::json::{items, kind, seq, short, text};
use crate::peer::Peer;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect};

/// Every feature that §6.2 names.
pub(super) const FEATURES: [&str; 11] = [
    "heartbeat",
    "ack",
    "list_jobs",
    "subscribe",
    "lease_expires_at",
    "cost.budget",
    "model.use",
    "provisioned_credentials",
    "progress",
    "result_chunk",
    "agent_versions",
];

/// How long a job may run that a scenario leaves behind, in seconds.
const LEFT_BEHIND: u32 = 30;

/// An accepted session on one connection.
pub(crate) struct Session {
    pub(super) peer: Peer,
    pub(super) id: String,
    pub(super) welcome: Value,
}

/// A `session.hello` with a token and features (§6.1, §6.2).
pub(super) fn hello(token: Option<&str>, features: &[&str]) -> Value {
    let mut hello = json!({
        "arcp": "1.1", "type": "session.hello",
        "payload": {
            "client": { "name": "arcp-conformance", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "encodings": ["json"], "features": features },
        },
    });
    if let Some(token) = token {
        hello["payload"]["auth"] = json!({ "scheme": "bearer", "token": token });
    }
    hello
}

/// Whether a message is the last of a job (§7.3).
pub(super) fn is_terminal(message: &Value, job: &str) -> bool {
    matches!(kind(message), "job.result" | "job.error") && text(message, "/job_id") == job
}

/// Whether a message refuses a request: an error that does not end a job.
pub(super) fn is_refusal(message: &Value) -> bool {
    matches!(kind(message), "session.error" | "job.error")
}

/// The numbers of the events that arrived, in order of arrival.
pub(super) fn numbers<'a>(messages: impl Iterator<Item = &'a Value>) -> Vec<i64> {
    let counted = |message: &&Value| matches!(kind(message), "job.event" | "job.result" | "job.error");
    messages.filter(counted).filter_map(seq).collect()
}

/// Fails unless each number follows the one before it by one (§8.3).
pub(super) fn gap_free(numbers: &[i64]) -> Verdict {
    let holds = numbers.windows(2).all(|pair| matches!(pair, [one, two] if one + 1 == *two));
    expect(holds, "event_seq that grows by one from event to event", || format!("{numbers:?}"))
}

impl Session {
    /// Opens a session with every feature and the token of the settings.
    pub(crate) async fn open(probe: &Probe) -> Result<Self, Stop> {
        Self::open_with(probe, hello(probe.settings.token.as_deref(), &FEATURES)).await
    }

    /// Opens a session of the other principal.
    pub(super) async fn open_other(probe: &Probe) -> Result<Self, Stop> {
        Self::open_with(probe, hello(Some(probe.other_token()?), &FEATURES)).await
    }

    /// Opens a session with this message in place of the usual `session.hello`.
    pub(super) async fn open_with(probe: &Probe, hello: Value) -> Result<Self, Stop> {
        let mut peer = probe.connect().await?;
        peer.send(hello).await?;
        Self::welcomed(peer).await
    }

    /// Waits for the welcome on a connection that has asked for it.
    pub(super) async fn welcomed(mut peer: Peer) -> Result<Self, Stop> {
        let decided = |message: &Value| matches!(kind(message), "session.welcome" | "session.error");
        let welcome = peer.take("session.welcome", decided).await?;
        expect(kind(&welcome) == "session.welcome", "session.welcome", || short(&welcome))?;
        let inner = text(&welcome, "/payload/session_id");
        let id = Some(text(&welcome, "/session_id")).filter(|id| !id.is_empty()).unwrap_or(inner).to_owned();
        Ok(Self { peer, id, welcome })
    }

    /// Whether both sides have a feature (§6.2).
    pub(super) fn has(&self, feature: &str) -> bool {
        items(&self.welcome, "/payload/capabilities/features").iter().any(|each| each == feature)
    }

    /// Skips the scenario where a feature is not negotiated.
    pub(super) fn needs(&self, feature: &str) -> Verdict {
        if self.has(feature) { Ok(()) } else { Err(Stop::skipped(format!("{feature} is not negotiated"))) }
    }

    /// The token with which the session is resumed (§6.3).
    pub(super) fn resume_token(&self) -> &str {
        text(&self.welcome, "/payload/resume_token")
    }

    pub(super) fn envelope(&self, kind: &str, payload: Value) -> Value {
        json!({ "arcp": "1.1", "type": kind, "session_id": self.id, "payload": payload })
    }

    /// Sends a message of the session, and returns its id.
    pub(super) async fn send(&mut self, kind: &str, payload: Value) -> Result<String, Stop> {
        let envelope = self.envelope(kind, payload);
        self.peer.send(envelope).await
    }

    /// Sends a message about a job, whose id stands in the envelope and in the payload.
    pub(super) async fn send_about(
        &mut self,
        kind: &str,
        job: &str,
        mut payload: Value,
    ) -> Result<String, Stop> {
        payload["job_id"] = json!(job);
        let mut envelope = self.envelope(kind, payload);
        envelope["job_id"] = json!(job);
        self.peer.send(envelope).await
    }

    /// Submits a job, and returns its `job.accepted`.
    pub(super) async fn submit(&mut self, payload: Value) -> Result<Value, Stop> {
        self.send("job.submit", payload).await?;
        self.accepted().await
    }

    /// Waits for the next `job.accepted`.
    pub(super) async fn accepted(&mut self) -> Result<Value, Stop> {
        let decided = |message: &Value| {
            kind(message) == "job.accepted"
                || kind(message) == "session.error"
                || (kind(message) == "job.error" && seq(message).is_none())
        };
        let answer = self.peer.take("job.accepted", decided).await?;
        expect(kind(&answer) == "job.accepted", "job.accepted", || short(&answer))?;
        Ok(answer)
    }

    /// Submits a job that behaves so, and returns its id.
    pub(super) async fn start(&mut self, probe: &Probe, behaviour: Behaviour) -> Result<String, Stop> {
        let accepted = self.submit(job(probe, behaviour)?).await?;
        job_id(&accepted)
    }

    /// Waits for the message that ends a job.
    pub(super) async fn end(&mut self, job: &str) -> Result<Value, Stop> {
        self.peer.take("the job's job.result or job.error", |message| is_terminal(message, job)).await
    }

    /// Waits for an error with this code.
    pub(super) async fn refusal(&mut self, code: &str) -> Result<Value, Stop> {
        let expected = format!("an error with the code {code}");
        let answered = |message: &Value| is_refusal(message) || kind(message) == "job.accepted";
        let answer = self.peer.take(&expected, answered).await?;
        expect(text(&answer, "/payload/code") == code, &expected, || short(&answer))?;
        Ok(answer)
    }

    /// Cancels a job that a scenario is done with; the answer is of no interest.
    pub(super) async fn clean_up(&mut self, job: &str) -> Verdict {
        self.send_about("job.cancel", job, json!({ "reason": "the scenario is over" })).await?;
        self.peer.settle().await;
        self.peer.discard(is_refusal);
        Ok(())
    }

    /// Waits until the runtime has answered something that was sent after all else.
    pub(super) async fn round_trip(&mut self) -> Verdict {
        if self.has("heartbeat") {
            let nonce = crate::probe::fresh("p");
            let sent_at = jiff::Timestamp::now().to_string();
            self.send("session.ping", json!({ "nonce": nonce, "sent_at": sent_at })).await?;
            let pong = |message: &Value| text(message, "/payload/ping_nonce") == nonce;
            self.peer.take("session.pong", pong).await?;
        } else {
            self.peer.settle().await;
        }
        Ok(())
    }

    /// Waits for the last event of a replay, if there is one, and for the quiet after it.
    pub(super) async fn replayed(&mut self, last: Option<i64>) -> Verdict {
        if let Some(last) = last {
            let expected = format!("the event {last}");
            self.peer.take(&expected, |message| seq(message) == Some(last)).await?;
        }
        self.peer.settle().await;
        Ok(())
    }

    /// Lists jobs with this request, and returns the answer (§6.6).
    pub(super) async fn list(&mut self, request: Value) -> Result<Value, Stop> {
        self.needs("list_jobs")?;
        let id = self.send("session.list_jobs", request).await?;
        let answered = |message: &Value| {
            kind(message) == "session.error"
                || (kind(message) == "session.jobs" && text(message, "/payload/request_id") == id)
        };
        let answer = self.peer.take("session.jobs with the request_id", answered).await?;
        expect(kind(&answer) == "session.jobs", "session.jobs with the request_id", || short(&answer))?;
        Ok(answer)
    }

    /// The status of a job, as the list of jobs says it.
    pub(super) async fn status(&mut self, job: &str) -> Result<String, Stop> {
        let mut request = json!({ "limit": 1000 });
        for _ in 0..100 {
            let answer = self.list(request.clone()).await?;
            if let Some(found) =
                items(&answer, "/payload/jobs").iter().find(|each| text(each, "/job_id") == job)
            {
                return Ok(text(found, "/status").to_owned());
            }
            match answer.pointer("/payload/next_cursor") {
                Some(cursor) if !cursor.is_null() => request["cursor"] = cursor.clone(),
                _ => return Ok("not listed".to_owned()),
            }
        }
        Ok("not listed on 100 pages".to_owned())
    }
}

/// The payload of a `job.submit` for a job that behaves so; one that does not end by itself gets a limit.
pub(super) fn job(probe: &Probe, behaviour: Behaviour) -> Result<Value, Stop> {
    let (agent, input) = probe.agent(behaviour)?;
    let mut payload = json!({ "agent": agent, "input": input });
    if matches!(behaviour, Behaviour::Slow | Behaviour::Asks) {
        payload["max_runtime_sec"] = json!(LEFT_BEHIND);
    }
    Ok(payload)
}

/// The job's id from its `job.accepted` (§7.1).
pub(super) fn job_id(accepted: &Value) -> Result<String, Stop> {
    let id = text(accepted, "/payload/job_id");
    expect(!id.is_empty(), "job.accepted with a job_id in its payload", || short(accepted))?;
    Ok(id.to_owned())
}

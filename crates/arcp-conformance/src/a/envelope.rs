//! Dialect A §6 and §18: the envelope, delivery, errors.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::session::{Session, concerns, is_terminal};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe, fresh};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.6.1.envelope" Must
        "Every message of the runtime has arcp, id, type, timestamp and payload, and session_id once there \
        is a session."
        => envelope;
    "a.6.1.ids-unique" Must
        "Every message of the runtime has an id of its own."
        => ids_unique;
    "a.6.1.no-payload" Must
        "An envelope without a payload is answered with INVALID_ARGUMENT."
        => no_payload;
    "a.6.1.no-timestamp" Must
        "An envelope without a timestamp is answered with INVALID_ARGUMENT."
        => no_timestamp;
    "a.6.1.bad-timestamp" Must
        "A timestamp that is not of RFC 3339 is answered with INVALID_ARGUMENT."
        => bad_timestamp;
    "a.6.1.bad-priority" Must
        "A priority that is not of the specification is answered with INVALID_ARGUMENT."
        => bad_priority;
    "a.6.1.malformed-json" Must
        "A frame that is no JSON does not end the session (§21.3)."
        => malformed_json;
    "a.6.2.pong" Must
        "ping is answered with pong, with the ping's id as correlation_id."
        => pong;
    "a.6.3.unknown-tool" Must
        "A command that cannot be accepted is answered with a nack or an error, with its id as \
        correlation_id."
        => unknown_tool;
    "a.6.3.no-tool" Must
        "A tool.invoke without a tool is answered with INVALID_ARGUMENT."
        => no_tool;
    "a.6.4.duplicate-id" Must
        "A command that arrives twice with the same id is executed once."
        => duplicate_id;
    "a.6.4.idempotency-key" Should
        "A command with an idempotency_key that was used returns the previous outcome."
        => idempotency_key;
    "a.6.4.key-other-session" Should
        "An idempotency_key holds across the sessions of its principal."
        => key_other_session;
    "a.18.1.shape" Must
        "An error has code and message."
        => error_shape;
    "a.18.2.codes" Must
        "The code of an error is one of the specification, or namespaced."
        => error_codes;
}

async fn used(probe: &Probe) -> Result<Session, Stop> {
    let mut session = Session::open(probe).await?;
    if probe.tool(Behaviour::Succeeds).is_ok() {
        let (command, job) = session.start(probe, Behaviour::Succeeds).await?;
        session.end(&command, &job).await?;
    }
    session.round_trip().await?;
    Ok(session)
}

async fn envelope(probe: &Probe) -> Verdict {
    let session = used(probe).await?;
    for message in session.peer.received() {
        let fields = ["/arcp", "/id", "/type"];
        let named = fields.iter().all(|field| !text(message, field).is_empty());
        let timed = text(message, "/timestamp").parse::<jiff::Timestamp>().is_ok();
        let whole = named && timed && message.get("payload").is_some();
        expect(whole, "arcp, id, type, timestamp and payload", || short(message))?;
        let opened = kind(message).starts_with("session.") || text(message, "/session_id") == session.id;
        expect(opened, "session_id", || short(message))?;
    }
    Ok(())
}

async fn ids_unique(probe: &Probe) -> Verdict {
    let session = used(probe).await?;
    let mut seen = BTreeSet::new();
    for message in session.peer.received() {
        expect(seen.insert(text(message, "/id")), "an id that no other message has", || short(message))?;
    }
    Ok(())
}

/// Sends a ping whose envelope was spoilt, and fails unless it is refused and the session goes on.
async fn spoilt(probe: &Probe, spoil: fn(&mut Value)) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut ping = session.envelope("ping", json!({}));
    spoil(&mut ping);
    let id = session.peer.send(ping).await?;
    session.refusal(&id, &["INVALID_ARGUMENT"]).await?;
    session.round_trip().await
}

fn remove(envelope: &mut Value, field: &str) {
    if let Some(fields) = envelope.as_object_mut() {
        fields.remove(field);
    }
}

async fn no_payload(probe: &Probe) -> Verdict {
    spoilt(probe, |envelope| remove(envelope, "payload")).await
}

async fn no_timestamp(probe: &Probe) -> Verdict {
    spoilt(probe, |envelope| remove(envelope, "timestamp")).await
}

async fn bad_timestamp(probe: &Probe) -> Verdict {
    spoilt(probe, |envelope| envelope["timestamp"] = json!("next Tuesday")).await
}

async fn bad_priority(probe: &Probe) -> Verdict {
    spoilt(probe, |envelope| envelope["priority"] = json!("urgent")).await
}

async fn malformed_json(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.peer.send_text("{\"arcp\": \"1.0\", \"id\"".to_owned()).await?;
    session.round_trip().await
}

async fn pong(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.round_trip().await
}

async fn unknown_tool(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let payload = json!({ "tool": "arcp-conformance.no-such-tool", "arguments": {} });
    let id = session.send("tool.invoke", payload).await?;
    session.refusal(&id, &["NOT_FOUND", "UNIMPLEMENTED", "INVALID_ARGUMENT"]).await.map(drop)
}

async fn no_tool(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let id = session.send("tool.invoke", json!({ "arguments": {} })).await?;
    session.refusal(&id, &["INVALID_ARGUMENT"]).await.map(drop)
}

async fn duplicate_id(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut command = session.envelope("tool.invoke", Session::work(probe, Behaviour::Succeeds)?);
    let id = uuid::Uuid::now_v7().to_string();
    command["id"] = json!(id);
    session.peer.send(command.clone()).await?;
    session.peer.take("the end of the command", |message| is_terminal(message) && done(message)).await?;
    session.peer.send(command).await?;
    session.round_trip().await?;
    session.peer.settle().await;
    let started: BTreeSet<_> = session
        .peer
        .received()
        .filter(|message| matches!(kind(message), "job.accepted" | "job.started"))
        .map(|message| text(message, "/job_id"))
        .collect();
    expect(started.len() == 1, "one job for one id", || format!("the jobs {started:?}"))
}

fn done(message: &Value) -> bool {
    !text(message, "/job_id").is_empty() || !text(message, "/correlation_id").is_empty()
}

/// Runs a command with a key, and returns the job that answers it.
async fn keyed(session: &mut Session, probe: &Probe, key: &str) -> Result<String, Stop> {
    let mut command = session.envelope("tool.invoke", Session::work(probe, Behaviour::Succeeds)?);
    command["idempotency_key"] = json!(key);
    let id = session.peer.send(command).await?;
    let about = |message: &Value| {
        concerns(message, &id, "") && !text(message, "/job_id").is_empty() && kind(message) != "nack"
    };
    let answer = session.peer.take("a message about the job, with the correlation_id", about).await?;
    let job = text(&answer, "/job_id").to_owned();
    session.end(&id, &job).await?;
    Ok(job)
}

async fn idempotency_key(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let key = fresh("key");
    let one = keyed(&mut session, probe, &key).await?;
    let two = keyed(&mut session, probe, &key).await?;
    expect(one == two, &format!("the outcome of the job {one}"), || format!("the job {two}"))
}

async fn key_other_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let key = fresh("key");
    let one = keyed(&mut Session::open(probe).await?, probe, &key).await?;
    let two = keyed(&mut Session::open(probe).await?, probe, &key).await?;
    expect(one == two, &format!("the outcome of the job {one}"), || format!("the job {two}"))
}

/// Provokes errors of several kinds, and returns them.
async fn errors(probe: &Probe) -> Result<Vec<Value>, Stop> {
    let mut session = Session::open(probe).await?;
    session.send("tool.invoke", json!({ "tool": "arcp-conformance.no-such-tool", "arguments": {} })).await?;
    session.send("tool.invoke", json!({})).await?;
    session.send("artifact.fetch", json!({ "artifact_id": "art_nobody" })).await?;
    let error = |message: &Value| message["payload"]["code"].is_string() || kind(message) == "nack";
    session.peer.take("errors for commands that cannot be accepted", error).await?;
    session.peer.settle().await;
    let errors: Vec<_> = session.peer.received().filter(|message| error(message)).cloned().collect();
    Ok(errors)
}

async fn error_shape(probe: &Probe) -> Verdict {
    for error in errors(probe).await? {
        let whole = !text(&error, "/payload/code").is_empty() && error["payload"]["message"].is_string();
        expect(whole, "code and message", || short(&error))?;
    }
    Ok(())
}

/// The codes of §18.2 of draft-arcp-01.
const CODES: &str = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS \
    PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL \
    UNAVAILABLE DATA_LOSS UNAUTHENTICATED HEARTBEAT_LOST LEASE_EXPIRED LEASE_REVOKED \
    BACKPRESSURE_OVERFLOW RATE_LIMITED";

async fn error_codes(probe: &Probe) -> Verdict {
    for error in errors(probe).await? {
        let code = text(&error, "/payload/code");
        let known = code.contains('.') || CODES.split_whitespace().any(|each| each == code);
        expect(known, "a code of §18.2, or a namespaced one", || short(&error))?;
    }
    Ok(())
}

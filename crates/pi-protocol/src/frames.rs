//! What a client of the pi protocol is sent. Source: protocols/pi.md, "Transport", "Envelope", "Broadcasts". Fields stand in upstream's
//! order.

use mainstay_model::{CommandId, IdempotencyKey, Seq, Version};
use serde::Serialize;
use serde_json::{Value, json};

use super::command::PiCommand;

/// The version of the protocol.
pub(super) const PROTOCOL: &str = "1.0.0";

/// The answer to a command.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    pub(super) frame: &'static str,
    pub(super) command: String,
    pub(super) success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_version: Option<Version>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) replayed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) timed_out: bool,
}

impl Response {
    /// One that says why nothing came of it.
    pub(super) fn failure(id: Option<String>, command: impl Into<String>, error: String) -> Self {
        Self {
            id,
            frame: "response",
            command: command.into(),
            success: false,
            error: Some(error),
            data: None,
            session_version: None,
            replayed: false,
            timed_out: false,
        }
    }

    /// One that says what came of it.
    pub(super) fn success(id: Option<String>, command: &str, data: Option<Value>) -> Self {
        Self { success: true, error: None, data, ..Self::failure(id, command, String::new()) }
    }
}

/// How far a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Accepted,
    Started,
    Finished,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "command_accepted",
            Self::Started => "command_started",
            Self::Finished => "command_finished",
        }
    }
}

/// Tells that a command has come so far; once it is finished, with what its answer says.
pub(super) fn lifecycle(
    phase: Phase,
    command: &PiCommand,
    id: &CommandId,
    answer: Option<&Response>,
) -> Value {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Data<'a> {
        command_id: &'a CommandId,
        command_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
        depends_on: &'a [CommandId],
        #[serde(skip_serializing_if = "Option::is_none")]
        if_session_version: Option<Version>,
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<&'a IdempotencyKey>,
        #[serde(skip_serializing_if = "Option::is_none")]
        success: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_version: Option<Version>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    }
    let data = Data {
        command_id: id,
        command_type: &command.kind,
        session_id: command.session.as_deref(),
        depends_on: &command.depends_on,
        if_session_version: command.if_version,
        idempotency_key: command.key.as_ref(),
        success: answer.map(|answer| answer.success),
        error: answer.and_then(|answer| answer.error.as_deref()),
        session_version: answer.and_then(|answer| answer.session_version),
        replayed: answer.is_some_and(|answer| answer.replayed),
    };
    json!({ "type": phase.name(), "data": data })
}

/// The first thing a client is sent.
pub(super) fn server_ready(version: &str) -> Value {
    json!({
        "type": "server_ready",
        "data": { "serverVersion": version, "protocolVersion": PROTOCOL, "transports": ["websocket", "stdio"] },
    })
}

/// The second: what the daemon found when it started.
pub(super) fn startup_recovery_summary(recovery: &Value) -> Value {
    json!({ "type": "startup_recovery_summary", "data": recovery })
}

/// The last: the daemon goes down.
pub(super) fn server_shutdown(timeout_ms: u64) -> Value {
    json!({ "type": "server_shutdown", "data": { "reason": "shutdown", "timeoutMs": timeout_ms } })
}

/// All that an event of a session tells. Only the last frame has the event's number: who gives it has heard of the event whole, and gets
/// what came after.
pub(super) fn of_event(session: &str, told: Vec<Value>, seq: Option<Seq>) -> impl Iterator<Item = Value> {
    let last = told.len().saturating_sub(1);
    let told = told.into_iter().enumerate();
    told.map(move |(nth, told)| event(session, told, seq.filter(|_| nth == last)))
}

/// Something that happened in a session.
pub(super) fn event(session: &str, event: Value, seq: Option<Seq>) -> Value {
    let mut frame = json!({ "type": "event", "sessionId": session, "event": event });
    if let Some(seq) = seq {
        frame["seq"] = seq.0.into();
    }
    frame
}

/// A session came, or went.
pub(super) fn session_frame(kind: &str, session: &str, info: Option<&Value>) -> Value {
    let mut data = json!({ "sessionId": session });
    if let Some(info) = info {
        data["sessionInfo"] = info.clone();
    }
    json!({ "type": kind, "data": data })
}

//! What dialect A says of the things that happen to a job while it runs. Source: draft-arcp-01, 10 to 12 and 17.

use jiff::{SignedDuration, Timestamp};
use mainstay_arcp_protocol::a::execution::{JobProgress, JobState as WireState};
use mainstay_arcp_protocol::a::human::{
    ChoiceOption, HumanChoiceRequest, HumanInputCancelled, HumanInputRequest,
};
use mainstay_arcp_protocol::a::permission::{LeaseExtended, LeaseGranted, LeaseRevoked, PermissionRequest};
use mainstay_arcp_protocol::a::stream::{StreamChunk, StreamKind};
use mainstay_arcp_protocol::a::telemetry::{Log, LogLevel, Metric};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_model::elevation::Elevation;
use mainstay_model::grant::{Lease, LeaseChange};
use mainstay_model::message::TokenUsage;
use mainstay_model::permission::Permission;
use mainstay_model::tool_call::Progress;
use mainstay_model::{
    Ask, AskEnding, AskId, CommandId, Cost, LeaseId, OutputStream, PendingAsk, Question, SessionId, Source,
};
use serde_json::{Map, Number, Value, json};

use super::awaited_elevation::PERMISSION;
use super::binary::displayed;
use super::translator::{ATranslator, JobMessage, chunk, emitted, no_chunk, progress, wire_state};
use super::{ids, quorum};
use crate::job_news::{JobNews, tokens_of};
use crate::message_fold::JobView;

/// Until when a question can be answered that has no deadline: the draft wants one of each.
const NO_DEADLINE: SignedDuration = SignedDuration::from_hours(365 * 24);

/// What answered a question that nobody did. Source: draft-arcp-01, 12.4.
const DEFAULT: &str = "default";

/// For how long a permission is asked for, in seconds. A client that allows what is asked once need not say it.
pub(super) const ASKED_FOR_SECONDS: u64 = 300;

/// For how many seconds a job is trusted with more, as a metric.
const TRUST_ELEVATED: &str = "trust.elevated";

/// How the names of a job's streams begin.
pub(super) fn stream_prefix(job: &CommandId) -> String {
    format!("str_{}_", job.as_str().trim_start_matches("job_"))
}

/// The stream of a job that is of this kind.
pub(super) fn stream_of(job: &CommandId, kind: StreamKind) -> String {
    let name = match kind {
        StreamKind::Thought => "thoughts",
        _ => "text",
    };
    format!("{}{name}", stream_prefix(job))
}

/// What is said of a thing that happened to a job, but for its beginning and its end.
pub(super) fn messages_of(
    translator: &ATranslator,
    view: &JobView<'_>,
    news: &JobNews<'_>,
) -> Vec<Option<JobMessage>> {
    // A question, and its end, have their places also where the client cannot be asked.
    let asked = |said: JobMessage| translator.asks.then_some(said);
    let said = match news {
        JobNews::Asked(ask) if translator.permissions && is_permission(view, &ask.question) => {
            let request = asked_as(translator, ask, permission_request(view, ask));
            let blocked = progress(WireState::Blocked, ask.question.prompt.clone());
            return vec![Some(blocked), Some(request)];
        }
        JobNews::Asked(ask) => {
            let question = asked_as(translator, ask, question(ask, view.event.at));
            return vec![Some(progress(WireState::Blocked, ask.question.prompt.clone())), asked(question)];
        }
        JobNews::Voted { missing, by, .. } => {
            let who =
                by.as_ref().map_or_else(|| "somebody".to_owned(), |by| by.told_to(&translator.principal));
            vec![progress(WireState::Blocked, format!("{who} answered; {missing} more must answer the same"))]
        }
        JobNews::AskEnded { ask, ending, by } => {
            let goes_on = match view.is_blocked {
                true => progress(WireState::Blocked, "another question waits for an answer"),
                false => progress(WireState::Running, "the question needs no answer any more"),
            };
            let by = by.as_ref().map(|by| by.told_to(&translator.principal));
            return vec![asked(question_ended(ids::of_ask(*ask), ending, by)), Some(goes_on)];
        }
        JobNews::LeaseChanged { lease, change } => {
            let told = lease_changed(view.event.session, *lease, change);
            let told = translator.permissions.then_some(told);
            // The draft wants it to be seen by all who read a job's log.
            let audited = elevated(view, *lease, change).into_iter().map(Some);
            return std::iter::once(told).chain(audited).collect();
        }
        other => told_of(translator, view, other),
    };
    said.into_iter().map(Some).collect()
}

/// The question of an ask, as it is answered by its id.
fn asked_as(translator: &ATranslator, ask: &Ask, question: JobMessage) -> JobMessage {
    let extensions = quorum::fields_of(&ask.question).filter(|_| translator.quorum);
    question.called(ids::of_ask(ask.ask)).extended(extensions).critical()
}

/// How much of a job is done. Source: draft-arcp-01, 10.1.
fn progressed(progress: &Progress) -> JobMessage {
    let part = progress.total.as_ref().and_then(|total| {
        let (done, total) = (progress.current.as_f64()?, total.as_f64().filter(|total| *total > 0.0)?);
        Number::from_f64((100.0 * done / total).clamp(0.0, 100.0).floor())
    });
    let message = Some(progress.to_string());
    Message::JobProgress(JobProgress { percent: part, message, state: Some(WireState::Running) }).into()
}

/// The same of what every client is told.
fn told_of(translator: &ATranslator, view: &JobView<'_>, news: &JobNews<'_>) -> Vec<JobMessage> {
    match news {
        // Its acceptance says so, and its end is told elsewhere.
        JobNews::Waits | JobNews::Began | JobNews::Ended(_) => Vec::new(),
        JobNews::TaskEnded { .. }
        | JobNews::Asked(_)
        | JobNews::Voted { .. }
        | JobNews::AskEnded { .. }
        | JobNews::LeaseChanged { .. } => Vec::new(),
        JobNews::Printed { stream: OutputStream::Stdout, text } | JobNews::Said(text) => {
            vec![text_of(translator, view, text)]
        }
        JobNews::Printed { stream: OutputStream::Stderr, text } => vec![log(LogLevel::Error, text)],
        JobNews::Displayed(display) => displayed(translator, view, display),
        JobNews::Progressed { progress, .. } => vec![progressed(progress)],
        JobNews::OutputCut => vec![log(LogLevel::Warn, "the job printed more than is kept")],
        JobNews::Thought(text) if translator.streams => {
            let thought = StreamChunk {
                sequence: Some(view.event.seq.0),
                role: Some("assistant_thought".to_owned()),
                content: Some((*text).to_owned()),
                redacted: Some(false),
                ..no_chunk()
            };
            vec![chunk(view.job, StreamKind::Thought, thought)]
        }
        JobNews::Thought(text) => vec![emitted("thought", json!({ "text": text }))],
        JobNews::ToolCalled { call, tool, arguments } => {
            vec![emitted("tool_call", json!({ "call_id": call, "tool": tool, "arguments": arguments }))]
        }
        JobNews::ToolAnswered { call, text, is_error } => {
            vec![emitted("tool_result", json!({ "call_id": call, "text": text, "is_error": is_error }))]
        }
        JobNews::Used { usage, model } => metrics(usage, *model),
        JobNews::Noted(note) => vec![emitted("note", json!(note))],
        JobNews::Delegated { child, agent, .. } => {
            vec![emitted("delegate", json!({ "job_id": child, "agent": agent }))]
        }
        JobNews::HandedOver { from, to } => {
            let state = if view.is_blocked { WireState::Blocked } else { wire_state(view.known.state) };
            vec![emitted("handoff", json!({ "from": from, "to": to, "state": state }))]
        }
        JobNews::Cancelling => vec![progress(WireState::Running, "the job is being cancelled")],
    }
}

fn text_of(translator: &ATranslator, view: &JobView<'_>, text: &str) -> JobMessage {
    match translator.streams {
        true => {
            let data = Some(Value::String(text.to_owned()));
            let text = StreamChunk { sequence: Some(view.event.seq.0), data, ..no_chunk() };
            chunk(view.job, StreamKind::Text, text)
        }
        false => log(LogLevel::Info, text),
    }
}

fn log(level: LogLevel, text: &str) -> JobMessage {
    Message::Log(Log { level, message: text.to_owned(), attributes: None }).into()
}

/// The question of a job: to choose, where its schema lists texts, or else to answer.
fn question(ask: &Ask, at: Timestamp) -> JobMessage {
    let Ask { question, deadline, .. } = ask;
    let expires_at = deadline
        .map_or_else(|| at.checked_add(NO_DEADLINE).unwrap_or(Timestamp::MAX), |deadline| deadline.at);
    let prompt = question.prompt.clone();
    let choices = question.schema["enum"].as_array().and_then(|values| {
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    match choices.filter(|choices| !choices.is_empty()) {
        Some(choices) => {
            let option = |text: String| ChoiceOption { id: text.clone(), label: text };
            let options = choices.into_iter().map(option).collect();
            let default = question.default.as_ref().and_then(Value::as_str).map(str::to_owned);
            Message::HumanChoiceRequest(HumanChoiceRequest { prompt, options, expires_at, default }).into()
        }
        None => {
            let (response_schema, default) = (question.schema.clone(), question.default.clone());
            let request = HumanInputRequest { prompt, response_schema, expires_at, default };
            Message::HumanInputRequest(request).into()
        }
    }
}

/// What a session is asked for the vote of its principal, though it is not told of the job that asks.
pub(super) fn wanted_vote(translator: &ATranslator, pending: &PendingAsk) -> JobMessage {
    let ask = &pending.ask;
    let asked = match Permission::operation(&ask.question).filter(|_| translator.permissions) {
        Some(_) => operation_request(ask),
        None => question(ask, pending.raised_at),
    };
    asked_as(translator, ask, asked)
}

/// Whether it is asked for a permission, or for more trust.
fn is_permission(view: &JobView<'_>, question: &Question) -> bool {
    Permission::operation(question).is_some() || elevation_in(view, question).is_some()
}

/// What the job is to be trusted with; none of what a worker asks, whatever it says.
fn elevation_in(view: &JobView<'_>, question: &Question) -> Option<Elevation> {
    matches!(view.event.metadata.source, Source::Client { .. }).then(|| question.elevation()).flatten()
}

/// A question for a permission. Source: draft-arcp-01, 15.4.
fn permission_request(view: &JobView<'_>, ask: &Ask) -> JobMessage {
    if let Some(elevation) = elevation_in(view, &ask.question) {
        let Elevation { level, kind, pattern, duration_ms, .. } = elevation;
        let request = PermissionRequest {
            permission: format!("{}{level}", PERMISSION),
            resource: Some(pattern),
            operation: Some(kind.into()),
            reason: Some(ask.question.prompt.clone()),
            requested_lease_seconds: Some(duration_ms.div_ceil(1_000)),
            expires_at: ask.deadline.map(|deadline| deadline.at),
        };
        return Message::PermissionRequest(request).into();
    }
    operation_request(ask)
}

/// A question for a permission to do something.
fn operation_request(ask: &Ask) -> JobMessage {
    let operation = Permission::operation(&ask.question);
    let (kind, target) = operation.map(|asked| (String::from(asked.kind), asked.target)).unzip();
    Message::PermissionRequest(PermissionRequest {
        permission: kind.clone().unwrap_or_default(),
        resource: target,
        operation: kind,
        reason: Some(ask.question.prompt.clone()),
        requested_lease_seconds: Some(ASKED_FOR_SECONDS),
        expires_at: ask.deadline.map(|deadline| deadline.at),
    })
    .into()
}

/// What is said of a lease that was given.
pub(super) fn lease_granted(home: SessionId, lease: LeaseId, terms: &Lease) -> LeaseGranted {
    let kind = String::from(terms.asked().kind.clone());
    let elevated = terms.level().map(|level| format!("{}{level}", PERMISSION));
    LeaseGranted {
        lease_id: ids::of_lease(home, lease),
        permission: elevated.unwrap_or_else(|| kind.clone()),
        expires_at: terms.expires_at(),
        resource: Some(terms.resource().to_owned()),
        operation: Some(kind),
    }
}

/// Whether this end of a question gives a job what it is to be trusted with.
pub(super) fn gives_elevation(ending: &AskEnding) -> bool {
    matches!(ending, AskEnding::Answered { value } if Permission::of(value) == Some(Permission::Once))
}

/// What is said for the record of a lease that raises the trust in its job. Source: draft-arcp-01, 15.6.
fn elevated(view: &JobView<'_>, lease: LeaseId, change: &LeaseChange) -> Vec<JobMessage> {
    let LeaseChange::Granted { terms } = change else { return Vec::new() };
    let Some(level) = terms.level() else { return Vec::new() };
    let (operation, resource) = (&terms.asked().kind, terms.resource());
    let (by, until) = (view.event.metadata.source.principal(), terms.expires_at());
    let dims = json!({
        "level": level,
        "operation": operation,
        "resource": resource,
        "lease_id": ids::of_lease(view.event.session, lease),
        "granted_by": by,
        "expires_at": until,
    });
    let attributes = dims.as_object().cloned();
    // What a client wrote is shown as a quotation.
    let message = format!("{by} lets the job be {level} with {operation} of {resource:?} until {until}");
    let log = Log { level: LogLevel::Warn, message, attributes: attributes.clone() };
    let metric = Metric {
        name: TRUST_ELEVATED.to_owned(),
        value: terms.duration_ms().div_ceil(1_000).into(),
        unit: Some("seconds".to_owned()),
        dims: attributes,
    };
    vec![Message::Log(log).into(), Message::Metric(metric).into()]
}

/// What is said of a lease whose job runs in this session of the engine.
fn lease_changed(home: SessionId, lease: LeaseId, change: &LeaseChange) -> JobMessage {
    let lease_id = ids::of_lease(home, lease);
    let message = match change {
        LeaseChange::Granted { terms } => Message::LeaseGranted(lease_granted(home, lease, terms)),
        LeaseChange::Extended { expires_at } => {
            Message::LeaseExtended(LeaseExtended { lease_id, expires_at: *expires_at })
        }
        LeaseChange::Revoked { reason } => {
            Message::LeaseRevoked(LeaseRevoked { lease_id, reason: reason.clone(), code: None })
        }
    };
    let question = ids::of_ask(AskId::from_uuid(lease.as_uuid()));
    let answers = matches!(change, LeaseChange::Granted { .. }).then_some(question);
    JobMessage::from(message).answering(answers)
}

/// Says why a question needs no answer any more, to whoever may still show it. Source: draft-arcp-01, 12.3 and 12.4.
pub(super) fn question_ended(question: String, ending: &AskEnding, by: Option<String>) -> JobMessage {
    let (code, reason) = match ending {
        AskEnding::Answered { .. } | AskEnding::Withheld => (ErrorCode::Ok, "answered"),
        AskEnding::Defaulted { .. } => (ErrorCode::DeadlineExceeded, "the default was taken"),
        AskEnding::TimedOut { .. } => (ErrorCode::DeadlineExceeded, "nobody answered in time"),
        AskEnding::Cancelled => (ErrorCode::Cancelled, "taken back"),
    };
    let responded_by = match ending {
        AskEnding::Answered { .. } | AskEnding::Withheld => by,
        AskEnding::Defaulted { .. } => Some(DEFAULT.to_owned()),
        AskEnding::TimedOut { .. } | AskEnding::Cancelled => None,
    };
    let cancelled = HumanInputCancelled { code: Some(code), reason: Some(reason.to_owned()), responded_by };
    JobMessage::from(Message::HumanInputCancelled(cancelled)).answering(Some(question))
}

/// What a model was used for. Source: draft-arcp-01, 17.3.1.
fn metrics(usage: &TokenUsage, model: Option<&str>) -> Vec<JobMessage> {
    let metric = |name: &str, value: Number, unit: &str, kind: Option<&str>| {
        let dims = [("model", model), ("kind", kind)];
        let dims: Map<_, _> =
            dims.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
        let metric = Metric { name: name.to_owned(), value, unit: Some(unit.to_owned()), dims: Some(dims) };
        JobMessage::from(Message::Metric(metric))
    };
    let tokens =
        tokens_of(usage).map(|(kind, count)| metric("tokens.used", count.into(), "tokens", Some(kind)));
    let cost = (usage.cost != Cost::default())
        .then(|| json!(usage.cost).as_number().cloned())
        .flatten()
        .map(|cost| metric("cost.usd", cost, "usd", None));
    tokens.chain(cost).collect()
}

//! What happens to jobs as messages of dialect B. Source: draft-arcp-1.1, 7.3, 8 and 12.

use mainstay_arcp_protocol::b::{
    Encoding, Envelope, ErrorCode, Event as WireEvent, EventKind, FinalStatus, JobError, JobResult,
    JobStatus, Message, ResultChunk,
};
use mainstay_model::grant::Amount;
use mainstay_model::tool_call::Progress;
use mainstay_model::{Ask, Cost, Event, OutputStream, Timestamp, TokenUsage};
use serde_json::{Value, json};

use super::errors::payload;
use super::lease::ShownLease;
use super::peculiarities::Peculiarities;
use crate::frames::Outgoing;
use crate::job_news::{JobNews, tokens_of};
use crate::job_outcome::{FailureCause, JobFailure, JobOutcome, JobState};
use crate::message_fold::{JobView, Numbered, Translator};
use crate::message_id::ulid_of_place;
use crate::observer::Observer;

/// The code of a job whose code raised an exception, had errors, or ended its worker. Source: draft-arcp-02, 12: what an agent reports as a
/// failure of its own has a code that is not the protocol's.
const JOB_FAILED: &str = "JOB_FAILED";
/// The code of a job that was cut off because what ran it was lost.
const INTERRUPTED: &str = "INTERRUPTED";

/// Translates what happens to jobs for a session of dialect B.
#[derive(Clone, Debug)]
pub(crate) struct BTranslator {
    /// The session that is told.
    pub(super) session: String,
    /// Whether a large result comes in parts.
    pub(super) chunks: bool,
    /// The largest part of a result, in bytes.
    pub(super) chunk_bytes: usize,
    /// Whether its client is told what is left of a budget.
    pub(super) budgets: bool,
    /// Whether its client is told how much of a job is done.
    pub(super) progress: bool,
    /// What its client cannot read.
    pub(super) peculiarities: Peculiarities,
}

impl Numbered for Envelope {
    fn seq(&self) -> u64 {
        self.event_seq.unwrap_or_default()
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn encode(&self) -> Outgoing {
        Envelope::encode(self).into()
    }
}

impl Translator for BTranslator {
    type Message = Message;
    type Numbered = Envelope;

    fn accepted(&self, _: &JobView<'_>, _: bool) -> Vec<Option<Message>> {
        Vec::new()
    }

    fn news(&self, job: &JobView<'_>, news: &JobNews<'_>) -> Vec<Option<Message>> {
        let told = |kind| Some(Message::JobEvent(WireEvent { kind, ts: job.event.at }));
        let kinds = match news {
            JobNews::AskEnded { .. } if job.is_blocked => {
                let message = Some("another question waits for an answer".to_owned());
                vec![EventKind::Status { phase: "waiting_for_input".to_owned(), message }]
            }
            news => self.kinds(news),
        };
        kinds.into_iter().chain(self.left(job, news)).map(told).collect()
    }

    fn ended(&self, job: &JobView<'_>, outcome: JobOutcome) -> Vec<Option<Message>> {
        match outcome {
            JobOutcome::Done(result) => self.result(job, result).into_iter().map(Some).collect(),
            JobOutcome::Failed(failure) => vec![Some(Message::JobError(self.error(job.event, failure)))],
        }
    }

    fn envelopes(
        &self,
        JobView { job, known, event, .. }: &JobView<'_>,
        index: u16,
        message: Message,
        _: &[Observer],
        seq: u64,
    ) -> Vec<Envelope> {
        vec![Envelope {
            id: ulid_of_place(event, index),
            session_id: Some(self.session.clone()),
            trace_id: Some(known.origin.trace.clone()),
            job_id: Some(job.to_string()),
            event_seq: Some(seq + 1),
            message,
        }]
    }

    fn caught_up(&self, _: &Observer, _: u64) -> Vec<Envelope> {
        Vec::new()
    }

    fn closed(&self, _: &str, _: String, _: Timestamp, _: u64) -> Option<Envelope> {
        None
    }
}

impl BTranslator {
    fn kinds(&self, news: &JobNews<'_>) -> Vec<EventKind> {
        match news {
            JobNews::Progressed { progress, .. } if self.progress => {
                let Progress { current, total, units, message } = progress.clone();
                vec![EventKind::Progress { current, total, units, message }]
            }
            other => kinds(other),
        }
    }

    /// What is left of a job's budget once something was spent. Source: draft-arcp-1.1, 9.6.
    fn left(&self, job: &JobView<'_>, news: &JobNews<'_>) -> Vec<EventKind> {
        let is_spent = match news {
            JobNews::Used { usage, .. } => usage.cost != Cost::default(),
            JobNews::Delegated { .. } => true,
            JobNews::TaskEnded { unspent } => !unspent.is_empty(),
            _ => false,
        };
        let grants = job.known.grants.as_ref().filter(|_| is_spent && self.budgets);
        let metric = |left: Amount| EventKind::Metric {
            name: "cost.budget.remaining".to_owned(),
            value: left.value.to_string().parse().unwrap_or_default(),
            unit: Some(left.currency.as_str().to_owned()),
            dimensions: None,
        };
        grants.map(|grants| grants.budget().all_remaining().map(metric).collect()).unwrap_or_default()
    }

    /// The messages that tell the result of a job: a large one comes in parts before the last one.
    fn result(&self, JobView { job, event, .. }: &JobView<'_>, result: Value) -> Vec<Message> {
        let text = result.to_string();
        if !self.chunks || text.len() <= self.chunk_bytes {
            return vec![Message::JobResult(JobResult::inline(FinalStatus::Success, result, event.at))];
        }
        let result_id = format!("res_{}", job.as_str().trim_start_matches("job_"));
        let parts = parts_of(&text, self.chunk_bytes);
        let last = parts.len().saturating_sub(1);
        let chunks = parts.into_iter().enumerate().map(|(index, part)| {
            let chunk = ResultChunk {
                result_id: result_id.clone(),
                chunk_seq: index as u64,
                data: part.to_owned(),
                encoding: Encoding::Utf8,
                more: index < last,
            };
            Message::JobEvent(WireEvent { kind: EventKind::ResultChunk(chunk), ts: event.at })
        });
        let result = JobResult::chunked(result_id.clone(), text.len() as u64, event.at);
        chunks.chain([Message::JobResult(result)]).collect()
    }

    fn error(&self, event: &Event, JobFailure { cause, message, details }: JobFailure) -> JobError {
        let (status, code, retryable) = match &cause {
            FailureCause::Job => (FinalStatus::Error, JOB_FAILED, false),
            FailureCause::Cancelled | FailureCause::Killed | FailureCause::Overdue => {
                (FinalStatus::Cancelled, ErrorCode::Cancelled.as_str(), false)
            }
            FailureCause::TimedOut => (FinalStatus::TimedOut, ErrorCode::Timeout.as_str(), false),
            FailureCause::Interrupted => (FinalStatus::Error, INTERRUPTED, true),
            FailureCause::Refused(error) => {
                let wire = payload(error);
                let status = match error {
                    mainstay_model::Error::Cancelled | mainstay_model::Error::ParentEnded { .. } => {
                        FinalStatus::Cancelled
                    }
                    mainstay_model::Error::TimedOut { .. } => FinalStatus::TimedOut,
                    _ => FinalStatus::Error,
                };
                return JobError {
                    final_status: self.peculiarities.final_status(status),
                    code: wire.code,
                    message: wire.message,
                    retryable: wire.retryable,
                    details: wire.details,
                    completed_at: Some(event.at),
                };
            }
        };
        JobError {
            final_status: self.peculiarities.final_status(status),
            code: code.to_owned(),
            message,
            retryable,
            details,
            completed_at: Some(event.at),
        }
    }
}

/// The status of a job that is so far.
pub(super) const fn status_of(state: JobState) -> JobStatus {
    match state {
        JobState::Waits => JobStatus::Pending,
        JobState::Runs => JobStatus::Running,
        JobState::Done => JobStatus::Success,
        JobState::Failed => JobStatus::Error,
        JobState::Cancelled => JobStatus::Cancelled,
        JobState::TimedOut => JobStatus::TimedOut,
    }
}

/// What happened to a job, as kinds of events. Source: draft-arcp-1.1, 8.2.
fn kinds(news: &JobNews<'_>) -> Vec<EventKind> {
    let log = |level: &str, text: &str| EventKind::Log { level: level.to_owned(), message: text.to_owned() };
    let status =
        |phase: &str, message: Option<String>| EventKind::Status { phase: phase.to_owned(), message };
    let vendor = |kind: &str, body: Value| EventKind::Vendor { kind: kind.to_owned(), body };
    match news {
        JobNews::Waits => vec![status("queued", None)],
        JobNews::Began => vec![status("running", None)],
        JobNews::Printed { stream: OutputStream::Stdout, text } | JobNews::Said(text) => {
            vec![log("info", text)]
        }
        JobNews::Printed { stream: OutputStream::Stderr, text } => vec![log("error", text)],
        JobNews::Displayed(display) | JobNews::Progressed { display, .. } => {
            vec![vendor("x-mainstay.display", json!(display))]
        }
        JobNews::OutputCut => vec![log("warn", "the job printed more than is kept")],
        JobNews::Thought(text) => vec![EventKind::Thought { text: (*text).to_owned() }],
        JobNews::ToolCalled { call, tool, arguments } => vec![EventKind::ToolCall {
            tool: (*tool).to_owned(),
            args: arguments.clone(),
            call_id: (*call).to_owned(),
        }],
        JobNews::ToolAnswered { call, text, is_error: false } => vec![EventKind::ToolResult {
            call_id: (*call).to_owned(),
            result: Some(json!(text)),
            error: None,
        }],
        JobNews::ToolAnswered { call, text, is_error: true } => vec![EventKind::ToolResult {
            call_id: (*call).to_owned(),
            result: None,
            error: Some(json!({ "code": "TOOL_FAILED", "message": text, "retryable": false })),
        }],
        JobNews::Used { usage, model } => metrics(usage, *model),
        JobNews::Noted(note) => vec![vendor("x-mainstay.note", json!(note))],
        JobNews::Asked(ask) => {
            vec![
                status("waiting_for_input", Some(ask.question.prompt.clone())),
                vendor("x-mainstay.ask", asked(ask)),
            ]
        }
        JobNews::Voted { ask, missing, by } => {
            let by = by.as_ref().map(|by| &by.principal);
            vec![vendor("x-mainstay.vote", json!({ "ask": ask, "missing": missing, "by": by }))]
        }
        JobNews::AskEnded { .. } => vec![status("running", None)],
        JobNews::LeaseChanged { lease, change } => {
            vec![vendor("x-mainstay.lease", json!({ "lease": lease, "change": change }))]
        }
        JobNews::Delegated { child, agent, grants } => {
            let lease = ShownLease::of(*grants).lease;
            let body =
                json!({ "delegate_id": child, "job_id": child, "agent": agent, "lease_request": lease });
            vec![EventKind::Delegate(body)]
        }
        JobNews::HandedOver { from, to } => {
            vec![vendor("x-mainstay.handoff", json!({ "from": from, "to": to }))]
        }
        JobNews::Cancelling => vec![status("cancelling", None)],
        JobNews::TaskEnded { .. } | JobNews::Ended(_) => Vec::new(),
    }
}

/// What an ask wants, and of how many where one is not enough.
fn asked(ask: &Ask) -> Value {
    let mut asked = json!({ "ask": ask.ask, "schema": ask.question.schema });
    if ask.question.needed_answers() > 1 {
        asked["quorum"] = json!(ask.question.needed_answers());
    }
    asked
}

/// What a model was used for. The names are those of draft-arcp-01, 17.3.1.
fn metrics(usage: &TokenUsage, model: Option<&str>) -> Vec<EventKind> {
    let metric = |name: &str, value: Value, unit: &str, kind: Option<&str>| EventKind::Metric {
        name: name.to_owned(),
        value,
        unit: Some(unit.to_owned()),
        dimensions: Some(json!({ "model": model, "kind": kind })),
    };
    let tokens =
        tokens_of(usage).map(|(kind, count)| metric("tokens.used", json!(count), "tokens", Some(kind)));
    let cost =
        (usage.cost != Cost::default()).then(|| metric("cost.inference", json!(usage.cost), "USD", None));
    tokens.chain(cost).collect()
}

/// A text in parts of at most so many bytes, cut between characters.
fn parts_of(mut text: &str, bytes: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    while text.len() > bytes {
        let cut = match text.floor_char_boundary(bytes) {
            // One character is larger than a part.
            0 => text.ceil_char_boundary(1),
            cut => cut,
        };
        let (part, rest) = text.split_at(cut);
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

//! What a session of dialect B is told of its jobs, as numbered messages: a fold over the log. Source: draft-arcp-1.1, 8.
//!
//! The numbers are counted along the fold, so they are the same each time the log is read again, and have no gap over any cut. Nothing here
//! reads a clock or a random number: a message that is told again is the same, with its id.

use std::collections::HashMap;

use mainstay_arcp_protocol::b::{
    Encoding, Envelope, Event as WireEvent, EventKind, FinalStatus, JobError, JobResult, JobStatus, Message,
    ResultChunk,
};
use mainstay_arcp_protocol::ids::{ulid_number, ulid_text};
use mainstay_model::{CommandId, Event, OutputStream, Position, Principal, SessionId, Timestamp};
use serde_json::{Value, json};

use super::outcome::{Outcome, outcome_of};
use super::peculiarities::Peculiarities;
use crate::feed::{Feed, Told, submitted};
use crate::job_id::trace_of_key;
use crate::job_news::JobNews;
use crate::stored_session::{Base, History, JobAtBase, ToldAtBase};

/// How a session wants to be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Whether a large result comes in parts.
    pub(super) chunks: bool,
    /// The largest part of a result, in bytes.
    pub(super) chunk_bytes: usize,
    /// What its client cannot read.
    pub(super) peculiarities: Peculiarities,
}

/// Tells a session of its jobs.
pub(super) struct Teller {
    session: String,
    feed: Feed,
    style: Style,
    /// The number of the last message.
    seq: u64,
    jobs: HashMap<CommandId, ToldJob>,
}

/// What was told of a job.
#[derive(Clone, Debug)]
pub(super) struct ToldJob {
    /// The agent that has the job, with its version.
    pub(super) agent: String,
    pub(super) home: SessionId,
    pub(super) is_own: bool,
    pub(super) status: JobStatus,
    pub(super) submitted_at: Timestamp,
    pub(super) trace: String,
    /// The number of the last message about it.
    pub(super) last_seq: u64,
    /// What an agent said last.
    said: Option<String>,
}

impl ToldJob {
    fn at_base(job: &JobAtBase, told: &ToldAtBase) -> Self {
        let ToldAtBase { has_begun, submitted_at, last_seq, .. } = *told;
        Self {
            agent: String::new(),
            home: job.home,
            is_own: job.is_own,
            status: if has_begun { JobStatus::Running } else { JobStatus::Pending },
            submitted_at,
            trace: told.trace.clone(),
            last_seq,
            said: told.said.clone(),
        }
    }

    fn to_base(&self) -> ToldAtBase {
        ToldAtBase {
            has_begun: self.status == JobStatus::Running,
            submitted_at: self.submitted_at,
            trace: self.trace.clone(),
            last_seq: self.last_seq,
            said: self.said.clone(),
        }
    }
}

impl Teller {
    /// Of a session that was told all before this place. Its jobs' agents have no names yet.
    pub(super) fn new(session: &str, principal: &Principal, style: Style, base: &Base) -> Self {
        let mut feed = Feed::new(session.to_owned(), principal.clone());
        let mut jobs = HashMap::new();
        for job in &base.jobs {
            feed.join(job.job.clone(), job.home, job.is_own);
            if let Some(told) = &job.told {
                jobs.insert(job.job.clone(), ToldJob::at_base(job, told));
            }
        }
        Self { session: session.to_owned(), feed, style, seq: base.seq, jobs }
    }

    /// Forgets the jobs that ended with a message of at most this number.
    pub(super) fn forget_ended(&mut self, seq: u64) {
        let ended: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, told)| told.status.is_terminal() && told.last_seq <= seq)
            .map(|(job, _)| job.clone())
            .collect();
        for job in ended {
            self.jobs.remove(&job);
            self.feed.forget(&job);
        }
    }

    /// Names the agents of the jobs that it began with.
    pub(super) fn name_agents(&mut self, agent_of: impl Fn(SessionId) -> String) {
        self.jobs.values_mut().for_each(|job| job.agent = agent_of(job.home));
    }

    /// What the fold knows behind this event.
    pub(super) fn base(&self, position: Position) -> Base {
        let jobs = self.feed.open_jobs().map(|(job, fed)| JobAtBase {
            job: job.clone(),
            home: fed.home,
            is_own: fed.is_own,
            told: self.jobs.get(job).map(ToldJob::to_base),
        });
        Base { position, seq: self.seq, jobs: jobs.collect() }
    }

    /// The number of the last message.
    pub(super) const fn seq(&self) -> u64 {
        self.seq
    }

    /// The job of this name, where the session is told of it.
    pub(super) fn job(&self, job: &CommandId) -> Option<&ToldJob> {
        self.jobs.get(job).filter(|_| self.feed.job(job).is_some())
    }

    /// Whether the session is told of this job though another submitted it.
    pub(super) fn has_joined(&self, job: &CommandId) -> bool {
        self.feed.job(job).is_some_and(|known| !known.is_own)
    }

    /// The jobs that the session is told of.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (&CommandId, &ToldJob)> {
        self.jobs.iter().filter(|(job, _)| self.feed.job(job).is_some())
    }

    /// Tells of a job of another session from here on.
    pub(super) fn join(&mut self, job: &CommandId, home: SessionId, is_own: bool) {
        self.feed.join(job.clone(), home, is_own);
    }

    /// Tells no more of a job of another session.
    pub(super) fn leave(&mut self, job: &CommandId) {
        self.feed.leave(job);
    }

    /// The messages about what an event says, in order; `agent_of` names the agent of a session of the engine.
    pub(super) fn tell(&mut self, event: &Event, agent_of: impl Fn(SessionId) -> String) -> Vec<Envelope> {
        self.tell_part(event, agent_of, History::All)
    }

    /// The same, but that of what happened before a job was joined only so much is told.
    pub(super) fn tell_part(
        &mut self,
        event: &Event,
        agent_of: impl Fn(SessionId) -> String,
        history: History,
    ) -> Vec<Envelope> {
        let Some(told) = self.feed.take(event) else { return Vec::new() };
        self.note_job(&told, agent_of);
        let Told { job, event, news, .. } = told;
        let mut messages = Vec::new();
        let mut index = 0_u16;
        for news in &news {
            for message in self.messages(&job, event, news) {
                let is_told = match history {
                    History::All => true,
                    History::Nothing => false,
                    History::After { position, index: last } => (event.position, index) > (position, last),
                    History::End => matches!(news, JobNews::Ended(_)),
                };
                if is_told {
                    messages.push(self.envelope(&job, event, index, message));
                }
                index = index.saturating_add(1);
            }
        }
        messages
    }

    /// Notes the job that is told of.
    fn note_job(&mut self, told: &Told<'_>, agent_of: impl Fn(SessionId) -> String) {
        let Some(fed) = self.feed.job(&told.job) else { return };
        let trace = || {
            let given = submitted(told.event).and_then(|key| trace_of_key(key, &told.job));
            given.map_or_else(|| trace_of_job(&told.job), str::to_owned)
        };
        self.jobs.entry(told.job.clone()).or_insert_with(|| ToldJob {
            agent: agent_of(fed.home),
            home: fed.home,
            is_own: fed.is_own,
            status: JobStatus::Pending,
            submitted_at: told.event.at,
            trace: trace(),
            last_seq: 0,
            said: None,
        });
    }

    fn envelope(&mut self, job: &CommandId, event: &Event, index: u16, message: Message) -> Envelope {
        self.seq += 1;
        let trace = self.jobs.get_mut(job).map(|known| {
            known.last_seq = self.seq;
            known.trace.clone()
        });
        Envelope {
            id: message_id(event, index),
            session_id: Some(self.session.clone()),
            trace_id: trace,
            job_id: Some(job.to_string()),
            event_seq: Some(self.seq),
            message,
        }
    }

    fn messages(&mut self, job: &CommandId, event: &Event, news: &JobNews<'_>) -> Vec<Message> {
        let Some(known) = self.jobs.get_mut(job) else { return Vec::new() };
        match news {
            JobNews::Began => known.status = JobStatus::Running,
            JobNews::Said(text) => known.said = Some((*text).to_owned()),
            _ => {}
        }
        if let JobNews::Ended(end) = news {
            let outcome = outcome_of(end, known.said.as_deref());
            known.status = status_of(&outcome);
            return ending(job, event, outcome, self.style);
        }
        let told = |kind| Message::JobEvent(WireEvent { kind, ts: event.at });
        kinds(news).into_iter().map(told).collect()
    }
}

/// The id of a message, which is the same each time it is told: when its event happened, the event's place in the log, and the message's among those
/// of the event.
fn message_id(event: &Event, index: u16) -> String {
    let milliseconds = u128::from(event.at.as_millisecond().unsigned_abs()) & ((1 << 48) - 1);
    ulid_text(milliseconds << 80 | u128::from(event.position.0) << 16 | u128::from(index))
}

/// The place in the log of the event that a message is about, and the message's among those of the event, by its id.
pub(super) fn place_of_message(id: &str) -> Option<(Position, u16)> {
    let number = ulid_number(id)?;
    let position = u64::try_from((number >> 16) & u128::from(u64::MAX)).ok()?;
    Some((Position(position), u16::try_from(number & u128::from(u16::MAX)).ok()?))
}

/// A trace id for a job whose client gave none, of 32 hexadecimal digits.
pub(super) fn trace_of_job(job: &CommandId) -> String {
    let hash = blake3::derive_key("mainstay arcp trace id 1", job.as_str().as_bytes());
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn status_of(outcome: &Outcome) -> JobStatus {
    match outcome {
        Outcome::Success { .. } => JobStatus::Success,
        Outcome::Error { status: FinalStatus::Cancelled, .. } => JobStatus::Cancelled,
        Outcome::Error { status: FinalStatus::TimedOut, .. } => JobStatus::TimedOut,
        Outcome::Error { .. } => JobStatus::Error,
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
        JobNews::Displayed(display) => vec![vendor("x-mainstay.display", json!(display))],
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
                vendor("x-mainstay.ask", json!({ "ask": ask.ask, "schema": ask.question.schema })),
            ]
        }
        JobNews::AskEnded { .. } => vec![status("running", None)],
        JobNews::Cancelling => vec![status("cancelling", None)],
        JobNews::Ended(_) => Vec::new(),
    }
}

/// What a model was used for. The names are those of draft-arcp-01, 17.3.1.
fn metrics(usage: &mainstay_model::TokenUsage, model: Option<&str>) -> Vec<EventKind> {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
    ];
    let metric = |name: &str, value: Value, unit: &str, kind: Option<&str>| EventKind::Metric {
        name: name.to_owned(),
        value,
        unit: Some(unit.to_owned()),
        dimensions: Some(json!({ "model": model, "kind": kind })),
    };
    let used = counts.into_iter().filter(|(_, count)| *count > 0);
    let tokens = used.map(|(kind, count)| metric("tokens.used", json!(count), "tokens", Some(kind)));
    let cost = (usage.cost != mainstay_model::Cost::default())
        .then(|| metric("cost.inference", json!(usage.cost), "USD", None));
    tokens.chain(cost).collect()
}

/// The messages that tell the end of a job: a large result comes in parts before the last one.
fn ending(job: &CommandId, event: &Event, outcome: Outcome, style: Style) -> Vec<Message> {
    match outcome {
        Outcome::Success { result } => {
            let text = result.to_string();
            if !style.chunks || text.len() <= style.chunk_bytes {
                let result = JobResult::inline(FinalStatus::Success, result, event.at);
                return vec![Message::JobResult(result)];
            }
            let result_id = format!("res_{}", job.as_str().trim_start_matches("job_"));
            let parts = parts_of(&text, style.chunk_bytes);
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
        Outcome::Error { status, code, message, retryable, details } => {
            let status = style.peculiarities.final_status(status);
            let error = JobError {
                final_status: status,
                code,
                message,
                retryable,
                details,
                completed_at: Some(event.at),
            };
            vec![Message::JobError(error)]
        }
    }
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

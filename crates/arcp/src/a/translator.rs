//! What happens to jobs as messages of dialect A. Source: draft-arcp-01, 6.3, 10, 11, 12, 13 and 17.

use mainstay_arcp_protocol::a::execution::{
    JobAccepted, JobCancelled, JobCompleted, JobProgress, JobStarted, JobState as WireState, ToolResult,
};
use mainstay_arcp_protocol::a::sidecar::{Owner, SidecarFrame};
use mainstay_arcp_protocol::a::stream::{StreamChunk, StreamClose, StreamKind, StreamOpen};
use mainstay_arcp_protocol::a::subscription::{SubscribeClosed, SubscribeEvent};
use mainstay_arcp_protocol::a::telemetry::EventEmit;
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message, Priority};
use mainstay_model::{Base64, CommandId, Principal, Timestamp};
use serde_json::{Value, json};

use super::news::{messages_of, stream_of};
use super::quorum::Extensions;
use super::results::ResultArtifacts;
use super::{errors, ids};
use crate::frames::Outgoing;
use crate::job_news::JobNews;
use crate::job_outcome::{FailureCause, JobOutcome, JobState};
use crate::message_fold::{Handover, JobView, Numbered, ToldJob, Translator};
use crate::observer::{Observer, is_among};

/// The event that separates what an observer is told of the past from what happens now. Source: draft-arcp-01, 13.3.
const BACKFILL_COMPLETE: &str = "subscription.backfill_complete";

/// The kinds of the streams that a job has for as long as it runs.
pub(super) const WHOLE_JOB: [StreamKind; 2] = [StreamKind::Text, StreamKind::Thought];

/// Translates what happens to jobs for a session of dialect A.
#[derive(Clone, Debug)]
pub(crate) struct ATranslator {
    /// The session that is told.
    pub(super) session: String,
    /// The principal of the session.
    pub(super) principal: Principal,
    /// Whether what a job prints comes as a stream; else as lines of a log.
    pub(super) streams: bool,
    /// Whether what a job shows as bytes comes as streams.
    pub(super) binary: bool,
    /// Whether the bytes of those streams come in frames of their own.
    pub(super) sidecar: bool,
    /// Which results are told as artifacts, where its client has those.
    pub(super) results: Option<ResultArtifacts>,
    /// Whether a job ends as a job; else as the invocation of a tool.
    pub(super) durable_jobs: bool,
    /// Whether its client can be asked.
    pub(super) asks: bool,
    /// Whether its client is asked for permissions.
    pub(super) permissions: bool,
    /// Whether it is told how many must give the same answer.
    pub(super) quorum: bool,
}

/// What is said of a job, before it has its envelope.
pub(crate) struct JobMessage {
    message: Message,
    /// The stream that it belongs to.
    stream: Option<String>,
    /// The message that it answers.
    answers: Option<String>,
    /// Its id, where that is not the one of its event's place.
    id: Option<String>,
    priority: Option<Priority>,
    extensions: Option<Extensions>,
    /// The bytes of a piece of a binary stream.
    bytes: Option<Vec<u8>>,
    /// Whether it is for the session alone, which holds the job or has held it, and for no observer.
    is_for_session: bool,
}

impl From<Message> for JobMessage {
    fn from(message: Message) -> Self {
        Self {
            message,
            stream: None,
            answers: None,
            id: None,
            priority: None,
            extensions: None,
            bytes: None,
            is_for_session: false,
        }
    }
}

impl JobMessage {
    /// The same, as part of a stream.
    pub(super) fn in_stream(self, stream: String) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The same, a piece of a stream, with its bytes.
    pub(super) fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// The same, for the session alone.
    fn for_session(self) -> Self {
        Self { is_for_session: true, ..self }
    }

    /// The same, as the answer to a message.
    pub(super) fn answering(self, message: Option<String>) -> Self {
        Self { answers: message, ..self }
    }

    /// The same, with this id.
    pub(super) fn called(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The same, with these fields of extensions.
    pub(super) fn extended(self, extensions: Option<Extensions>) -> Self {
        Self { extensions, ..self }
    }

    /// The same in an envelope of its own with this id, as what is told beside the jobs of a session.
    pub(super) fn beside_jobs(self, session: &str, id: String, at: Timestamp) -> Envelope {
        let Self { message, answers, priority, extensions, .. } = self;
        Envelope {
            session_id: Some(session.to_owned()),
            correlation_id: answers,
            priority,
            extensions,
            ..Envelope::new(id, at, message)
        }
    }

    /// The same, as what must not be deferred. Source: draft-arcp-01, 6.5.
    pub(super) fn critical(self) -> Self {
        Self { priority: Some(Priority::Critical), ..self }
    }
}

/// A message in its envelope, with its number among those of its session.
pub(crate) struct Delivery {
    seq: u64,
    envelope: Envelope,
    /// The frames of bytes that follow it.
    bytes: Vec<Vec<u8>>,
    /// The job that it tells of.
    job: Option<CommandId>,
    /// The stream that it belongs to.
    stream: Option<String>,
    /// Whether it is a chunk of that.
    is_chunk: bool,
}

impl Delivery {
    /// A message that tells of no job.
    const fn of_no_job(seq: u64, envelope: Envelope) -> Self {
        Self { seq, envelope, bytes: Vec::new(), job: None, stream: None, is_chunk: false }
    }
}

impl Numbered for Delivery {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn id(&self) -> &str {
        &self.envelope.id
    }

    fn job(&self) -> Option<&CommandId> {
        self.job.as_ref()
    }

    fn stream(&self) -> Option<&str> {
        self.stream.as_deref()
    }

    fn chunk_of(&self) -> Option<&str> {
        self.stream().filter(|_| self.is_chunk)
    }

    fn encode(&self) -> Outgoing {
        Outgoing { text: encoded(&self.envelope), bytes: self.bytes.clone() }
    }
}

/// The text of an envelope of this runtime.
pub(super) fn encoded(envelope: &Envelope) -> String {
    envelope.encode().unwrap_or_default()
}

impl Translator for ATranslator {
    type Message = JobMessage;
    type Numbered = Delivery;

    fn accepted(&self, JobView { job, known, .. }: &JobView<'_>, waits: bool) -> Vec<Option<JobMessage>> {
        let state = if waits { WireState::Queued } else { WireState::Accepted };
        let accepted = JobAccepted { job_id: Some(job.to_string()), state: Some(state) };
        vec![Some(JobMessage::from(Message::JobAccepted(accepted)).answering(known.origin.message.clone()))]
    }

    fn news(&self, view: &JobView<'_>, news: &JobNews<'_>) -> Vec<Option<JobMessage>> {
        let opened = |kind| {
            let open = StreamOpen {
                kind,
                content_type: Some("text/plain".to_owned()),
                encoding: Some("utf-8".to_owned()),
            };
            Message::StreamOpen(open)
        };
        match news {
            // Who holds the job now was not told of its streams before, and who held it is told of them no more. Observers are, as before.
            JobNews::HandedOver { .. } => {
                let closed = |_| {
                    let reason = Some("another session has the job".to_owned());
                    Message::StreamClose(StreamClose { reason, chunks: None })
                };
                let open = self.in_streams(view, opened);
                let open = open.map(|said| said.filter(|_| view.handover == Some(Handover::Taken)));
                let close = self.in_streams(view, closed);
                let close = close.map(|said| said.filter(|_| view.handover == Some(Handover::Given)));
                let streams = open.chain(close).map(|said| said.map(JobMessage::for_session));
                messages_of(self, view, news).into_iter().chain(streams).collect()
            }
            JobNews::Began => {
                let started = Message::JobStarted(JobStarted { attempt: Some(1) });
                std::iter::once(Some(started.into())).chain(self.in_streams(view, opened)).collect()
            }
            news => messages_of(self, view, news),
        }
    }

    fn ended(&self, view: &JobView<'_>, outcome: JobOutcome) -> Vec<Option<JobMessage>> {
        let closed = |_| {
            Message::StreamClose(StreamClose { reason: Some("the job has ended".to_owned()), chunks: None })
        };
        let mut said: Vec<_> = self.in_streams(view, closed).collect();
        let last = JobMessage::from(self.last(view, outcome)).answering(view.known.origin.message.clone());
        said.push(Some(last.critical()));
        said
    }

    fn envelopes(
        &self,
        view: &JobView<'_>,
        index: u16,
        said: JobMessage,
        observers: &[Observer],
        seq: u64,
    ) -> Vec<Delivery> {
        let JobView { job, known, event, .. } = view;
        let JobMessage { message, stream, answers, id, priority, extensions, bytes, is_for_session } = said;
        let id = id.unwrap_or_else(|| ids::of_event(event, index));
        let original = Envelope {
            session_id: Some(known.origin.session.clone()),
            job_id: Some(job.to_string()),
            stream_id: stream,
            trace_id: Some(known.origin.trace.clone()),
            correlation_id: answers,
            priority,
            extensions,
            ..Envelope::new(id, event.at, message)
        };
        let is_watching = |observer: &&Observer| !is_for_session && is_wanted(observer, view, &original);
        let watching: Vec<_> = observers.iter().filter(is_watching).collect();
        // Observers have bytes within the envelope, which is within another.
        let whole = match &bytes {
            Some(bytes) if !(self.sidecar && watching.is_empty()) => in_envelope(original.clone(), bytes),
            _ => original.clone(),
        };
        let as_json = |envelope| serde_json::from_str(&encoded(envelope)).unwrap_or(Value::Null);
        let event_of_observers = if watching.is_empty() { Value::Null } else { as_json(&whole) };
        let is_chunk = matches!(original.message, Message::StreamChunk(_));
        let stream = original.stream_id.clone();
        let delivery = |seq, bytes, envelope| {
            let (job, stream) = (Some((*job).clone()), stream.clone());
            Delivery { seq, envelope, bytes, job, stream, is_chunk }
        };
        let mut delivered: Vec<Delivery> = Vec::new();
        let mut seq = seq;
        if known.is_own || is_for_session {
            seq += 1;
            // Another session may have submitted it, and handed it over.
            let to_own = |envelope| Envelope { session_id: Some(self.session.clone()), ..envelope };
            let (original, whole) = (to_own(original), to_own(whole));
            delivered.push(match bytes.filter(|_| self.sidecar) {
                Some(bytes) => delivery(seq, vec![beside(&original, bytes)], original),
                None => delivery(seq, Vec::new(), whole),
            });
        }
        for observer in watching {
            seq += 1;
            let id = ids::of_observed(event, index, &observer.subscription);
            let told = self.to_observer(observer, event_of_observers.clone(), event.at, id);
            delivered.push(delivery(seq, Vec::new(), told));
        }
        delivered
    }

    fn caught_up(&self, observer: &Observer, seq: u64) -> Vec<Delivery> {
        let complete = EventEmit { r#type: BACKFILL_COMPLETE.to_owned(), data: None };
        // It is no event of a job, so its id is its own.
        let id = format!("{BACKFILL_COMPLETE}/{}", observer.subscription);
        let event = Envelope {
            session_id: Some(self.session.clone()),
            subscription_id: Some(observer.subscription.clone()),
            ..Envelope::new(id, observer.since, Message::EventEmit(complete))
        };
        let text = serde_json::from_str(&encoded(&event)).unwrap_or(Value::Null);
        let id = self.numbered_id(seq + 1, observer.since);
        let envelope = self.to_observer(observer, text, observer.since, id);
        vec![Delivery::of_no_job(seq + 1, envelope)]
    }

    fn closed(&self, subscription: &str, after: String, ended_at: Timestamp, seq: u64) -> Option<Delivery> {
        let closed = SubscribeClosed {
            code: Some(ErrorCode::BackpressureOverflow),
            reason: Some("the observer lies too far behind".to_owned()),
            after_message_id: Some(after),
        };
        let id = self.numbered_id(seq, ended_at);
        let envelope = Envelope {
            session_id: Some(self.session.clone()),
            subscription_id: Some(subscription.to_owned()),
            ..Envelope::new(id, ended_at, Message::SubscribeClosed(closed))
        };
        Some(Delivery::of_no_job(seq, envelope))
    }
}

impl ATranslator {
    /// The id of a message with this number that tells of no job.
    fn numbered_id(&self, seq: u64, at: Timestamp) -> String {
        let hash = blake3::derive_key("mainstay arcp observer 1", self.session.as_bytes());
        ids::at(seq, at, u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }

    fn to_observer(&self, observer: &Observer, event: Value, at: Timestamp, id: String) -> Envelope {
        Envelope {
            session_id: Some(self.session.clone()),
            subscription_id: Some(observer.subscription.clone()),
            ..Envelope::new(id, at, Message::SubscribeEvent(SubscribeEvent { event }))
        }
    }

    /// Whether a job has a stream of this kind, from its beginning to its end.
    pub(super) fn has_stream(&self, known: &ToldJob, kind: StreamKind) -> bool {
        let has_it = kind == StreamKind::Text || known.is_conversation;
        self.streams && known.has_begun && has_it
    }

    /// What is said in each stream that a job can have, and has where it began.
    fn in_streams<'a>(
        &'a self,
        view: &'a JobView<'_>,
        message: impl Fn(StreamKind) -> Message + 'a,
    ) -> impl Iterator<Item = Option<JobMessage>> + 'a {
        WHOLE_JOB.into_iter().map(move |kind| {
            self.has_stream(view.known, kind)
                .then(|| JobMessage::from(message(kind)).in_stream(stream_of(view.job, kind)))
        })
    }

    /// The message that ends a job.
    fn last(&self, view: &JobView<'_>, outcome: JobOutcome) -> Message {
        match outcome {
            JobOutcome::Done(result) => {
                let JobView { job, known, event, .. } = view;
                let result_ref = self
                    .results
                    .and_then(|results| results.reference(&known.origin.session, job, &result, event.at));
                let value = result_ref.is_none().then_some(result);
                match self.durable_jobs {
                    true => Message::JobCompleted(JobCompleted { value, result_ref }),
                    false => Message::ToolResult(ToolResult { value, result_ref }),
                }
            }
            JobOutcome::Failed(failure) if !self.durable_jobs => {
                Message::ToolError(errors::of_failure(failure))
            }
            JobOutcome::Failed(failure) => match failure.cause {
                FailureCause::Cancelled
                | FailureCause::Killed
                | FailureCause::Refused(
                    mainstay_model::Error::Cancelled | mainstay_model::Error::ParentEnded { .. },
                ) => {
                    let code = match failure.cause {
                        FailureCause::Killed => ErrorCode::Aborted,
                        _ => ErrorCode::Cancelled,
                    };
                    let message = Some(failure.message);
                    Message::JobCancelled(JobCancelled { code: Some(code), reason: None, message })
                }
                _ => Message::JobFailed(errors::of_failure(failure)),
            },
        }
    }
}

/// A piece of a stream with its bytes in base64. Source: draft-arcp-01, 11.3.
fn in_envelope(mut envelope: Envelope, bytes: &[u8]) -> Envelope {
    if let Message::StreamChunk(chunk) = &mut envelope.message {
        chunk.data = Some(Value::String(Base64::of(bytes).into_string()));
    }
    envelope
}

/// The frame of bytes that follows a piece of a stream. Source: draft-arcp-01, 11.3.
fn beside(envelope: &Envelope, bytes: Vec<u8>) -> Vec<u8> {
    let sequence = match &envelope.message {
        Message::StreamChunk(chunk) => chunk.sequence.unwrap_or_default(),
        _ => 0,
    };
    let owner = Owner::Stream(envelope.stream_id.clone().unwrap_or_default());
    SidecarFrame { owner, sequence, is_last: true, bytes }.encode()
}

/// Whether an observer wants a message.
fn is_wanted(observer: &Observer, JobView { job, known, .. }: &JobView<'_>, message: &Envelope) -> bool {
    let filter = &observer.filter;
    let stream = message.stream_id.as_deref();
    observer.wants_job(job, &known.origin, known.home)
        && is_among(filter.types.as_ref(), message.message.kind().name())
        && (filter.stream_id.is_none()
            || stream.is_some_and(|stream| is_among(filter.stream_id.as_ref(), stream)))
        && filter.min_priority.unwrap_or(Priority::Low) <= message.priority.unwrap_or_default()
}

/// How far a job is, as dialect A says it.
pub(super) const fn wire_state(state: JobState) -> WireState {
    match state {
        JobState::Waits => WireState::Queued,
        JobState::Runs => WireState::Running,
        JobState::Done => WireState::Completed,
        JobState::Failed | JobState::TimedOut => WireState::Failed,
        JobState::Cancelled => WireState::Cancelled,
    }
}

/// Says that a job goes on in a state.
pub(super) fn progress(state: WireState, message: impl Into<String>) -> JobMessage {
    let progress = JobProgress { percent: None, message: Some(message.into()), state: Some(state) };
    Message::JobProgress(progress).into()
}

/// A piece of a stream.
pub(super) fn chunk(job: &CommandId, kind: StreamKind, chunk: StreamChunk) -> JobMessage {
    JobMessage::from(Message::StreamChunk(chunk)).in_stream(stream_of(job, kind))
}

/// A piece of a stream of which nothing is said.
pub(super) const fn no_chunk() -> StreamChunk {
    StreamChunk {
        sequence: None,
        data: None,
        content_type: None,
        size: None,
        sha256: None,
        role: None,
        content: None,
        redacted: None,
    }
}

/// An event that the draft has no message for.
pub(super) fn emitted(name: &str, data: Value) -> JobMessage {
    let r#type = format!("arcpx.mainstay.{name}.v1");
    Message::EventEmit(EventEmit { r#type, data: Some(json!(data)) }).into()
}

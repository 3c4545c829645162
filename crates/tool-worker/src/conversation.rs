//! The conversation with a worker, without I/O: what it says becomes notices, what the engine wants becomes messages. Source: draft-arcp-1.1.

use std::collections::VecDeque;
use std::time::Duration;

use mainstay_arcp_protocol::b::{
    Accepted, AgentRef, Auth, Cancel, Capabilities, DecodeError, Envelope, ErrorCode, ErrorPayload,
    FinalStatus, Hello, Implementation, JobError, JobResult, Message, Ping, Pong, Submit, Welcome, decode,
};
use mainstay_arcp_protocol::ids::ulid_text;
use mainstay_kernel::jupyter::places::{offset, position};
use mainstay_model::eval::RaisedError;
use mainstay_model::tool_call::{NoCall, Progress};
use mainstay_model::{
    Diagnostic, EvalResult, JobEnding, JobId, JobReport, OutputStream, RunnerNotice, Severity, TextPosition,
    Timestamp, ToolCall,
};
use serde_json::Value;

use crate::chunks::{Chunks, too_large};
use crate::inventory::{ONLY_VERSION, Tool, tools_of};

mod events;

/// So many beats in a row that an idle worker says nothing, and it counts as hung.
const BEATS_MISSED: u32 = 3;
/// How often a worker hears of its client, unless it wants to hear of it more often.
const BEAT: Duration = Duration::from_secs(10);
/// How often a worker hears of its client at the most.
const SHORTEST_BEAT: Duration = Duration::from_millis(500);
/// How many calls that have ended are remembered, so that nothing that comes late is taken for the next call's.
const ENDED_CALLS: usize = 64;
/// How often it is shown how much is done.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// What is used of the protocol beside what every session has.
const FEATURES: [&str; 4] = ["heartbeat", "progress", "result_chunk", "agent_versions"];

/// What follows of something that was said or wanted.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// The worker is told this line.
    Send(String),
    /// The engine is told this.
    Tell(RunnerNotice),
    /// The worker takes calls.
    Ready,
    /// The worker does not take calls, and says why.
    Refused(String),
    /// The worker has to be ended.
    Kill,
}

/// What has been said so far, as far as it matters.
pub(crate) struct Conversation {
    next_id: u128,
    /// The name of the session, once the worker has given it one.
    session: Option<String>,
    /// What the worker is, by name and version.
    runtime: Implementation,
    tools: Vec<Tool>,
    has_heartbeat: bool,
    /// How often the worker is to hear of its client.
    beat: Duration,
    /// How often it was asked since it said something.
    unanswered_beats: u32,
    running: Option<Running>,
    /// What the worker called the last calls that have ended.
    ended: VecDeque<String>,
    /// How many bytes a result may have.
    value_bytes: usize,
    outputs: Vec<Output>,
}

/// The call that is under way.
struct Running {
    job: JobId,
    /// The message that asked for it.
    message: String,
    began: Duration,
    /// What the worker calls it, once it has accepted it.
    name: Option<String>,
    is_interrupted: bool,
    chunks: Option<Chunks>,
    /// When it was shown last how much is done.
    progress_shown: Option<Duration>,
    /// How much is done, where that is not shown yet.
    progress: Option<Progress>,
}

impl Conversation {
    /// Begins one: the worker is greeted. Messages are numbered from `first_id` on.
    pub(crate) fn begin(token: String, first_id: u128, value_bytes: usize) -> Self {
        let mut conversation = Self {
            next_id: first_id,
            session: None,
            runtime: Implementation::default(),
            tools: Vec::new(),
            has_heartbeat: false,
            beat: BEAT,
            unanswered_beats: 0,
            running: None,
            ended: VecDeque::new(),
            value_bytes,
            outputs: Vec::new(),
        };
        let hello = Hello {
            client: Implementation {
                name: "mainstay".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            auth: Some(Auth { scheme: "bearer".to_owned(), token: Some(token) }),
            capabilities: Capabilities {
                encodings: vec!["json".to_owned()],
                features: FEATURES.map(str::to_owned).to_vec(),
                agents: None,
            },
            resume: None,
        };
        conversation.send(None, Message::SessionHello(hello));
        conversation
    }

    /// What has followed since it was asked last.
    pub(crate) fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The tools that the worker offers.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// What the worker is, by name and version.
    pub(crate) fn runtime(&self) -> String {
        format!("{} {}", self.runtime.name, self.runtime.version).trim().to_owned()
    }

    /// The job that is under way.
    pub(crate) fn job(&self) -> Option<JobId> {
        self.running.as_ref().map(|running| running.job)
    }

    /// Takes in a line that the worker has written. What is no message is what a tool has printed, as tools do that know of no protocol.
    pub(crate) fn hear(&mut self, line: &str, now: Duration, at: Timestamp) {
        self.unanswered_beats = 0;
        match decode(line) {
            Ok(envelope) => self.hear_message(envelope, now, at),
            Err(DecodeError::NotJson(_) | DecodeError::NotAnObject) => {
                self.print(OutputStream::Stdout, format!("{line}\n"));
            }
            Err(DecodeError::Field { .. }) if !is_envelope(line) => {
                self.print(OutputStream::Stdout, format!("{line}\n"));
            }
            Err(DecodeError::Payload { job_id, kind, reason, .. })
                if self.awaits(&kind, job_id.as_deref()) =>
            {
                self.raise("PROTOCOL", &format!("the worker's `{kind}` cannot be read: {reason}"), None, now);
            }
            Err(DecodeError::Payload { kind, reason, .. }) if kind == "session.welcome" => {
                self.outputs.push(Output::Refused(format!("its `{kind}` cannot be read: {reason}")));
            }
            // An event that cannot be read changes nothing.
            Err(error) => tracing::warn!(%error, "a message of a tool worker cannot be read"),
        }
    }

    /// Whether the call cannot go on without a message of this type about this job.
    fn awaits(&self, kind: &str, job: Option<&str>) -> bool {
        let is_accepted = self.running.as_ref().map(|running| running.name.is_some());
        match kind {
            "job.accepted" => is_accepted == Some(false),
            "job.result" | "job.error" => self.is_running(job),
            _ => false,
        }
    }

    fn hear_message(&mut self, envelope: Envelope, now: Duration, at: Timestamp) {
        let Envelope { session_id, job_id, message, .. } = envelope;
        let job = job_id.as_deref();
        match message {
            Message::SessionWelcome(welcome) => self.welcomed(welcome, session_id),
            Message::SessionError(error) => self.refused(error, now),
            Message::SessionPing(ping) => {
                self.send(None, Message::SessionPong(Pong { ping_nonce: ping.nonce, received_at: at }));
            }
            Message::JobAccepted(accepted) => self.accepted(accepted),
            Message::JobEvent(event) if self.is_running(job) => self.happened(event.kind, now),
            Message::JobResult(result) if self.is_running(job) => self.ended(result, now),
            Message::JobError(error) if self.is_running(job) => self.failed(error, now),
            // What comes of a call that has ended, or is said to nobody in particular.
            _ => {}
        }
    }

    fn welcomed(&mut self, welcome: Welcome, session: Option<String>) {
        let Capabilities { features, agents, .. } = welcome.capabilities;
        self.has_heartbeat = features.iter().any(|feature| feature == "heartbeat");
        self.tools = tools_of(agents.as_ref());
        self.session = session.or(Some(welcome.session_id));
        // Whoever is not heard of in two intervals may be taken for gone.
        let wanted = welcome.heartbeat_interval_sec.map(|seconds| Duration::from_secs(seconds) / 2);
        self.beat = wanted.unwrap_or(BEAT).clamp(SHORTEST_BEAT, BEAT);
        self.runtime = welcome.runtime;
        self.outputs.push(Output::Ready);
    }

    /// The worker refuses what it was told last: the greeting, or the call that it has not accepted.
    fn refused(&mut self, error: ErrorPayload, now: Duration) {
        if self.session.is_none() {
            self.outputs.push(Output::Refused(format!("{}: {}", error.code, error.message)));
        } else if self.refuses_call(&error) {
            self.raise(&error.code, &error.message, error.details.as_ref(), now);
        } else {
            tracing::warn!(code = error.code, message = error.message, "a tool worker refuses something");
        }
    }

    /// Whether an error refuses the call that is not accepted yet. What is refused may be a cancel that came too late for the call before.
    fn refuses_call(&self, error: &ErrorPayload) -> bool {
        let Some(running) = self.running.as_ref().filter(|running| running.name.is_none()) else {
            return false;
        };
        let refused = error.details.as_ref().and_then(|details| details["request_id"].as_str());
        match refused {
            Some(refused) => refused == running.message,
            None => error.code != ErrorCode::JobNotFound.as_str(),
        }
    }

    fn accepted(&mut self, Accepted { job_id: name, request_id, .. }: Accepted) {
        if self.ended.contains(&name) {
            return;
        }
        let Some(running) = self.running.as_mut().filter(|running| running.name.is_none()) else { return };
        if request_id.is_some_and(|request| request != running.message) {
            return;
        }
        running.name = Some(name.clone());
        if running.is_interrupted {
            self.cancel(name);
        }
    }

    fn is_running(&self, name: Option<&str>) -> bool {
        let running = self.running.as_ref().and_then(|running| running.name.as_deref());
        running.is_some() && running == name
    }

    /// Has the worker do what some code says.
    pub(crate) fn run(&mut self, job: JobId, code: &str, now: Duration) {
        self.running = Some(Running {
            job,
            message: ulid_text(self.next_id),
            began: now,
            name: None,
            is_interrupted: false,
            chunks: None,
            progress_shown: None,
            progress: None,
        });
        let wrong = self.diagnose(code);
        let call = ToolCall::read(code).ok().filter(|_| wrong.is_empty());
        let agent = call.as_ref().and_then(|call| {
            let has_versions =
                self.tools.iter().any(|tool| tool.name == call.name && !tool.versions.is_empty());
            let version = call.version.as_ref().filter(|_| has_versions);
            let version = version.map(|version| format!("@{version}")).unwrap_or_default();
            AgentRef::try_from(format!("{}{version}", call.name)).ok()
        });
        let (Some(call), Some(agent)) = (call, agent) else {
            let result = EvalResult { diagnostics: wrong, ..EvalResult::default() };
            return self.end(JobEnding::Rejected, result, now);
        };
        let submit = Submit {
            agent,
            input: call.input,
            lease_request: Default::default(),
            lease_constraints: None,
            idempotency_key: None,
            max_runtime_sec: None,
        };
        self.send(None, Message::JobSubmit(submit));
    }

    /// What is wrong with some code.
    pub(crate) fn diagnose(&self, code: &str) -> Vec<Diagnostic> {
        let wrong = |message: String, at: usize| {
            let start = position(code, at);
            let end = position(code, code.chars().count());
            let code = "call".to_owned();
            vec![Diagnostic { severity: Severity::Error, code, message, file: None, start, end }]
        };
        match ToolCall::read(code) {
            Err(NoCall::Invalid { reason, at }) => wrong(reason, at),
            Err(NoCall::Unfinished) => {
                wrong("the call is not whole: NAME, then JSON".to_owned(), code.chars().count())
            }
            Ok(call) => {
                let known = self.tools.iter().find(|tool| tool.name == call.name);
                match (known, &call.version) {
                    (None, _) => wrong(format!("there is no tool {}; {}", call.name, self.offer()), 0),
                    (Some(tool), Some(version)) if !tool.is_there_in(version) => {
                        let there = match tool.versions.as_slice() {
                            [] => format!("it has only version {ONLY_VERSION}"),
                            versions => format!("there are {}", versions.join(", ")),
                        };
                        wrong(format!("the tool {} has no version {version}; {there}", call.name), 0)
                    }
                    (Some(_), _) => Vec::new(),
                }
            }
        }
    }

    /// Which tools there are, for people.
    fn offer(&self) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        match names.as_slice() {
            [] => "the worker offers none".to_owned(),
            names => format!("there are {}", names.join(", ")),
        }
    }

    /// Has the call that is under way stop.
    pub(crate) fn interrupt(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.is_interrupted = true;
        if let Some(name) = running.name.clone() {
            self.cancel(name);
        }
    }

    fn cancel(&mut self, name: String) {
        let reason = Some("cancelled by a client".to_owned());
        self.send(Some(name), Message::JobCancel(Cancel { reason, job_id: None }));
    }

    /// How often [`Conversation::beat`] is due.
    pub(crate) const fn beat_interval(&self) -> Duration {
        self.beat
    }

    /// Lets the worker hear of its client, and looks whether it is there: an idle one has to be ended that says nothing several times. One that
    /// is busy may have no time for it.
    pub(crate) fn beat(&mut self, at: Timestamp) {
        if !self.has_heartbeat {
            return;
        }
        if self.running.is_some() {
            self.unanswered_beats = 0;
        } else if self.unanswered_beats >= BEATS_MISSED * (BEAT.as_millis() / self.beat.as_millis()) as u32 {
            self.outputs.push(Output::Kill);
            return;
        }
        self.unanswered_beats += 1;
        let nonce = ulid_text(self.next_id);
        self.send(None, Message::SessionPing(Ping { nonce, sent_at: at }));
    }

    fn ended(&mut self, result: JobResult, now: Duration) {
        let Some(running) = &mut self.running else { return };
        match result.final_status {
            FinalStatus::Success => {
                let (chunks, name) = (running.chunks.take(), result.result_id.as_deref());
                let value = match (result.result, chunks) {
                    (Some(value), _) => Ok(value),
                    (None, None) if name.is_none() => Ok(Value::Null),
                    (None, chunks) => chunks.unwrap_or_default().whole(name, result.result_size),
                };
                match value {
                    Ok(value) => self.done(&value, now),
                    Err(reason) => self.raise("RESULT_NOT_TAKEN", &reason, None, now),
                }
            }
            FinalStatus::Cancelled => self.stopped("the tool stopped by itself", now),
            FinalStatus::TimedOut => {
                self.raise(ErrorCode::Timeout.as_str(), "the tool took too long", None, now);
            }
            FinalStatus::Error => {
                self.raise(ErrorCode::InternalError.as_str(), "the tool does not say why", None, now);
            }
        }
    }

    fn done(&mut self, value: &Value, now: Duration) {
        let result = EvalResult::of_tool(value);
        let bytes = result.value.as_ref().map_or(0, String::len);
        if bytes > self.value_bytes {
            let reason = too_large(self.value_bytes);
            return self.raise("RESULT_NOT_TAKEN", &reason, None, now);
        }
        self.end(JobEnding::Completed, result, now);
    }

    fn failed(&mut self, error: JobError, now: Duration) {
        match error.code == ErrorCode::Cancelled.as_str() {
            true => self.stopped(&error.message, now),
            false => self.raise(&error.code, &error.message, error.details.as_ref(), now),
        }
    }

    /// The call has stopped: as it was told to, or else by itself.
    fn stopped(&mut self, message: &str, now: Duration) {
        match self.running.as_ref().is_some_and(|running| running.is_interrupted) {
            true => self.end(JobEnding::Interrupted { kept: 0 }, EvalResult::default(), now),
            false => self.raise(ErrorCode::Cancelled.as_str(), message, None, now),
        }
    }

    fn raise(&mut self, kind: &str, message: &str, details: Option<&Value>, now: Duration) {
        let stack = details.map(|details| format!("{details:#}"));
        let raised =
            RaisedError { kind: kind.to_owned(), message: message.to_owned(), stack, coloured_stack: None };
        self.end(JobEnding::Raised(raised), EvalResult::default(), now);
    }

    fn end(&mut self, ending: JobEnding, result: EvalResult, now: Duration) {
        self.show_progress(now);
        let Some(running) = self.running.take() else { return };
        if let Some(name) = running.name {
            self.ended.push_back(name);
            self.ended.drain(..self.ended.len().saturating_sub(ENDED_CALLS));
        }
        let report = JobReport {
            ending,
            result,
            changes_state: false,
            took: now.saturating_sub(running.began),
            references: None,
        };
        self.outputs.push(Output::Tell(RunnerNotice::Finished { job: running.job, report }));
    }

    /// Ends the call under way that the worker never took, since it is gone.
    pub(crate) fn gone(&mut self, now: Duration) {
        if self.running.as_ref().is_some_and(|running| running.name.is_none()) {
            let reason = "the worker ended before it took the call; call the tool again";
            self.raise("UNAVAILABLE", reason, None, now);
        }
    }

    /// Ends the call under way, since the worker wrote a line of so many bytes: it may have been the end of the call.
    pub(crate) fn cannot_hear(&mut self, bytes: usize, limit: usize, now: Duration) {
        let reason = format!(
            "the worker wrote a line of {bytes} bytes, of which at most {limit} are read, and was ended"
        );
        self.raise("PROTOCOL", &reason, None, now);
        self.outputs.push(Output::Kill);
    }

    /// Shows text as what the call under way has printed.
    pub(crate) fn print(&mut self, stream: OutputStream, text: String) {
        let job = self.job();
        self.outputs.push(Output::Tell(RunnerNotice::Output { job, stream, text }));
    }

    fn send(&mut self, job_id: Option<String>, message: Message) {
        let id = ulid_text(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        let session_id = self.session.clone();
        let envelope = Envelope { id, session_id, trace_id: None, job_id, event_seq: None, message };
        self.outputs.push(Output::Send(format!("{}\n", envelope.encode())));
    }
}

/// Whether a line is meant as an envelope, and no JSON that a tool has printed.
fn is_envelope(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|value| value.get("arcp").is_some())
}

/// Where the name of a tool begins in front of a cursor, and the part that is there of it; none where the cursor is behind the name.
pub(crate) fn name_at(code: &str, cursor: TextPosition) -> Option<(TextPosition, String)> {
    let at = offset(code, cursor);
    let before: String = code.chars().take(at).collect();
    let name = before.trim_start();
    let begins = before.chars().count() - name.chars().count();
    let start = position(code, begins);
    (!name.contains(char::is_whitespace)).then(|| (start, name.to_owned()))
}

#[cfg(test)]
mod tests;

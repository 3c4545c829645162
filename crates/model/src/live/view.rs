//! The fold of events and live pieces to what a watcher of a session sees.

use std::cmp::Ordering;

use serde_json::Value;

use super::early::EarlyPieces;
use super::{Live, PartialMessage, ViewChange};
use crate::agent::{Delta, JobSpec, Note, ToolCall};
use crate::event::{Event, EventBody};
use crate::id::{JobId, Seq};
use crate::message::{Message, Part, PartRole};

/// What a watcher of a session has seen of the job that goes on.
///
/// Events come in their order, from the beginning of a job or between jobs. Live pieces come in their order too, or are missed, and may
/// be ahead of the events or behind them. Whatever comes first is told; what comes twice is told once.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    last: Seq,
    job: Option<OpenJob>,
    /// The job that ended last; pieces of it may still come.
    ended: Option<JobId>,
    early: EarlyPieces,
}

/// A job that goes on.
#[derive(Clone, Debug)]
struct OpenJob {
    id: JobId,
    /// How many messages the job has added.
    added: u32,
    /// The next message, as far as it was said.
    message: PartialMessage,
    /// The calls without a result, in their order.
    calls: Vec<OpenCall>,
}

/// A call of a tool that has no result yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// The call and its tool.
    pub call: ToolCall,
    /// The arguments of the call.
    pub arguments: Value,
    /// Whether the tool was told to have begun.
    is_running: bool,
    /// The output that came before the tool was told to have begun.
    early_output: Option<Value>,
}

impl LiveView {
    /// The message that is being said; none where nothing of one was said yet.
    pub fn message(&self) -> Option<&PartialMessage> {
        self.job.as_ref().map(|job| &job.message).filter(|message| !message.parts.is_empty())
    }

    /// The calls of the running job that have no result yet, in their order.
    pub fn open_calls(&self) -> &[OpenCall] {
        self.job.as_ref().map_or(&[], |job| &job.calls)
    }

    /// The call with this id, while it has no result.
    pub fn open_call(&self, id: &str) -> Option<&OpenCall> {
        self.open_calls().iter().find(|open| open.call.call == id)
    }

    /// Takes in an event of the session. One that was taken in before changes nothing.
    pub fn event<'a>(&mut self, event: &'a Event) -> Vec<ViewChange<'a>> {
        if event.seq <= self.last {
            return Vec::new();
        }
        self.last = event.seq;
        match &event.body {
            EventBody::JobRequested { job, work, .. } => self.job_began(event, *job, work),
            // An event is never early: one that fits nowhere is of a job whose beginning was not read.
            EventBody::MessageStreamed(delta) => self.delta(delta).unwrap_or_default(),
            EventBody::MessageAdded(message) => self.message_added(event, message),
            EventBody::AgentNoted(Note::ToolStarted { call, arguments }) => {
                self.tool_began(event, call, arguments)
            }
            EventBody::JobEnded { job, ending, duration_ms, .. } => {
                let unanswered = self.job_ended(*job);
                vec![ViewChange::JobEnded { job: *job, ending, duration_ms: *duration_ms, unanswered }]
            }
            _ => vec![ViewChange::Event(event)],
        }
    }

    /// Takes in a live piece of the session.
    pub fn live(&mut self, live: &Live) -> Vec<ViewChange<'static>> {
        match live {
            Live::Delta(delta) => self.live_delta(delta),
            Live::ToolOutput { call, output } => self.tool_output(call, output).into_iter().collect(),
        }
    }

    fn job_began<'a>(&mut self, event: &'a Event, job: JobId, spec: &'a JobSpec) -> Vec<ViewChange<'a>> {
        self.job = Some(OpenJob { id: job, added: 0, message: PartialMessage::default(), calls: Vec::new() });
        let mut changes = vec![ViewChange::JobBegan { event, job, spec }];
        changes.extend(self.release());
        changes
    }

    /// Tells the piece of a message where the message is the next one; another piece is early, or its message is complete.
    fn delta(&mut self, delta: &Delta) -> Option<Vec<ViewChange<'static>>> {
        let open = self.job.as_mut().filter(|open| open.id == delta.job)?;
        match delta.message.cmp(&open.added) {
            Ordering::Less => Some(Vec::new()),
            Ordering::Equal => Some(open.grow(delta)),
            Ordering::Greater => None,
        }
    }

    fn live_delta(&mut self, delta: &Delta) -> Vec<ViewChange<'static>> {
        if self.ended == Some(delta.job) {
            return Vec::new();
        }
        self.delta(delta).unwrap_or_else(|| {
            self.early.keep(delta);
            Vec::new()
        })
    }

    /// Tells the early pieces that follow what is known now.
    fn release(&mut self) -> Vec<ViewChange<'static>> {
        let Some(job) = self.job.as_ref().map(|job| job.id) else { return Vec::new() };
        let early = self.early.take(job);
        early.flat_map(|delta| self.live_delta(&delta)).collect()
    }

    fn message_added<'a>(&mut self, event: &'a Event, message: &'a Message) -> Vec<ViewChange<'a>> {
        let Some(open) = &mut self.job else { return vec![ViewChange::Event(event)] };
        let mut changes = open.complete(message);
        changes.push(ViewChange::MessageAdded { event, job: open.id, message });
        changes.extend(self.release());
        changes
    }

    fn tool_began<'a>(
        &mut self,
        event: &'a Event,
        call: &'a ToolCall,
        arguments: &'a Value,
    ) -> Vec<ViewChange<'a>> {
        let Some(open) = &mut self.job else { return vec![ViewChange::Event(event)] };
        let job = open.id;
        let output = open.with_call(call, |running| {
            running.arguments = arguments.clone();
            running.is_running = true;
            running.early_output.take()
        });
        let progress = output.map(|output| ViewChange::ToolProgressed { job, call: call.clone(), output });
        [ViewChange::ToolBegan { event, job, call, arguments }].into_iter().chain(progress).collect()
    }

    fn tool_output(&mut self, call: &ToolCall, output: &Value) -> Option<ViewChange<'static>> {
        let open = self.job.as_mut()?;
        let job = open.id;
        let running = open.calls.iter_mut().find(|open| open.call.call == call.call)?;
        if !running.is_running {
            running.early_output = Some(output.clone());
            return None;
        }
        Some(ViewChange::ToolProgressed { job, call: call.clone(), output: output.clone() })
    }

    /// Ends a job. Returns its calls that have no result.
    fn job_ended(&mut self, job: JobId) -> Vec<OpenCall> {
        let ended = self.job.take_if(|open| open.id == job);
        self.ended = Some(job);
        ended.map(|open| open.calls).unwrap_or_default()
    }
}

impl OpenJob {
    /// The next piece of the message. A piece that leaves a gap waits for the event that has the whole.
    fn grow(&mut self, delta: &Delta) -> Vec<ViewChange<'static>> {
        let known = self.message.parts.get(&delta.part);
        let text = known.map_or("", |part| part.text.as_str());
        let already = (text.len() as u64).checked_sub(delta.offset);
        let already =
            already.map(|already| usize::try_from(already).unwrap_or(usize::MAX).min(delta.text.len()));
        let Some(news) = already.and_then(|already| delta.text.get(already..)) else { return Vec::new() };
        if news.is_empty() && known.is_some() {
            return Vec::new();
        }
        self.tell(delta.part, delta.role, news, delta.tool.as_ref())
    }

    /// Tells more of a part, which may begin with that.
    fn tell(
        &mut self,
        part: u32,
        role: PartRole,
        text: &str,
        call: Option<&ToolCall>,
    ) -> Vec<ViewChange<'static>> {
        let job = self.id;
        let ended = self.message.unended_before(part).map(|part| ViewChange::PartEnded { job, part });
        let mut changes: Vec<_> = ended.collect();
        let known = self.message.parts.get(&part).map(|known| known.role);
        if known.is_none() {
            changes.push(ViewChange::PartBegan { job, part, role, call: call.cloned() });
        }
        if !text.is_empty() {
            let role = known.unwrap_or(role);
            changes.push(ViewChange::PartGrew { job, part, role, text: text.to_owned() });
        }
        changes.iter().for_each(|change| self.message.apply(change));
        changes
    }

    /// Tells what a complete message has beyond what was said of it, and what its results answer.
    fn complete<'a>(&mut self, message: &'a Message) -> Vec<ViewChange<'a>> {
        let mut changes = Vec::new();
        let found = self.message.find(&message.parts);
        for (index, (part, found)) in (0..).zip(message.parts.iter().zip(found)) {
            match part.role {
                PartRole::Assistant | PartRole::Thinking | PartRole::ToolCall => {
                    changes.extend(self.complete_part(part, index, found));
                }
                PartRole::ToolResult => changes.push(self.answered(part)),
                PartRole::System | PartRole::User => {}
            }
        }
        let job = self.id;
        changes.extend(self.message.unended().map(|part| ViewChange::PartEnded { job, part }));
        self.added = self.added.saturating_add(1);
        self.message = PartialMessage::default();
        changes
    }

    /// Tells what a complete part has beyond what was said of it as part `found`.
    fn complete_part(&mut self, part: &Part, index: u32, found: Option<u32>) -> Vec<ViewChange<'static>> {
        let call = part.call();
        if let Some(call) = &call {
            let arguments = serde_json::from_str(&part.text).unwrap_or(Value::Null);
            self.with_call(call, |open| open.arguments = arguments);
        }
        let number = found.unwrap_or_else(|| self.message.number_for(index));
        // The complete message may write the arguments of a call in another way than they were said.
        let rest = match found.and_then(|number| self.message.parts.get(&number)) {
            Some(said) => part.text.strip_prefix(&said.text).unwrap_or_default(),
            None => &part.text,
        };
        self.tell(number, part.role, rest, call.as_ref())
    }

    fn answered<'a>(&mut self, result: &'a Part) -> ViewChange<'a> {
        let id = result.call_id();
        let at = self.calls.iter().position(|open| Some(open.call.call.as_str()) == id);
        ViewChange::ToolAnswered { job: self.id, call: at.map(|at| self.calls.remove(at)), result }
    }

    /// Changes an open call, which may begin with that.
    fn with_call<T>(&mut self, call: &ToolCall, change: impl FnOnce(&mut OpenCall) -> T) -> T {
        if let Some(open) = self.calls.iter_mut().find(|open| open.call.call == call.call) {
            return change(open);
        }
        let mut open =
            OpenCall { call: call.clone(), arguments: Value::Null, is_running: false, early_output: None };
        let changed = change(&mut open);
        self.calls.push(open);
        changed
    }
}

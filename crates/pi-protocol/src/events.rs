//! What happens in a session, as pi tells it. Pure: events of the log and live pieces in, pi's events out. Source: pi's RPC mode, "Events".
//!
//! A piece of a message is told once: live, or where that was missed, from the event that has it, or from the message when it is whole.
//! What upstream repeats with each piece, all that was said before it, is told again only to clients that ask for it.

use std::collections::BTreeMap;

use mainstay_model::agent::{QueuedPrompt, ToolCall};
use mainstay_model::{
    AgentState, Ask, Delivery, Delta, Event, EventBody, JobId, JobSpec, Live, Message, Note, PartRole,
    Timestamp, WorkEnding,
};
use serde_json::{Value, json};

use super::messages;

/// Tells what happens in one session.
#[derive(Default)]
pub(super) struct EventEncoder {
    /// How its agent goes on.
    state: Option<AgentState>,
    /// What it has still to hear.
    queue: Vec<QueuedPrompt>,
    turn: Option<Turn>,
    /// Whether each piece of a message comes with all that was said before it.
    is_cumulative: bool,
}

/// A turn, as far as it was told.
struct Turn {
    job: JobId,
    /// A message of its model's that has said nothing yet.
    unsaid: Value,
    /// Whether each piece of a message comes with all that was said before it.
    is_cumulative: bool,
    /// How many messages it has added.
    added: u32,
    /// The message that is being said.
    open: Option<Open>,
    /// Whether a step is begun that has not ended.
    is_in_step: bool,
    /// What the model said last, while its tools run.
    step: Option<Value>,
    /// The calls of it that have no result yet.
    calls: Vec<ToolCall>,
    /// The tools that run, by their calls.
    tools: BTreeMap<String, Tool>,
    results: Vec<Value>,
    all: Vec<Value>,
}

/// A tool that runs. What it has done is live, and may be ahead of the event that says that it began.
#[derive(Default)]
struct Tool {
    /// Its arguments, once it was told that it began.
    arguments: Option<Value>,
    /// What it has done since, where that is not told yet.
    output: Option<Value>,
}

/// A message that is being said.
#[derive(Default)]
struct Open {
    /// What each part has said.
    parts: BTreeMap<u32, Part>,
}

struct Part {
    role: PartRole,
    /// The call that it is.
    tool: Option<ToolCall>,
    text: String,
    is_closed: bool,
}

impl Turn {
    const fn new(job: JobId, unsaid: Value, is_cumulative: bool) -> Self {
        Self {
            job,
            unsaid,
            is_cumulative,
            added: 0,
            open: None,
            is_in_step: false,
            step: None,
            calls: Vec::new(),
            tools: BTreeMap::new(),
            results: Vec::new(),
            all: Vec::new(),
        }
    }
}

impl EventEncoder {
    /// Of a session whose agent goes on so, or will, and has this still to hear, and in which nothing runs.
    pub(super) fn of(state: Option<AgentState>, queue: Vec<QueuedPrompt>) -> Self {
        Self { state, queue, turn: None, is_cumulative: false }
    }

    /// The same for a client that wants each piece of a message with all that was said before it.
    pub(super) fn cumulative(self, is_cumulative: bool) -> Self {
        Self { is_cumulative, ..self }
    }

    /// The message that is being said, from its beginning. Who comes in the middle of it may have heard any part of it, and begins anew.
    pub(super) fn open_message(&self) -> Vec<Value> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let Some(open) = &turn.open else { return Vec::new() };
        let parts = open.parts.iter().flat_map(|(index, part)| part.so_far(*index)).collect();
        [vec![begun(&turn.unsaid)], turn.with_message(parts)].concat()
    }

    /// What a live piece tells.
    pub(super) fn hear(&mut self, live: &Live) -> Vec<Value> {
        match live {
            Live::Delta(delta) => self.said(delta),
            Live::ToolOutput { call, output } => {
                let turn = self.turn.as_mut();
                turn.and_then(|turn| turn.tool_output(call, output)).into_iter().collect()
            }
        }
    }

    /// What an event tells.
    pub(super) fn tell(&mut self, event: &Event) -> Vec<Value> {
        match &event.body {
            EventBody::JobRequested { job, work: JobSpec::Turn { .. }, .. } => {
                let unsaid = unsaid(self.state.as_ref(), event.at);
                let turn = self.turn.insert(Turn::new(*job, unsaid, self.is_cumulative));
                [json!({ "type": "agent_start" })].into_iter().chain(turn.enter_step()).collect()
            }
            EventBody::MessageStreamed(delta) => self.said(delta),
            EventBody::MessageAdded(message) => self.added(event, message),
            EventBody::JobEnded { job, ending, .. } => self.ended(*job, ending),
            EventBody::PromptQueued(queued) => {
                self.queue.push(queued.clone());
                vec![queue_update(&self.queue)]
            }
            EventBody::QueueChanged { queue } => {
                // The agent repeats what it was told.
                let before = std::mem::replace(&mut self.queue, queue.clone());
                if before == *queue { Vec::new() } else { vec![queue_update(queue)] }
            }
            EventBody::AgentChanged(state) => {
                let before = self.state.replace((**state).clone()).map(|before| before.thinking);
                if let Some(turn) = &mut self.turn {
                    turn.goes_on_with(state);
                }
                match before == Some(state.thinking) {
                    true => Vec::new(),
                    false => vec![json!({ "type": "thinking_level_changed", "level": state.thinking })],
                }
            }
            EventBody::AgentNoted(note) => {
                let mut told = noted(note, event.at);
                if let (Note::ToolStarted { call, arguments }, Some(turn)) = (note, &mut self.turn) {
                    told.extend(turn.tool_started(call, arguments));
                }
                told
            }
            EventBody::TranscriptCompacted(compaction) => {
                let mut result = json!({ "summary": compaction.summary });
                for (name, value) in &compaction.metadata {
                    result[name.as_str()] = value.clone();
                }
                let mut taken = |name: &str| result.as_object_mut().and_then(|result| result.remove(name));
                let reason = taken("reason").unwrap_or_else(|| "manual".into());
                let will_retry = taken("willRetry").unwrap_or(false.into());
                vec![json!({
                    "type": "compaction_end", "reason": reason, "result": result, "aborted": false,
                    "willRetry": will_retry,
                })]
            }
            EventBody::AskRaised(ask) => vec![ui_request(ask)],
            EventBody::SessionRenamed { name } => {
                vec![json!({ "type": "session_info_changed", "name": name })]
            }
            _ => Vec::new(),
        }
    }

    /// A piece of a message. A live one may come behind the end of its turn; behind what was missed it waits for the event that has it all.
    fn said(&mut self, delta: &Delta) -> Vec<Value> {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.job == delta.job) else { return Vec::new() };
        if delta.message != turn.added {
            return Vec::new();
        }
        let known = turn.open.as_ref().and_then(|open| open.parts.get(&delta.part));
        let known = known.map_or(0, |part| part.text.len() as u64);
        if delta.offset > known {
            return Vec::new();
        }
        let told = usize::try_from(known.saturating_sub(delta.offset)).unwrap_or(usize::MAX);
        let Some(rest) = delta.text.get(told.min(delta.text.len())..) else { return Vec::new() };
        let is_new = turn.open.as_ref().is_none_or(|open| !open.parts.contains_key(&delta.part));
        if rest.is_empty() && !is_new {
            return Vec::new();
        }
        let mut events = turn.begin_message();
        events.extend(turn.piece(delta.part, delta.role, rest, delta.tool.as_ref()));
        events
    }

    fn added(&mut self, event: &Event, message: &Message) -> Vec<Value> {
        let whole = messages::of_event(event, message, self.state.as_ref());
        let Some(turn) = &mut self.turn else {
            return whole.into_iter().flat_map(|message| [begun(&message), ended(&message)]).collect();
        };
        let mut events = Vec::new();
        for said in &whole {
            events.extend(turn.add(message, said));
        }
        turn.added = turn.added.saturating_add(1);
        turn.open = None;
        turn.all.extend(whole);
        events
    }

    fn ended(&mut self, job: JobId, ending: &WorkEnding) -> Vec<Value> {
        let Some(mut turn) = self.turn.take_if(|turn| turn.job == job) else { return Vec::new() };
        let mut events = Vec::new();
        if let Some(open) = turn.open.take() {
            // It was cut off before it was whole.
            let message = open.cut_off(&turn.unsaid, ending);
            events.push(ended(&message));
            turn.step = Some(message.clone());
            turn.all.push(message);
        }
        events.extend(turn.end_step());
        events.push(json!({ "type": "agent_end", "messages": turn.all }));
        events
    }
}

impl Turn {
    /// What a tool has done so far; none until it was told that it began, and once it was told that it has ended.
    fn tool_output(&mut self, call: &ToolCall, output: &Value) -> Option<Value> {
        let tool = match self.calls.iter().any(|waiting| waiting.call == call.call) {
            true => self.tools.entry(call.call.clone()).or_default(),
            false => self.tools.get_mut(&call.call)?,
        };
        match &tool.arguments {
            Some(arguments) => Some(tool_update(call, arguments, output)),
            None => {
                tool.output = Some(output.clone());
                None
            }
        }
    }

    /// What a tool has done already that is told to have begun.
    fn tool_started(&mut self, call: &ToolCall, arguments: &Value) -> Option<Value> {
        let tool = self.tools.entry(call.call.clone()).or_default();
        tool.arguments = Some(arguments.clone());
        tool.output.take().map(|output| tool_update(call, arguments, &output))
    }

    /// Pieces of a message, with all that was said before where that is wanted.
    fn with_message(&self, mut pieces: Vec<Value>) -> Vec<Value> {
        if let Some(open) = self.open.as_ref().filter(|_| self.is_cumulative) {
            let message = open.message(&self.unsaid);
            for piece in pieces.iter_mut().filter(|piece| piece["type"] == "message_update") {
                piece["message"] = message.clone();
                piece["assistantMessageEvent"]["partial"] = message.clone();
            }
        }
        pieces
    }

    /// The model's next message is of the model that the agent uses now.
    fn goes_on_with(&mut self, state: &AgentState) {
        let begun = self.unsaid["timestamp"].take();
        self.unsaid = unsaid(Some(state), Timestamp::UNIX_EPOCH);
        self.unsaid["timestamp"] = begun;
    }

    /// Begins a message of the model's, where none is begun.
    fn begin_message(&mut self) -> Vec<Value> {
        if self.open.is_some() {
            return Vec::new();
        }
        // What the model said before is through, even where a result of its tools was not told.
        let ended = if self.step.is_some() { self.end_step() } else { None };
        self.open = Some(Open::default());
        let begun = begun(&self.unsaid);
        ended.into_iter().chain(self.enter_step()).chain([begun]).collect()
    }

    /// Begins a step, where none is begun.
    fn enter_step(&mut self) -> Option<Value> {
        let is_new = !std::mem::replace(&mut self.is_in_step, true);
        is_new.then(|| json!({ "type": "turn_start" }))
    }

    /// Tells a piece of a part, and that the part before it is whole.
    fn piece(&mut self, index: u32, role: PartRole, text: &str, tool: Option<&ToolCall>) -> Vec<Value> {
        let Some(open) = &mut self.open else { return Vec::new() };
        let mut events = open.close_before(index);
        let part = open.parts.entry(index).or_insert_with(|| {
            let part = Part { role, tool: tool.cloned(), text: String::new(), is_closed: false };
            events.push(part.start(index));
            part
        });
        part.text.push_str(text);
        events.extend(part.delta(index, text));
        self.with_message(events)
    }

    /// A message that is whole.
    fn add(&mut self, message: &Message, said: &Value) -> Vec<Value> {
        match said["role"].as_str() {
            Some("assistant") => self.add_models(message, said),
            Some("toolResult") => {
                let call = said["toolCallId"].as_str().unwrap_or_default();
                self.calls.retain(|waiting| waiting.call != call);
                self.tools.remove(call);
                self.results.push(said.clone());
                let mut result = json!({ "content": said["content"] });
                if let Some(details) = said.get("details") {
                    result["details"] = details.clone();
                }
                let mut events = vec![
                    json!({
                        "type": "tool_execution_end", "toolCallId": call, "toolName": said["toolName"],
                        "result": result, "isError": said["isError"].as_bool().unwrap_or_default(),
                    }),
                    begun(said),
                    ended(said),
                ];
                if self.calls.is_empty() {
                    events.extend(self.end_step());
                }
                events
            }
            Some(_) | None => self.enter_step().into_iter().chain([begun(said), ended(said)]).collect(),
        }
    }

    fn add_models(&mut self, message: &Message, said: &Value) -> Vec<Value> {
        let mut events = self.begin_message();
        for (index, part) in (0..).zip(&message.parts) {
            let known = self.open.as_ref().and_then(|open| open.parts.get(&index));
            // A call's arguments are told as they were said; written anew they may look otherwise.
            let rest = match known {
                Some(_) if part.role == PartRole::ToolCall => String::new(),
                Some(known) => part.text.get(known.text.len()..).unwrap_or_default().to_owned(),
                None => part.text.clone(),
            };
            let call = call_of(part);
            events.extend(self.piece(index, part.role, &rest, call.as_ref()));
            self.calls.extend(call);
        }
        let closed = self.open.as_mut().map(|open| open.close_before(u32::MAX)).unwrap_or_default();
        events.extend(self.with_message(closed));
        events.push(ended(said));
        self.step = Some(said.clone());
        if self.calls.is_empty() {
            events.extend(self.end_step());
        }
        events
    }

    /// Ends the step that is begun: what the model said, and what its tools answered.
    fn end_step(&mut self) -> Option<Value> {
        // A command of an extension has its model say nothing.
        let message = self.step.take().unwrap_or_else(|| self.unsaid.clone());
        let results = std::mem::take(&mut self.results);
        self.calls.clear();
        let was_in_step = std::mem::take(&mut self.is_in_step);
        was_in_step.then(|| json!({ "type": "turn_end", "message": message, "toolResults": results }))
    }
}

impl Open {
    /// Tells that the parts before this one are whole.
    fn close_before(&mut self, index: u32) -> Vec<Value> {
        let open = self.parts.range_mut(..index).filter(|(_, part)| !part.is_closed);
        open.map(|(index, part)| {
            part.is_closed = true;
            part.end(*index)
        })
        .collect()
    }

    /// The message as far as it was said.
    fn message(&self, unsaid: &Value) -> Value {
        let mut message = unsaid.clone();
        message["content"] = self.parts.values().map(Part::block).collect();
        message
    }

    /// The message as far as it was said before it was cut off. A call that was not whole was never made.
    fn cut_off(mut self, unsaid: &Value, ending: &WorkEnding) -> Value {
        self.parts.retain(|_, part| part.role != PartRole::ToolCall);
        let stopped = match ending {
            WorkEnding::Failed { .. } => "error",
            WorkEnding::Done { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => "aborted",
        };
        let mut message = self.message(unsaid);
        message["stopReason"] = stopped.into();
        message
    }
}

impl Part {
    /// What it is told by up to here.
    fn so_far(&self, index: u32) -> Vec<Value> {
        let end = self.is_closed.then(|| self.end(index));
        [self.start(index)].into_iter().chain(self.delta(index, &self.text)).chain(end).collect()
    }

    /// It as far as it was said. The arguments of a call that is not whole are not known.
    fn block(&self) -> Value {
        match self.role {
            PartRole::Thinking => json!({ "type": "thinking", "thinking": self.text }),
            PartRole::ToolCall => {
                let arguments = serde_json::from_str(&self.text).unwrap_or_else(|_| json!({}));
                self.call(&arguments)
            }
            PartRole::System | PartRole::User | PartRole::Assistant | PartRole::ToolResult => {
                json!({ "type": "text", "text": self.text })
            }
        }
    }

    fn call(&self, arguments: &Value) -> Value {
        let (call, tool) = self.tool.as_ref().map_or(("", ""), |tool| (&tool.call, &tool.tool));
        json!({ "type": "toolCall", "id": call, "name": tool, "arguments": arguments })
    }

    fn start(&self, index: u32) -> Value {
        let mut start = json!({ "type": format!("{}_start", kind_of(self.role)), "contentIndex": index });
        if self.role == PartRole::ToolCall {
            start["toolCall"] = self.call(&json!({}));
        }
        update(start)
    }

    fn delta(&self, index: u32, text: &str) -> Option<Value> {
        let kind = kind_of(self.role);
        let told = || json!({ "type": format!("{kind}_delta"), "contentIndex": index, "delta": text });
        (!text.is_empty()).then(|| update(told()))
    }

    fn end(&self, index: u32) -> Value {
        let kind = kind_of(self.role);
        let mut end = json!({ "type": format!("{kind}_end"), "contentIndex": index });
        match self.role {
            PartRole::ToolCall => end["toolCall"] = self.block(),
            PartRole::System
            | PartRole::User
            | PartRole::Assistant
            | PartRole::Thinking
            | PartRole::ToolResult => end["content"] = self.text.as_str().into(),
        }
        update(end)
    }
}

const fn kind_of(role: PartRole) -> &'static str {
    match role {
        PartRole::Thinking => "thinking",
        PartRole::ToolCall => "toolcall",
        PartRole::System | PartRole::User | PartRole::Assistant | PartRole::ToolResult => "text",
    }
}

fn call_of(part: &mainstay_model::Part) -> Option<ToolCall> {
    let text = |name: &str| part.metadata.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_call = part.role == PartRole::ToolCall;
    is_call.then(|| Some(ToolCall { call: text("call")?, tool: text("tool")? })).flatten()
}

/// A message of a model's that has said nothing yet.
fn unsaid(state: Option<&AgentState>, at: Timestamp) -> Value {
    let model = state.and_then(|state| state.model.as_ref());
    let api = model.and_then(|model| model.about.get("api")).and_then(Value::as_str);
    let (provider, id) =
        model.map_or(("unknown", "unknown"), |model| (model.provider.as_str(), model.id.as_str()));
    json!({
        "role": "assistant", "content": [], "api": api.unwrap_or("unknown"), "provider": provider, "model": id,
        "usage": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
        "stopReason": "stop", "timestamp": at.as_millisecond(),
    })
}

fn tool_update(ToolCall { call, tool }: &ToolCall, arguments: &Value, output: &Value) -> Value {
    json!({
        "type": "tool_execution_update", "toolCallId": call, "toolName": tool, "args": arguments,
        "partialResult": output,
    })
}

fn begun(message: &Value) -> Value {
    json!({ "type": "message_start", "message": message })
}

fn ended(message: &Value) -> Value {
    json!({ "type": "message_end", "message": message })
}

fn update(event: Value) -> Value {
    json!({ "type": "message_update", "assistantMessageEvent": event })
}

fn queue_update(queue: &[QueuedPrompt]) -> Value {
    let of = |hears: Delivery| -> Vec<&str> {
        queue
            .iter()
            .filter(|queued| queued.hears == hears)
            .map(|queued| queued.prompt.text.as_str())
            .collect()
    };
    json!({ "type": "queue_update", "steering": of(Delivery::Steer), "followUp": of(Delivery::FollowUp) })
}

fn noted(note: &Note, at: Timestamp) -> Vec<Value> {
    let event = match note {
        Note::ToolStarted { call: ToolCall { call, tool }, arguments } => json!({
            "type": "tool_execution_start", "toolCallId": call, "toolName": tool, "args": arguments,
        }),
        // Its result says so.
        Note::ToolEnded { .. } => return Vec::new(),
        Note::CompactionStarted { reason } => json!({ "type": "compaction_start", "reason": reason }),
        Note::CompactionFailed { reason, message, was_cancelled } => {
            let reason = if reason.is_empty() { "manual" } else { reason };
            let mut event = json!({
                "type": "compaction_end", "reason": reason, "result": null, "aborted": was_cancelled,
                "willRetry": false,
            });
            if !was_cancelled {
                event["errorMessage"] = message.as_str().into();
            }
            event
        }
        Note::RetryStarted { attempt, attempts, delay_ms, message } => json!({
            "type": "auto_retry_start", "attempt": attempt, "maxAttempts": attempts, "delayMs": delay_ms,
            "errorMessage": message,
        }),
        Note::RetryEnded { success, attempt, message } => {
            let mut event = json!({ "type": "auto_retry_end", "success": success, "attempt": attempt });
            if let Some(message) = message {
                event["finalError"] = message.as_str().into();
            }
            event
        }
        Note::Told { level, message } => json!({
            "type": "extension_ui_request", "requestId": format!("notify-{}", at.as_millisecond()),
            "method": "notify", "message": message, "notifyType": level,
        }),
    };
    vec![event]
}

/// An ask as a dialog of an extension: what an answer must be says which.
pub(super) fn ui_request(ask: &Ask) -> Value {
    let Ask { ask, question, deadline, .. } = ask;
    let (title, message) = question.prompt.split_once('\n').unwrap_or((question.prompt.as_str(), ""));
    let schema = &question.schema;
    let (method, more) = match (schema.get("enum"), schema["type"].as_str(), schema.get("default")) {
        (Some(options), ..) => ("select", ("options", options.clone())),
        (None, Some("boolean"), _) => ("confirm", ("message", message.into())),
        (None, Some("string"), Some(prefill)) => ("editor", ("prefill", prefill.clone())),
        (None, Some("string"), None) => ("input", ("placeholder", message.into())),
        (None, ..) => ("interview", ("schema", schema.clone())),
    };
    let mut event =
        json!({ "type": "extension_ui_request", "requestId": ask, "method": method, "title": title });
    event[more.0] = more.1;
    if let Some(deadline) = deadline {
        event["timeout"] = deadline.limit_ms.into();
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Metadata, Part, Position, Prompt, Seq, SessionId, Source, YieldReason};
    use proptest::prelude::*;

    fn job() -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(1))
    }

    fn event(seq: u64, body: EventBody) -> Event {
        let metadata =
            Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
        let session = SessionId::from_uuid(uuid::Uuid::nil());
        Event { session, seq: Seq(seq), position: Position(seq), at: Timestamp::UNIX_EPOCH, metadata, body }
    }

    fn requested() -> EventBody {
        EventBody::JobRequested {
            job: job(),
            command: mainstay_model::CommandId::new("c").unwrap(),
            fingerprint: mainstay_model::CommandFingerprint::of("s", &()),
            key: None,
            deadline: None,
            work: JobSpec::Turn { prompt: Prompt::text("go") },
        }
    }

    fn pieces_of(message: u32, text: &str) -> Vec<Delta> {
        let mut offset = 0;
        let piece = |text: &str| {
            let (job, text) = (job(), text.to_owned());
            let delta = Delta { job, message, part: 0, role: PartRole::Assistant, offset, text, tool: None };
            offset += delta.text.len() as u64;
            delta
        };
        text.split_inclusive(' ').map(piece).collect()
    }

    fn deltas(told: &[Value]) -> String {
        told.iter().filter_map(|event| event["assistantMessageEvent"]["delta"].as_str()).collect()
    }

    proptest! {
        /// Live pieces come in their order, some not at all, and whenever they come: also behind the events that have them.
        #[test]
        fn what_is_said_is_told_once_whatever_is_heard_and_when(
            texts in proptest::collection::vec("([a-z]{1,5} ){1,6}", 1..4),
            is_stored in proptest::collection::vec(any::<bool>(), 30),
            heard_after in proptest::collection::vec(proptest::option::of(0_usize..40), 30),
        ) {
            let mut events = vec![event(1, requested())];
            let mut live = Vec::new();
            let mut stored = is_stored.iter().cycle();
            for (message, text) in (0..).zip(&texts) {
                // Chunks have all that was said before them.
                let mut are_stored = true;
                for delta in pieces_of(message, text) {
                    // What is not stored by itself is in the message.
                    are_stored &= *stored.next().unwrap();
                    if are_stored {
                        events.push(event(events.len() as u64 + 1, EventBody::MessageStreamed(delta.clone())));
                    }
                    live.push((events.len(), Live::Delta(delta)));
                }
                let whole = Message { parts: vec![Part::text(PartRole::Assistant, text.as_str())], ..Message::default() };
                events.push(event(events.len() as u64 + 1, EventBody::MessageAdded(Box::new(whole))));
            }
            let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
            events.push(event(events.len() as u64 + 1, EventBody::JobEnded { job: job(), ending, duration_ms: 1 }));
            // When each piece is heard: never before it was said, and in order.
            let mut not_before = 0;
            let mut heard: Vec<(usize, Live)> = Vec::new();
            for ((said, live), after) in live.into_iter().zip(heard_after.into_iter().cycle()) {
                if let Some(after) = after {
                    not_before = not_before.max((said.saturating_sub(1)).min(said) + after % 3);
                    heard.push((not_before, live));
                }
            }
            let mut teller = EventEncoder::default();
            let mut told = Vec::new();
            let mut heard = heard.into_iter().peekable();
            for (index, event) in events.iter().enumerate() {
                while let Some((_, live)) = heard.next_if(|(at, _)| *at <= index) {
                    told.extend(teller.hear(&live));
                }
                told.extend(teller.tell(event));
            }
            heard.for_each(|(_, live)| told.extend(teller.hear(&live)));
            prop_assert_eq!(deltas(&told), texts.concat());
            prop_assert_eq!(told.last().map(|event| event["type"].clone()), Some(json!("agent_end")));
        }
    }
}

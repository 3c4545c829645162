//! A turn, as far as it was told: its steps, each a message of the model's and the results of the tools that it calls.

use mainstay_model::live::{PartialMessage, ViewChange};
use mainstay_model::{AgentState, JobId, Message, PartRole, Timestamp, WorkEnding};
use serde_json::{Value, json};

use super::message::{begun, cut_off, ended, part_delta, part_end, part_start, so_far, told, unsaid};

/// A turn, as far as it was told.
pub(super) struct Turn {
    /// The job that the turn is.
    pub(super) job: JobId,
    /// A message of its model's that has said nothing yet.
    unsaid: Value,
    /// Whether each piece of a message comes with all that was said before it.
    is_cumulative: bool,
    /// Whether a message of its model's is told to have begun and not to have ended.
    is_in_message: bool,
    /// That message, as far as it was said.
    message: PartialMessage,
    /// Whether a step is begun that has not ended.
    is_in_step: bool,
    /// What the model said last, while its tools run.
    step: Option<Value>,
    /// The calls in it that have no result yet.
    unanswered: Vec<String>,
    results: Vec<Value>,
    all: Vec<Value>,
}

impl Turn {
    pub(super) fn new(job: JobId, unsaid: Value, is_cumulative: bool) -> Self {
        Self {
            job,
            unsaid,
            is_cumulative,
            is_in_message: false,
            message: PartialMessage::default(),
            is_in_step: false,
            step: None,
            unanswered: Vec::new(),
            results: Vec::new(),
            all: Vec::new(),
        }
    }

    /// The message that is being said, from its beginning.
    pub(super) fn open_message(&self) -> Vec<Value> {
        if !self.is_in_message {
            return Vec::new();
        }
        let mut events = vec![begun(&self.unsaid)];
        let parts = self.message.parts.iter().flat_map(|(number, part)| told(*number, part));
        events.extend(parts.map(|piece| self.with_message(piece)));
        events
    }

    /// The model's next message is of the model that the agent uses now.
    pub(super) fn goes_on_with(&mut self, state: &AgentState) {
        let begun = self.unsaid["timestamp"].take();
        self.unsaid = unsaid(Some(state), Timestamp::UNIX_EPOCH);
        self.unsaid["timestamp"] = begun;
    }

    /// Begins a step, where none is begun.
    pub(super) fn enter_step(&mut self) -> Option<Value> {
        let is_new = !std::mem::replace(&mut self.is_in_step, true);
        is_new.then(|| json!({ "type": "turn_start" }))
    }

    /// What a change of a part tells.
    pub(super) fn part_changed(&mut self, change: &ViewChange<'_>) -> Vec<Value> {
        self.message.apply(change);
        let mut events = self.begin_message();
        let part = |number: &u32| self.message.parts.get(number);
        let piece = match change {
            ViewChange::PartBegan { part: number, .. } => part(number).map(|part| part_start(*number, part)),
            ViewChange::PartGrew { part: number, role, text, .. } => Some(part_delta(*number, *role, text)),
            ViewChange::PartEnded { part: number, .. } => part(number).map(|part| part_end(*number, part)),
            _ => None,
        };
        events.extend(piece.map(|piece| self.with_message(piece)));
        events
    }

    /// What a message that is whole tells, as the messages that pi has of it.
    pub(super) fn added(&mut self, message: &Message, whole: Vec<Value>) -> Vec<Value> {
        let events = whole.iter().flat_map(|said| self.add(message, said)).collect();
        self.all.extend(whole);
        self.message = PartialMessage::default();
        self.is_in_message = false;
        events
    }

    /// What the end of the turn tells. A message that is being said is cut off.
    pub(super) fn end(mut self, ending: &WorkEnding) -> Vec<Value> {
        let mut events = Vec::new();
        if self.is_in_message {
            let message = cut_off(&self.message, &self.unsaid, ending);
            events.push(ended(&message));
            self.step = Some(message.clone());
            self.all.push(message);
        }
        events.extend(self.end_step());
        events.push(json!({ "type": "agent_end", "messages": self.all }));
        events
    }

    /// A piece of a message, with all that was said before where that is wanted.
    fn with_message(&self, mut piece: Value) -> Value {
        if self.is_cumulative {
            let message = so_far(&self.message, &self.unsaid);
            piece["message"] = message.clone();
            piece["assistantMessageEvent"]["partial"] = message;
        }
        piece
    }

    /// Begins a message of the model's, where none is begun.
    fn begin_message(&mut self) -> Vec<Value> {
        if std::mem::replace(&mut self.is_in_message, true) {
            return Vec::new();
        }
        // What the model said before is through, even where a result of its tools was not told.
        let ended = if self.step.is_some() { self.end_step() } else { None };
        let begun = begun(&self.unsaid);
        ended.into_iter().chain(self.enter_step()).chain([begun]).collect()
    }

    fn add(&mut self, message: &Message, said: &Value) -> Vec<Value> {
        match said["role"].as_str() {
            Some("assistant") => self.add_models(message, said),
            Some("toolResult") => self.add_result(said),
            Some(_) | None => self.enter_step().into_iter().chain([begun(said), ended(said)]).collect(),
        }
    }

    fn add_models(&mut self, message: &Message, said: &Value) -> Vec<Value> {
        let mut events = self.begin_message();
        events.push(ended(said));
        self.step = Some(said.clone());
        let calls = message.parts.iter().filter(|part| part.role == PartRole::ToolCall);
        self.unanswered.extend(calls.filter_map(|part| Some(part.call()?.call)));
        events.extend(self.end_answered_step());
        events
    }

    fn add_result(&mut self, said: &Value) -> Vec<Value> {
        let call = said["toolCallId"].as_str().unwrap_or_default();
        self.unanswered.retain(|waiting| waiting != call);
        self.results.push(said.clone());
        let mut result = json!({ "content": said["content"] });
        if let Some(details) = said.get("details") {
            result["details"] = details.clone();
        }
        let execution = json!({
            "type": "tool_execution_end", "toolCallId": call, "toolName": said["toolName"],
            "result": result, "isError": said["isError"].as_bool().unwrap_or_default(),
        });
        [execution, begun(said), ended(said)].into_iter().chain(self.end_answered_step()).collect()
    }

    /// Ends the step once all of its calls have their results.
    fn end_answered_step(&mut self) -> Option<Value> {
        if self.unanswered.is_empty() { self.end_step() } else { None }
    }

    /// Ends the step that is begun: what the model said, and what its tools answered.
    fn end_step(&mut self) -> Option<Value> {
        // A command of an extension has its model say nothing.
        let message = self.step.take().unwrap_or_else(|| self.unsaid.clone());
        let results = std::mem::take(&mut self.results);
        self.unanswered.clear();
        let was_in_step = std::mem::take(&mut self.is_in_step);
        was_in_step.then(|| json!({ "type": "turn_end", "message": message, "toolResults": results }))
    }
}

//! What happens in a session, as pi tells it. Pure: events of the log and live pieces in, pi's events out. Source: pi's RPC mode, "Events".
//!
//! [`LiveView`] tells each piece of a message once. What upstream repeats with each piece, all that was said before it, is told again only
//! to clients that ask for it.

mod ask;
mod message;
mod note;
#[cfg(test)]
mod tests;
mod turn;

use mainstay_model::agent::QueuedPrompt;
use mainstay_model::live::{LiveView, ViewChange};
use mainstay_model::{
    AgentState, Compaction, Delivery, Event, EventBody, JobId, JobSpec, Live, Message, WorkEnding,
};
use serde_json::{Value, json};

pub(super) use self::ask::ui_request;
use self::message::{begun, ended, unsaid};
use self::note::{noted, tool_update};
use self::turn::Turn;
use super::messages;

/// Tells what happens in one session.
#[derive(Default)]
pub(super) struct EventEncoder {
    view: LiveView,
    /// How its agent goes on.
    state: Option<AgentState>,
    /// What it has still to hear.
    queue: Vec<QueuedPrompt>,
    turn: Option<Turn>,
    /// Whether each piece of a message comes with all that was said before it.
    is_cumulative: bool,
}

impl EventEncoder {
    /// Of a session whose agent goes on so, or will, and has this still to hear, and in which nothing runs.
    pub(super) fn of(state: Option<AgentState>, queue: Vec<QueuedPrompt>) -> Self {
        Self { state, queue, ..Self::default() }
    }

    /// The same for a client that wants each piece of a message with all that was said before it.
    pub(super) fn cumulative(self, is_cumulative: bool) -> Self {
        Self { is_cumulative, ..self }
    }

    /// The message that is being said, from its beginning. Who comes in the middle of it may have heard any part of it, and begins anew.
    pub(super) fn open_message(&self) -> Vec<Value> {
        self.turn.as_ref().map(Turn::open_message).unwrap_or_default()
    }

    /// What a live piece tells.
    pub(super) fn hear(&mut self, live: &Live) -> Vec<Value> {
        let changes = self.view.live(live);
        changes.into_iter().flat_map(|change| self.change(change)).collect()
    }

    /// What an event tells.
    pub(super) fn tell(&mut self, event: &Event) -> Vec<Value> {
        let changes = self.view.event(event);
        changes.into_iter().flat_map(|change| self.change(change)).collect()
    }

    fn change(&mut self, change: ViewChange<'_>) -> Vec<Value> {
        match change {
            ViewChange::JobBegan { event, job, spec: JobSpec::Turn { .. } } => {
                let unsaid = unsaid(self.state.as_ref(), event.at);
                let turn = self.turn.insert(Turn::new(job, unsaid, self.is_cumulative));
                [json!({ "type": "agent_start" })].into_iter().chain(turn.enter_step()).collect()
            }
            ViewChange::JobBegan { .. } | ViewChange::ToolAnswered { .. } => Vec::new(),
            ViewChange::PartBegan { job, .. }
            | ViewChange::PartGrew { job, .. }
            | ViewChange::PartEnded { job, .. } => {
                self.turn_of(job).map(|turn| turn.part_changed(&change)).unwrap_or_default()
            }
            ViewChange::MessageAdded { event, message, .. } => self.added(event, message),
            ViewChange::ToolBegan { event, .. } => self.happened(event),
            ViewChange::ToolProgressed { job, call, output } => {
                let running = self.view.open_call(&call.call).filter(|_| self.is_turn(job));
                running.map(|running| tool_update(&call, &running.arguments, &output)).into_iter().collect()
            }
            ViewChange::JobEnded { job, ending, .. } => self.ended(job, ending),
            ViewChange::Event(event) => self.happened(event),
        }
    }

    /// What an event tells that has no live pieces.
    fn happened(&mut self, event: &Event) -> Vec<Value> {
        match &event.body {
            EventBody::MessageAdded(message) => self.added(event, message),
            EventBody::PromptQueued(queued) => {
                self.queue.push(queued.clone());
                vec![queue_update(&self.queue)]
            }
            EventBody::QueueChanged { queue } => {
                // The agent repeats what it was told.
                let before = std::mem::replace(&mut self.queue, queue.clone());
                if before == *queue { Vec::new() } else { vec![queue_update(queue)] }
            }
            EventBody::AgentChanged(state) => self.agent_changed(state).into_iter().collect(),
            EventBody::AgentNoted(note) => noted(note, event.at).into_iter().collect(),
            EventBody::TranscriptCompacted(compaction) => vec![compacted(compaction)],
            EventBody::AskRaised(ask) => vec![ui_request(ask)],
            EventBody::SessionRenamed { name } => {
                vec![json!({ "type": "session_info_changed", "name": name })]
            }
            _ => Vec::new(),
        }
    }

    fn is_turn(&self, job: JobId) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.job == job)
    }

    fn turn_of(&mut self, job: JobId) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.job == job)
    }

    fn added(&mut self, event: &Event, message: &Message) -> Vec<Value> {
        let whole = messages::of_event(event, message, self.state.as_ref());
        match &mut self.turn {
            Some(turn) => turn.added(message, whole),
            None => whole.iter().flat_map(|message| [begun(message), ended(message)]).collect(),
        }
    }

    fn agent_changed(&mut self, state: &AgentState) -> Option<Value> {
        let before = self.state.replace(state.clone()).map(|before| before.thinking);
        if let Some(turn) = &mut self.turn {
            turn.goes_on_with(state);
        }
        let has_changed = before != Some(state.thinking);
        has_changed.then(|| json!({ "type": "thinking_level_changed", "level": state.thinking }))
    }

    fn ended(&mut self, job: JobId, ending: &WorkEnding) -> Vec<Value> {
        let turn = self.turn.take_if(|turn| turn.job == job);
        turn.map(|turn| turn.end(ending)).unwrap_or_default()
    }
}

fn compacted(compaction: &Compaction) -> Value {
    let mut result = json!({ "summary": compaction.summary });
    for (name, value) in &compaction.metadata {
        result[name.as_str()] = value.clone();
    }
    let mut taken = |name: &str| result.as_object_mut().and_then(|result| result.remove(name));
    let reason = taken("reason").unwrap_or_else(|| "manual".into());
    let will_retry = taken("willRetry").unwrap_or(false.into());
    json!({
        "type": "compaction_end", "reason": reason, "result": result, "aborted": false, "willRetry": will_retry,
    })
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

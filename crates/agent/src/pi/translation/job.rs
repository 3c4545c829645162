//! The job that pi is at: what it has said in it, and whether it is still under way.

use std::collections::HashMap;
use std::time::Duration;

use mainstay_model::agent::ToolCall;
use mainstay_model::event::CancelEnding;
use mainstay_model::{JobId, WorkEnding, YieldReason};
use serde_json::Value;

use crate::pi::rpc::Closing;

/// A job that pi works on.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) phase: Phase,
    /// How many messages it has added.
    pub(super) messages: u32,
    /// What has been said of the message that is being said.
    pub(super) parts: PartProgress,
    /// Whether a grant bounds it.
    pub(super) is_bounded: bool,
    /// Someone wants it to stop.
    pub(super) is_interrupted: bool,
    /// Since when it is to stop because its model said nothing.
    pub(super) silent_since: Option<Duration>,
    /// When it last said anything.
    pub(super) heard_at: Duration,
}

/// What kind of job it is, and how far it has come.
#[derive(Debug)]
pub(super) enum Phase {
    Turn(Turn),
    Compaction,
    Shell { command: String },
    Setting,
}

/// How far a turn has come.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// pi has taken the prompt.
    pub(super) is_accepted: bool,
    /// A run of its agent is under way.
    pub(super) runs: bool,
    /// It waits to ask the provider again.
    pub(super) retries: Option<Duration>,
    /// It shortens what it is shown.
    pub(super) compacts: bool,
    /// Another run is about to begin.
    pub(super) goes_on: bool,
    /// The tools that run.
    pub(super) tools: usize,
    /// How its model came to its end last.
    pub(super) closing: Option<Closing>,
}

/// How much of each part of a message has been said, in bytes, and which tools are called in those of which nothing has.
#[derive(Debug, Default)]
pub(super) struct PartProgress {
    pub(super) said: HashMap<u32, u64>,
    pub(super) calls: HashMap<u32, ToolCall>,
}

impl Phase {
    pub(super) fn turn() -> Self {
        Self::Turn(Turn::default())
    }
}

impl Job {
    pub(super) fn new(id: JobId, phase: Phase, now: Duration) -> Self {
        Self {
            id,
            phase,
            messages: 0,
            parts: PartProgress::default(),
            is_bounded: false,
            is_interrupted: false,
            silent_since: None,
            heard_at: now,
        }
    }

    pub(super) const fn turn(&mut self) -> Option<&mut Turn> {
        match &mut self.phase {
            Phase::Turn(turn) => Some(turn),
            Phase::Compaction | Phase::Shell { .. } | Phase::Setting => None,
        }
    }

    /// When its model will have said nothing for too long; none where it is not the model's turn to speak.
    pub(super) fn deadline(&self, silence: Duration, grace: Duration) -> Option<Duration> {
        if let Some(since) = self.silent_since {
            return Some(since + grace);
        }
        match &self.phase {
            Phase::Turn(turn) if turn.is_models_turn() => {
                Some(self.heard_at + turn.retries.unwrap_or_default() + silence)
            }
            Phase::Compaction => Some(self.heard_at + silence),
            Phase::Turn(_) | Phase::Shell { .. } | Phase::Setting => None,
        }
    }

    /// How a turn ended of which nothing is under way any more.
    pub(super) fn turns_ending(&self, closing: Option<&Closing>, silence: Duration) -> WorkEnding {
        if self.silent_since.is_some() {
            return WorkEnding::failed(said_nothing(silence));
        }
        let cancelled = WorkEnding::Cancelled { by: CancelEnding::Yielded };
        let done = |reason| WorkEnding::Done { reason, value: Value::Null };
        let Some(closing) = closing else {
            return if self.is_interrupted { cancelled } else { done(YieldReason::EndTurn) };
        };
        match closing.stop_reason.as_deref() {
            Some("aborted") => cancelled,
            Some("error") if self.is_interrupted => cancelled,
            Some("error") => {
                let message = closing.error_message.clone();
                WorkEnding::failed(message.unwrap_or_else(|| "the model failed".to_owned()))
            }
            Some("length") => done(YieldReason::MaxTokens),
            Some(_) | None => done(YieldReason::EndTurn),
        }
    }
}

impl Turn {
    /// Whether nothing of it is under way, as far as events tell.
    pub(super) const fn is_over(&self) -> bool {
        self.is_accepted && !self.runs && self.retries.is_none() && !self.compacts && !self.goes_on
    }

    const fn is_models_turn(&self) -> bool {
        (self.is_accepted || self.runs || self.compacts) && self.tools == 0
    }
}

/// What is said of a model that says nothing.
pub(super) fn said_nothing(silence: Duration) -> String {
    format!("the model said nothing for {} ms", silence.as_millis())
}

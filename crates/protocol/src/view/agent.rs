//! What clients see of agents: how one goes on, and what came of what a runner was given to do that is no code.

use mainstay_model::{
    AgentState, CommandId, Delivery, Diagnostic, Event, EventBody, JobKind, Message, PartRole, QueuedPrompt,
    Seq, Session, SessionId, TokenUsage, Version, WorkEnding, WorkOutcome, YieldReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How an agent goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// With which model, how hard it thinks and how full its context is, as it said last; none before it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
    /// What kind of job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub works: Option<JobKind>,
    /// What it has still to hear, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedView>,
}

/// Something said to an agent that it has not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedView {
    /// When it is to hear it.
    pub hears: Delivery,
    /// The text of the prompt.
    pub text: String,
    /// With how many pictures.
    #[serde(default)]
    pub images: usize,
}

impl AgentView {
    /// The view of a session's agent.
    pub(super) fn new(session: &Session) -> Self {
        let queued = |QueuedPrompt { prompt, hears }: &QueuedPrompt| QueuedView {
            hears: *hears,
            text: prompt.text.clone(),
            images: prompt.images.len(),
        };
        Self {
            state: session.agent.clone(),
            works: session.running().map(|running| running.kind).filter(|kind| !kind.is_eval()),
            queue: session.queue.iter().map(queued).collect(),
        }
    }
}

/// What came of something that a runner was given to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkView {
    /// The session that did the work.
    pub session: SessionId,
    /// The command that asked for it.
    pub command: CommandId,
    /// The event that ended it: the cursor for what comes later.
    pub seq: Seq,
    /// Whether it was done.
    pub success: bool,
    /// How it ended: `done`, `failed`, `cancelled`, `interrupted`.
    pub ending: String,
    /// Why it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<YieldReason>,
    /// What the agent said last: its answer. The events have all that it said.
    #[serde(default)]
    pub text: String,
    /// What came of it beside messages, as the agent says it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the compiler said, where it was to build something that could not be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// How many tokens its messages took.
    #[serde(default, skip_serializing_if = "TokenUsage::is_zero")]
    pub usage: TokenUsage,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The session's version once it had ended.
    #[serde(default)]
    pub version: Version,
    /// Whether an earlier submission of the same command had brought this about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// Makes the view of an outcome of what was said in its job.
#[derive(Debug, Default)]
pub struct WorkViewBuilder {
    answer: String,
    usage: TokenUsage,
}

impl WorkViewBuilder {
    /// Takes in the next event of the job.
    pub fn push(&mut self, event: &Event) {
        if let EventBody::MessageAdded(message) = &event.body {
            self.usage = self.usage.plus(message.usage.unwrap_or_default());
            let words = words_of_model(message);
            if !words.is_empty() {
                self.answer = words;
            }
        }
    }

    /// The view, once all events of the job were taken in.
    pub fn view(self, session: SessionId, command: CommandId, outcome: WorkOutcome) -> WorkView {
        let success = outcome.success();
        let WorkOutcome { completed, ending, duration_ms, .. } = outcome;
        let name = ending.name().to_owned();
        let mut diagnostics = Vec::new();
        let (reason, value, error) = match ending {
            WorkEnding::Done { reason, value } => (Some(reason), value, None),
            WorkEnding::Failed { message, diagnostics: said } => {
                diagnostics = said;
                (None, Value::Null, Some(message))
            }
            ending @ (WorkEnding::Cancelled { .. } | WorkEnding::Interrupted) => {
                (None, Value::Null, Some(ending.to_string()))
            }
        };
        WorkView {
            session,
            command,
            seq: completed,
            success,
            ending: name,
            reason,
            text: self.answer,
            value,
            error,
            diagnostics,
            usage: self.usage,
            duration_ms,
            version: Version::ZERO,
            replayed: false,
        }
    }
}

/// What a model says in a message, without what it thinks and calls.
fn words_of_model(message: &Message) -> String {
    let parts = message.parts.iter().filter(|part| part.role == PartRole::Assistant);
    let texts: Vec<&str> = parts.map(|part| part.text.as_str()).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

//! The vocabulary of agents, whatever program one is: what it is asked to do, what it says while it does so, and how that ends. What a
//! kernel is asked to do that is no code is said in the same words.
//!
//! What is said to last is a [`Message`](crate::Message), and a [`Compaction`](crate::Compaction) where it was shortened. Here is
//! what surrounds that. Sources: seed 001, "Protocol Patterns"; seed 003, yield reasons; pi's RPC mode.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comm::CommMessage;
use crate::diagnostic::Diagnostic;
use crate::event::CancelEnding;
use crate::id::{JobId, Seq};
use crate::message::{Message, Part, PartRole};

/// What is said to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The text of the prompt.
    pub text: String,
    /// The pictures that go with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A picture in a prompt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The type of the picture, such as `image/png`.
    pub mime_type: String,
    /// Its bytes, as base64.
    pub data: String,
}

// By hand: the bytes of a picture help nobody.
impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime_type, self.data.len())
    }
}

impl Prompt {
    /// Creates a prompt of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }

    /// As someone says it in a conversation.
    pub fn message(&self) -> Message {
        let image = |image: &Image| {
            let block =
                serde_json::json!({ "type": "image", "data": image.data, "mimeType": image.mime_type });
            Part::block(PartRole::User, "image", &block)
        };
        let words = std::iter::once(Part::text(PartRole::User, self.text.clone()));
        Message { parts: words.chain(self.images.iter().map(image)).collect(), ..Message::default() }
    }
}

/// What a runner is asked to do that is no code: one job, which takes its turn with others. All but the last three are of agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "work", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum JobSpec {
    /// Answer, with all the steps that takes.
    Turn {
        /// What is said to it.
        prompt: Prompt,
    },
    /// Shorten what it is shown of the conversation.
    Compaction {
        /// What to heed in doing so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    /// Run a line of a shell where its tools act, for a person.
    Shell {
        /// The line for the agent's shell.
        line: String,
        /// Whether the model is not to be told of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_private: bool,
    },
    /// Change a setting of the agent.
    Setting(Setting),
    /// Of a kernel: build the session's project. Where that succeeds, a new worker has what was built, and the definitions run again in it;
    /// where it does not, nothing has happened to the session.
    Build,
    /// The same, but that the definitions are dropped where it succeeds. Source: seed 000, `hard_reset(rebuild)`.
    Rebuild,
    /// Of a Jupyter kernel: take what a front end says beside code, and do what it is for. What that changes is not done again to rebuild the
    /// session.
    Comm(Box<CommMessage>),
}

impl JobSpec {
    /// What of it a session keeps while it is under way.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Turn { .. } => JobKind::Turn,
            Self::Compaction { .. } => JobKind::Compaction,
            Self::Shell { .. } => JobKind::Shell,
            Self::Setting(_) => JobKind::Setting,
            Self::Build => JobKind::Build,
            Self::Rebuild => JobKind::Rebuild,
            Self::Comm(_) => JobKind::Comm,
        }
    }
}

/// What kind of job runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum JobKind {
    /// A kernel runs code.
    #[default]
    Eval,
    /// A turn of an agent.
    Turn,
    /// An agent shortens what it is shown.
    Compaction,
    /// An agent runs a line of a shell for a person.
    Shell,
    /// An agent takes a setting.
    Setting,
    /// The session's project is built, and the definitions run again with it.
    Build,
    /// The session's project is built, and the definitions are dropped.
    Rebuild,
    /// A kernel takes what a front end says beside code.
    Comm,
}

impl JobKind {
    /// Whether it is code that runs.
    pub fn is_eval(&self) -> bool {
        *self == Self::Eval
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eval => "eval",
            Self::Turn => "turn",
            Self::Compaction => "compaction",
            Self::Shell => "shell",
            Self::Setting => "setting",
            Self::Build => "build",
            Self::Rebuild => "rebuild",
            Self::Comm => "comm",
        }
    }
}

/// How an agent is to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "setting", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Setting {
    /// Use another model from now on.
    Model {
        /// The provider of the model.
        provider: String,
        /// Its provider's name for it.
        id: String,
    },
    /// With the next of the models it may use.
    NextModel {
        /// Or the one before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_backward: bool,
    },
    /// Think more or less from now on.
    Thinking {
        /// How hard the model thinks.
        level: ThinkingLevel,
    },
    /// Thinking as hard as the next level says.
    NextThinking,
    /// Shortening what it is shown when that gets long, or not.
    AutoCompaction {
        /// Whether the agent compacts by itself.
        enabled: bool,
    },
    /// Asking again where a provider fails for the moment, or not.
    AutoRetry {
        /// Whether the agent retries by itself.
        enabled: bool,
    },
}

/// How hard a model thinks before it speaks.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// The model does not think.
    #[default]
    Off,
    /// The model hardly thinks.
    Minimal,
    /// The model thinks a little.
    Low,
    /// The model thinks a middling time.
    Medium,
    /// The model thinks hard.
    High,
    /// As hard as it can.
    Xhigh,
}

impl ThinkingLevel {
    /// Every level, the lowest first.
    pub const ALL: [Self; 6] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

/// When an agent that works is to hear what is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// Before its next step: what is said steers it.
    #[serde(rename = "next")]
    Steer,
    /// When it would be done: what is said follows up.
    #[serde(rename = "atEnd")]
    FollowUp,
}

/// Something said to an agent while it worked, which it has not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// The prompt that waits.
    pub prompt: Prompt,
    /// When it is to hear it.
    pub hears: Delivery,
}

/// A model that an agent may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The provider of the model.
    pub provider: String,
    /// Its provider's name for it.
    pub id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many tokens it can be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// All that its agent says of it, as it says it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub about: Value,
}

/// How an agent goes on, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// The model that the agent uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// How hard that thinks.
    #[serde(default)]
    pub thinking: ThinkingLevel,
    /// Whether it shortens what it is shown when that gets long.
    #[serde(default)]
    pub auto_compaction: bool,
    /// How many tokens of what it is shown are taken, as far as it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// A piece of a message that is being said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The job it is said in.
    pub job: JobId,
    /// How many messages the job had added before.
    pub message: u32,
    /// Which part of the message it is of.
    pub part: u32,
    /// What kind of part.
    pub role: PartRole,
    /// How many bytes of the part were said before.
    pub offset: u64,
    /// The text that was added.
    pub text: String,
    /// Of a call, the tool; where the part begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCall>,
}

/// A model's call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// What ties it to its result.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
}

/// Something that happens to an agent while it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "note", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Note {
    /// A tool call has started.
    ToolStarted {
        /// The tool call that started.
        #[serde(flatten)]
        call: ToolCall,
        /// The arguments of the call.
        arguments: Value,
    },
    /// A tool has ended; its result is a message.
    ToolEnded {
        /// The tool call that ended.
        #[serde(flatten)]
        call: ToolCall,
        /// Whether the tool call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// What it is shown is being shortened.
    CompactionStarted {
        /// Why: `manual`, `threshold`, `overflow`.
        reason: String,
    },
    /// That did not come about.
    CompactionFailed {
        /// Why it was begun.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The reason why the compaction failed.
        message: String,
        /// Whether someone had it end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        was_cancelled: bool,
    },
    /// A provider failed for the moment, and is asked again.
    RetryStarted {
        /// The how manieth time.
        attempt: u32,
        /// How many attempts are made at most.
        attempts: u32,
        /// After how many milliseconds.
        delay_ms: u64,
        /// The message of the error that caused the retry.
        message: String,
    },
    /// It was asked again.
    RetryEnded {
        /// Whether the retry succeeded.
        success: bool,
        /// The how manieth time that was.
        attempt: u32,
        /// What it said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// It tells people something, or an extension of it does.
    Told {
        /// How grave that is: `info`, `warning`, `error`.
        level: String,
        /// The message for people.
        message: String,
    },
}

/// Why an agent has nothing to do any more. Source: seed 003, yield reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum YieldReason {
    /// It has said all.
    EndTurn,
    /// It has said as much as it may.
    MaxTokens,
}

/// How a job ended that is no eval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "ending", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WorkEnding {
    /// The job did what was asked.
    Done {
        /// Why it is done.
        reason: YieldReason,
        /// What came of it beside messages, as its agent says it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
    },
    /// The job failed before it was done.
    Failed {
        /// Why, as the agent, its provider or the compiler says it.
        message: String,
        /// What the compiler said of what it was to build.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        diagnostics: Vec<Diagnostic>,
    },
    /// Someone cancelled the job.
    Cancelled {
        /// How it ended then.
        by: CancelEnding,
    },
    /// It was cut off: its agent was lost, or the daemon, or the daemon went down.
    Interrupted,
}

impl WorkEnding {
    /// It was not done, and nothing was compiled in it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), diagnostics: Vec::new() }
    }

    /// Its name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What came of a job that is no eval. What was said in it stands in the events between `requested` and `completed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkOutcome {
    /// The job that ended.
    pub job: JobId,
    /// The event that accepted it.
    pub requested: Seq,
    /// The event that ended it.
    pub completed: Seq,
    /// How the job ended.
    #[serde(flatten)]
    pub ending: WorkEnding,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl WorkOutcome {
    /// Whether it was done.
    pub const fn success(&self) -> bool {
        matches!(self.ending, WorkEnding::Done { .. })
    }
}

/// What an agent says by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentNotice {
    /// A piece of a message.
    Said(Delta),
    /// A tool has given so much: the end of all that, in its own words.
    ToolOutput {
        /// The tool call that produced the output.
        call: ToolCall,
        /// The output of the tool so far.
        output: Value,
    },
    /// A whole message of the conversation.
    Message(Message),
    /// What it is shown was shortened: a summary stands for all but the last so many entries.
    Compacted {
        /// The summary that replaces the older entries.
        summary: String,
        /// How many entries of what it was shown it does not stand for.
        kept: u64,
        /// What else belongs to it.
        metadata: BTreeMap<String, Value>,
    },
    /// What it has still to hear, by its words.
    Queue(Vec<(Delivery, String)>),
    /// How it goes on.
    State(AgentState),
    /// Something happened to it.
    Noted(Note),
    /// It has ended a job.
    Ended {
        /// The job that ended.
        job: JobId,
        /// How the job ended.
        ending: WorkEnding,
    },
}

/// Describes the work in few words.
impl std::fmt::Display for JobSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Turn { prompt } => write!(f, "{prompt}"),
            Self::Compaction { instructions: None } => write!(f, "compact"),
            Self::Compaction { instructions: Some(instructions) } => write!(f, "compact: {instructions}"),
            Self::Shell { line, .. } => write!(f, "$ {line}"),
            Self::Setting(setting) => write!(f, "{setting}"),
            Self::Build => f.write_str("build of the project"),
            Self::Rebuild => f.write_str("build of the project, then a hard reset"),
            Self::Comm(message) => write!(f, "{message}"),
        }
    }
}

impl std::fmt::Display for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        match self.images.len() {
            0 => Ok(()),
            1 => f.write_str(" (with an image)"),
            count => write!(f, " (with {count} images)"),
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let switch = |enabled: bool| if enabled { "on" } else { "off" };
        match self {
            Self::Model { provider, id } => write!(f, "model {provider}/{id}"),
            Self::NextModel { is_backward: false } => write!(f, "next model"),
            Self::NextModel { is_backward: true } => write!(f, "previous model"),
            Self::Thinking { level } => write!(f, "thinking {}", level.name()),
            Self::NextThinking => write!(f, "next thinking level"),
            Self::AutoCompaction { enabled } => write!(f, "automatic compaction {}", switch(*enabled)),
            Self::AutoRetry { enabled } => write!(f, "automatic retry {}", switch(*enabled)),
        }
    }
}

impl std::fmt::Display for QueuedPrompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match self.hears {
            Delivery::Steer => "steer",
            Delivery::FollowUp => "follow up",
        };
        write!(f, "{when}: {}", self.prompt)
    }
}

impl std::fmt::Display for AgentState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.model {
            Some(Model { provider, id, .. }) => write!(f, "{provider}/{id}")?,
            None => write!(f, "no model")?,
        }
        write!(f, ", thinking {}", self.thinking.name())?;
        self.context_tokens.map_or(Ok(()), |tokens| write!(f, ", {tokens} tokens of context"))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ToolStarted { call, arguments } => write!(f, "{} runs {arguments}", call.tool),
            Self::ToolEnded { call, is_error: false } => write!(f, "{} has ended", call.tool),
            Self::ToolEnded { call, is_error: true } => write!(f, "{} has failed", call.tool),
            Self::CompactionStarted { reason } => write!(f, "compacts ({reason})"),
            Self::CompactionFailed { message, .. } => write!(f, "did not compact: {message}"),
            Self::RetryStarted { attempt, attempts, delay_ms, message } => {
                write!(f, "{message}; tries again in {delay_ms} ms ({attempt} of {attempts})")
            }
            Self::RetryEnded { success: true, attempt, .. } => write!(f, "answered at try {attempt}"),
            Self::RetryEnded { success: false, attempt, message } => {
                write!(f, "gave up after try {attempt}")?;
                message.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
            }
            Self::Told { level, message } => write!(f, "{level}: {message}"),
        }
    }
}

impl std::fmt::Display for WorkEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done { reason: YieldReason::EndTurn, .. } => write!(f, "done"),
            Self::Done { reason: YieldReason::MaxTokens, .. } => write!(f, "cut short: as long as it may be"),
            Self::Failed { message, .. } => write!(f, "failed: {message}"),
            Self::Cancelled { by: CancelEnding::Yielded } => write!(f, "cancelled"),
            Self::Cancelled { by: CancelEnding::Killed } => write!(f, "cancelled by killing the agent"),
            Self::Interrupted => write!(f, "cut off: the agent or the daemon was lost"),
        }
    }
}

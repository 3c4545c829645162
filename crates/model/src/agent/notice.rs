//! What an agent reports while it works.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::WorkEnding;
use super::prompt::Delivery;
use super::setting::AgentState;
use crate::id::JobId;
use crate::message::{Message, PartRole};

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

/// Why a runner has nothing to do any more. Source: seed 003, yield reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum YieldReason {
    /// It has said all.
    EndTurn,
    /// It has said as much as it may.
    MaxTokens,
    /// The project was compiled by the warm compiler: nothing but its sources had changed since its last build.
    WarmCompiler,
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

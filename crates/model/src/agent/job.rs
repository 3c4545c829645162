//! The jobs that are no code: turns, compactions, settings, builds; and how they end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::notice::YieldReason;
use super::prompt::Prompt;
use super::setting::Setting;
use crate::comm::CommMessage;
use crate::diagnostic::Diagnostic;
use crate::event::CancelEnding;
use crate::id::{JobId, Seq};

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

    /// Whether it builds the session's project.
    pub const fn is_build(self) -> bool {
        matches!(self, Self::Build | Self::Rebuild)
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

impl std::fmt::Display for WorkEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done { reason: YieldReason::EndTurn, .. } => write!(f, "done"),
            Self::Done { reason: YieldReason::WarmCompiler, .. } => {
                write!(f, "compiled by the warm compiler")
            }
            Self::Done { reason: YieldReason::MaxTokens, .. } => write!(f, "cut short: as long as it may be"),
            Self::Failed { message, .. } => write!(f, "failed: {message}"),
            Self::Cancelled { by: CancelEnding::Yielded } => write!(f, "cancelled"),
            Self::Cancelled { by: CancelEnding::Killed } => write!(f, "cancelled by killing the agent"),
            Self::Interrupted => write!(f, "cut off: the agent or the daemon was lost"),
        }
    }
}

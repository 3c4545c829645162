//! What a client of the pi protocol may send, once it is known to be well formed. Source: protocols/pi.md, "Server commands", "Session
//! commands".

use mainstay_model::agent::{Image, Setting, ThinkingLevel};
use mainstay_model::{CommandId, IdempotencyKey, Prompt, Version};
use serde_json::Value;

/// A command with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PiCommand {
    /// What its client calls it, and gets back with the answer.
    pub(super) id: Option<CommandId>,
    /// The `type` field of the command.
    pub(super) kind: String,
    /// What it waits for.
    pub(super) depends_on: Vec<CommandId>,
    /// The version its session must have.
    pub(super) if_version: Option<Version>,
    /// What its client calls what it wants done once.
    pub(super) key: Option<IdempotencyKey>,
    /// The session it is for, as its client calls it.
    pub(super) session: Option<String>,
    /// The request that the command makes.
    pub(super) body: Body,
    /// What it says, for telling it from another under the same id.
    pub(super) fingerprint: String,
}

/// A request in the words of pi's protocol.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    ListSessions,
    CreateSession {
        cwd: Option<String>,
    },
    DeleteSession,
    /// Hears of the session's events from now on, or from after an event on.
    SwitchSession {
        after: Option<u64>,
        /// Whether each piece of a message is to come with all that was said before it.
        is_cumulative: bool,
    },
    GetMetrics,
    HealthCheck,
    GetStartupRecovery,
    GetCommandHistory(HistoryQuery),
    ListStoredSessions,
    LoadSession {
        path: String,
    },
    Prompt {
        prompt: Prompt,
        streaming: Option<Streaming>,
    },
    Steer(Prompt),
    FollowUp(Prompt),
    Abort(AbortTarget),
    Read(Read),
    Set(Setting),
    Compact {
        instructions: Option<String>,
    },
    Bash {
        line: String,
        is_private: bool,
    },
    SetSessionName {
        name: String,
    },
    ExportHtml {
        path: Option<String>,
    },
    NewSession,
    SwitchSessionFile {
        path: String,
    },
    Fork {
        entry: String,
    },
    NavigateTree {
        target: String,
        label: Option<String>,
    },
    Answer {
        request: String,
        response: Value,
    },
}

/// What is to be aborted. An agent has one job at a time; an abort of another kind than runs aborts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbortTarget {
    Turn,
    Compaction,
    Retry,
    Bash,
}

/// What is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    State,
    Messages,
    AvailableModels,
    Commands,
    Skills,
    Tools,
    SessionFiles,
    Stats,
    ForkMessages,
    Tree,
    LastAssistantText,
    ContextUsage,
}

/// When an agent that works is to hear a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Steer,
    FollowUp,
}

/// Which commands of the past are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HistoryQuery {
    pub(super) session: Option<String>,
    pub(super) command: Option<String>,
    pub(super) from: Option<u64>,
    pub(super) to: Option<u64>,
    pub(super) limit: Option<u64>,
}

impl PiCommand {
    /// Whether it has its connection hear of a session: that is done for each connection that asks.
    pub(super) const fn is_subscription(&self) -> bool {
        matches!(self.body, Body::SwitchSession { .. })
    }
}

impl Body {
    /// Whether a session comes by it.
    pub(super) const fn is_creation(&self) -> bool {
        matches!(self, Self::CreateSession { .. } | Self::LoadSession { .. } | Self::Fork { .. })
    }

    /// Whether a session that is there may get its name by it, or loses it: the session that is meant cannot be told from the name when it is
    /// sent again.
    pub(super) const fn moves_name(&self) -> bool {
        matches!(self, Self::DeleteSession | Self::LoadSession { .. })
    }

    /// Whether a session comes or goes by it.
    pub(super) const fn changes_directory(&self) -> bool {
        self.is_creation() || matches!(self, Self::DeleteSession)
    }

    /// How much it asks of the daemon. Source: protocols/pi.md, "Limits".
    pub(super) const fn cost(&self) -> Cost {
        match self {
            Self::ListSessions
            | Self::SwitchSession { .. }
            | Self::GetMetrics
            | Self::HealthCheck
            | Self::GetStartupRecovery
            | Self::GetCommandHistory(_)
            | Self::ListStoredSessions
            | Self::ExportHtml { .. }
            | Self::Read(_) => Cost::Read,
            Self::DeleteSession
            | Self::Abort(_)
            | Self::Set(_)
            | Self::SetSessionName { .. }
            | Self::Answer { .. } => Cost::Change,
            Self::CreateSession { .. }
            | Self::LoadSession { .. }
            | Self::Prompt { .. }
            | Self::Steer(_)
            | Self::FollowUp(_)
            | Self::Compact { .. }
            | Self::Bash { .. }
            | Self::NewSession
            | Self::SwitchSessionFile { .. }
            | Self::Fork { .. }
            | Self::NavigateTree { .. } => Cost::Work,
        }
    }

    /// Whether it only reads: it is answered anew whenever it comes.
    pub(super) const fn is_read(&self) -> bool {
        matches!(self.cost(), Cost::Read)
    }

    /// Whether it never waits behind others of its connection: whoever has filled it can still abort and answer.
    pub(super) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Abort(_) | Self::Answer { .. })
    }
}

/// How much a command asks of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// It reads what is there.
    Read,
    /// It changes something at once.
    Change,
    /// It may take as long as a model takes, or a runner to start.
    Work,
}

/// The images of a prompt, as pi has them.
pub(super) fn images(value: Option<&Value>) -> Option<Vec<Image>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Some(Vec::new()) };
    let image = |image: &Value| {
        let text = |name: &str| image.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Image { mime_type: text("mimeType")?, data: text("data")? })
    };
    value.as_array()?.iter().map(image).collect()
}

/// A level of thinking. pi-server called none `none`; pi calls it `off`.
pub(super) fn thinking(name: &str) -> Option<ThinkingLevel> {
    if name == "none" {
        return Some(ThinkingLevel::Off);
    }
    ThinkingLevel::ALL.into_iter().find(|level| level.name() == name)
}

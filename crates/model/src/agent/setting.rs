//! The settings of an agent, and the state that they are part of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

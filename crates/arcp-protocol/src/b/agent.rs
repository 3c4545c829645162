//! Names of agents. Source: draft-arcp-1.1, 7.5.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many bytes the name of an agent may have with its version.
const LONGEST: usize = 256;

/// The name of an agent, perhaps with a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AgentRef {
    name: String,
    version: Option<String>,
}

impl AgentRef {
    /// The name of the agent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that is wanted; none where the default will do.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

impl TryFrom<String> for AgentRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text.as_str(), None),
        };
        // Clients write names with capital letters too, which the draft does not.
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        };
        let is_version = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '_' | '-'))
        };
        let is_short = text.len() <= LONGEST;
        match is_short && is_name(name) && version.is_none_or(is_version) {
            true => Ok(Self { name: name.to_owned(), version: version.map(str::to_owned) }),
            false => Err(format!(
                "`{text}` names no agent; an agent is NAME or NAME@VERSION, of {LONGEST} bytes at most"
            )),
        }
    }
}

impl From<AgentRef> for String {
    fn from(agent: AgentRef) -> Self {
        agent.to_string()
    }
}

impl fmt::Display for AgentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// An agent as a welcome lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InventoryEntry {
    /// The name of the agent.
    pub name: String,
    /// The versions that it is there in.
    #[serde(default)]
    pub versions: Vec<String>,
    /// The version that its bare name means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

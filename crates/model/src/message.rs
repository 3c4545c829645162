//! Messages: what is said in a conversation with a model, and what that costs.
//!
//! A message is one fact, an event; each of its parts is an entry of the transcript. Which entries are one message is told by
//! their places: they come from the same event. So what a provider sent can be put together again as it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::entry::{Content, Entry, Role};
use crate::transcript::Segment;

/// Where an entry's metadata has the id that ties a tool's call to its result.
pub const CALL: &str = "call";
/// Where it has the tool's name.
pub const TOOL: &str = "tool";
/// Where it has whether a tool failed.
pub const IS_ERROR: &str = "isError";
/// Where it has what kind of block the text is the JSON of: an image, or several blocks together (`content`).
pub const BLOCK: &str = "block";
/// Where a summary has the segments that it stands for.
pub const COVERS: &str = "covers";

/// What someone said in a conversation with a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// What was said, in order.
    pub parts: Vec<Part>,
    /// What belongs to all of it: the model, why it stopped, the provider's own name for it. Each entry has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Who says it, or what it is.
    pub role: PartRole,
    /// What it says; of a tool's call, the arguments as JSON.
    pub text: String,
    /// What else belongs to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

/// What part of a conversation something is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum PartRole {
    /// What a model is told before anyone speaks, or by the program it runs in.
    System,
    /// What a person says.
    User,
    /// What a model says.
    Assistant,
    /// What a model thinks before it speaks.
    Thinking,
    /// A tool that a model calls.
    ToolCall,
    /// What a tool answered.
    ToolResult,
}

impl PartRole {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::System, Self::User, Self::Assistant, Self::Thinking, Self::ToolCall, Self::ToolResult];
}

impl From<PartRole> for Role {
    fn from(role: PartRole) -> Self {
        match role {
            PartRole::System => Self::System,
            PartRole::User => Self::User,
            PartRole::Assistant => Self::Assistant,
            PartRole::Thinking => Self::Thinking,
            PartRole::ToolCall => Self::ToolCall,
            PartRole::ToolResult => Self::ToolResult,
        }
    }
}

impl Part {
    /// A part that is nothing but its text.
    pub fn text(role: PartRole, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), metadata: BTreeMap::new() }
    }

    /// A block that is no text, whole: an image.
    pub fn block(role: PartRole, kind: &str, block: &Value) -> Self {
        Self::text(role, block.to_string()).with(BLOCK, kind)
    }

    /// A model calls a tool.
    pub fn tool_call(call: &str, tool: &str, arguments: &Value) -> Self {
        Self::text(PartRole::ToolCall, arguments.to_string()).with(CALL, call).with(TOOL, tool)
    }

    /// What the tool answered to the call with this id.
    pub fn tool_result(call: &str, text: impl Into<String>) -> Self {
        Self::text(PartRole::ToolResult, text).with(CALL, call)
    }

    /// With one more thing that belongs to it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }
}

impl Message {
    /// The entries it comes to, each with all of its text.
    pub fn entries(&self) -> Vec<(Entry, String)> {
        let entry = |part: &Part| {
            let mut metadata = self.metadata.clone();
            metadata.extend(part.metadata.clone());
            let content = Content::of(part.text.clone()).0;
            (Entry { role: part.role.into(), content, metadata }, part.text.clone())
        };
        self.parts.iter().map(entry).collect()
    }
}

/// In few words: each part by its role, shortened.
impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// Bytes of each part.
        const SHOWN: usize = 80;
        for (index, (part, (entry, text))) in self.parts.iter().zip(self.entries()).enumerate() {
            let separator = if index == 0 { "" } else { " · " };
            let line: String = entry.shown(&text).split_whitespace().collect::<Vec<_>>().join(" ");
            let more = if line.len() > SHOWN { "…" } else { "" };
            let shown = &line[..line.floor_char_boundary(SHOWN)];
            let name = Role::from(part.role).name();
            let tool = entry.tool().map(|tool| format!(" {tool}")).unwrap_or_default();
            write!(f, "{separator}{name}{tool}: {shown}{more}")?;
        }
        Ok(())
    }
}

/// A summary that stands for the beginning of a transcript from now on. What it stands for stays readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// The entries it stands for, by their places: so it stays true in forks and merges.
    pub covers: Vec<Segment>,
    /// What they said, in short.
    pub summary: String,
    /// What else belongs to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

impl Compaction {
    /// The entry it comes to, with all of its text.
    pub fn entry(&self) -> (Entry, String) {
        let mut metadata = self.metadata.clone();
        metadata.insert(COVERS.to_owned(), json!(self.covers));
        let content = Content::of(self.summary.clone()).0;
        (Entry { role: Role::Summary, content, metadata }, self.summary.clone())
    }
}

/// How many tokens of a model something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TokenUsage {
    /// What it was told, without what it knew already.
    pub input: u64,
    /// What it said.
    pub output: u64,
    /// What it knew already.
    pub cache_read: u64,
    /// What it was told to keep.
    pub cache_write: u64,
}

impl TokenUsage {
    /// Whether it took none.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

impl std::fmt::Display for TokenUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { input, output, cache_read, cache_write } = self;
        write!(f, "{input} tokens in, {output} out")?;
        if *cache_read > 0 || *cache_write > 0 {
            write!(f, "; cache: {cache_read} read, {cache_write} written")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_message_is_an_entry_with_what_belongs_to_all() {
        let message = Message {
            parts: vec![
                Part::text(PartRole::Assistant, "I look."),
                Part::tool_call("c1", "read", &json!({ "path": "a" })),
            ],
            metadata: [("model".to_owned(), json!("m"))].into(),
            usage: None,
        };
        let entries: Vec<Entry> = message.entries().into_iter().map(|(entry, _)| entry).collect();
        insta::assert_json_snapshot!(entries, @r#"
        [
          {
            "role": "assistant",
            "content": "I look.",
            "metadata": {
              "model": "m"
            }
          },
          {
            "role": "toolCall",
            "content": "{\"path\":\"a\"}",
            "metadata": {
              "call": "c1",
              "model": "m",
              "tool": "read"
            }
          }
        ]
        "#);
    }

    #[test]
    fn a_message_cannot_take_more_tokens_than_can_be_counted() {
        let most = TokenUsage { input: u64::MAX, output: 1, cache_read: 0, cache_write: 2 };
        let twice = most.plus(most);
        assert_eq!(twice, TokenUsage { output: 2, cache_write: 4, ..most });
        assert_eq!(twice.to_string(), format!("{} tokens in, 2 out; cache: 0 read, 4 written", u64::MAX));
    }
}

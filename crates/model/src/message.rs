//! Messages: what is said in a conversation with a model, and what that costs.
//!
//! A message is one fact, an event; each of its parts is an entry of the transcript. Which entries are one message is told by
//! their places: they come from the same event. So what a provider sent can be put together again as it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::ToolCall;
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
    /// The tokens that the message cost.
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
    /// Every role of a message's part.
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

    /// The id of the call that this part is, or is the result of.
    pub fn call_id(&self) -> Option<&str> {
        self.metadata.get(CALL).and_then(Value::as_str)
    }

    /// The call that this part is, or is the result of, where the part names the tool too.
    pub fn call(&self) -> Option<ToolCall> {
        let tool = self.metadata.get(TOOL).and_then(Value::as_str)?;
        Some(ToolCall { call: self.call_id()?.to_owned(), tool: tool.to_owned() })
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

/// The text in a tool's output: the output itself, or its blocks of text, each from a line of its own.
pub fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(output_text).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let inner = ["text", "output", "content"].iter().find_map(|name| fields.get(*name));
            inner.map(output_text).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
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
    /// How many tokens the model wrote.
    pub output: u64,
    /// What it knew already.
    pub cache_read: u64,
    /// What it was told to keep.
    pub cache_write: u64,
    /// What it cost in US dollars, as far as the agent knows prices.
    #[serde(skip_serializing_if = "Cost::is_zero")]
    pub cost: Cost,
}

/// What something cost: in JSON a number of US dollars, kept in billionths of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct Cost(u64);

impl Cost {
    /// More than a million dollars; more than this is this. Up to here a floating-point number of dollars says which it is.
    pub const MAX: Self = Self(1 << 50);
    const PARTS: f64 = 1e9;

    /// So many dollars; nothing where that is no amount.
    pub fn of_dollars(dollars: f64) -> Self {
        // What is below zero, or no number, becomes zero.
        Self((dollars * Self::PARTS).round() as u64).min(Self::MAX)
    }

    /// Returns the cost in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / Self::PARTS
    }

    /// Returns the cost in billionths of a dollar.
    pub const fn billionths(self) -> u64 {
        self.0
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Adds two costs to one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0)).min(Self::MAX)
    }
}

impl From<f64> for Cost {
    fn from(dollars: f64) -> Self {
        Self::of_dollars(dollars)
    }
}

impl From<Cost> for f64 {
    fn from(cost: Cost) -> Self {
        cost.dollars()
    }
}

/// With as many digits as say something: `$0.0042`, `$0.217`, `$12.50`.
impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dollars() {
            dollars if dollars >= 1.0 => write!(f, "${dollars:.2}"),
            dollars if dollars >= 0.01 => write!(f, "${dollars:.3}"),
            dollars if dollars >= 0.0001 || self.is_zero() => write!(f, "${dollars:.4}"),
            _ => write!(f, "<$0.0001"),
        }
    }
}

impl schemars::JsonSchema for Cost {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "format": "double", "minimum": 0 })
    }
}

impl TokenUsage {
    /// Whether it took none.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds two usages to one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cost: self.cost.plus(other.cost),
        }
    }

    /// Returns the number of all tokens together.
    pub const fn tokens(&self) -> u64 {
        let Self { input, output, cache_read, cache_write, cost: _ } = self;
        input.saturating_add(*output).saturating_add(*cache_read).saturating_add(*cache_write)
    }
}

impl std::fmt::Display for TokenUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { input, output, cache_read, cache_write, cost } = self;
        write!(f, "{input} tokens in, {output} out")?;
        if *cache_read > 0 || *cache_write > 0 {
            write!(f, "; cache: {cache_read} read, {cache_write} written")?;
        }
        if cost.is_zero() { Ok(()) } else { write!(f, "; {cost}") }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn what_something_costs_is_a_number_of_dollars() {
        let usage: TokenUsage = serde_json::from_value(json!({ "input": 1, "cost": 0.00425 })).unwrap();
        assert_eq!(usage.to_string(), "1 tokens in, 0 out; $0.0043");
        assert_eq!(serde_json::to_value(usage).unwrap()["cost"], 0.00425);
        let free = serde_json::to_value(TokenUsage::default()).unwrap();
        assert_eq!(free.get("cost"), None);
        let shown = [0.0, 0.000_01, 0.217_4, 12.5, -1.0, f64::NAN, f64::INFINITY].map(Cost::of_dollars);
        assert_eq!(
            shown.map(|cost| cost.to_string()),
            ["$0.0000", "<$0.0001", "$0.217", "$12.50", "$0.0000", "$0.0000", "$1125899.91"]
        );
        assert_eq!(Cost::of_dollars(0.1).plus(Cost::of_dollars(0.2)), Cost::of_dollars(0.3));
    }

    proptest! {
        #[test]
        fn a_cost_reads_the_same_when_it_is_written_again(dollars in any::<f64>()) {
            let cost = Cost::of_dollars(dollars);
            prop_assert_eq!(Cost::of_dollars(cost.dollars()), cost);
        }
    }

    #[test]
    fn a_message_cannot_take_more_tokens_than_can_be_counted() {
        let most = TokenUsage { input: u64::MAX, output: 1, cache_write: 2, ..TokenUsage::default() };
        let twice = most.plus(most);
        assert_eq!(twice, TokenUsage { output: 2, cache_write: 4, ..most });
        assert_eq!(twice.to_string(), format!("{} tokens in, 2 out; cache: 0 read, 4 written", u64::MAX));
    }
}

//! What happens to a job. Source: draft-arcp-1.1, 8.2 and 8.4.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// An event of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened to it.
    pub kind: EventKind,
    /// When that has happened.
    pub ts: Timestamp,
}

/// A kind of event, with what the kind says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", content = "body", rename_all = "snake_case")]
pub enum EventKind {
    /// A message of the job.
    Log {
        /// How important it is.
        level: String,
        /// The text of the message.
        message: String,
    },
    /// What an agent thinks.
    Thought {
        /// The text of the thought.
        text: String,
    },
    /// A tool was called.
    ToolCall {
        /// The name of the tool.
        tool: String,
        /// What the tool is given.
        args: Value,
        /// The name of the call.
        call_id: String,
    },
    /// A tool has answered.
    ToolResult {
        /// The name of the call.
        call_id: String,
        /// What the tool gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why the tool failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
    },
    /// How far the job has come.
    Status {
        /// The phase that the job is in.
        phase: String,
        /// More about the phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Something that was measured.
    Metric {
        /// The name of the measurement.
        name: String,
        /// The number that was measured.
        value: Value,
        /// The unit of the number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
        /// What the number belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dimensions: Option<Value>,
    },
    /// The job made something that can be fetched.
    ArtifactRef {
        /// Where it can be fetched.
        uri: String,
        /// The media type of its content.
        content_type: String,
        /// How many bytes it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        byte_size: Option<u64>,
        /// The hash of its content, in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// The job asks for another job. Source: draft-arcp-02, 10.1.
    Delegate(Value),
    /// How much of the work is done.
    Progress {
        /// How much is done.
        current: serde_json::Number,
        /// How much there is to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<serde_json::Number>,
        /// The unit that is counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        units: Option<String>,
        /// What is being done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A part of a large result.
    ResultChunk(ResultChunk),
    /// A kind of somebody's own, whose name begins with `x-`.
    #[serde(untagged)]
    Vendor {
        /// The name of the kind.
        kind: String,
        /// What the event says.
        body: Value,
    },
}

/// A part of a large result. Source: draft-arcp-1.1, 8.4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResultChunk {
    /// The name of the result.
    pub result_id: String,
    /// The number of the part, from 0.
    pub chunk_seq: u64,
    /// The part in its encoding.
    pub data: String,
    /// How the part is encoded.
    pub encoding: Encoding,
    /// Whether there are more parts.
    pub more: bool,
}

/// How a part of a result is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The data is the text.
    Utf8,
    /// The data is base64 of the bytes.
    Base64,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.kind).map_err(serde::ser::Error::custom)?;
        let mut part = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
        json!({ "kind": part("kind"), "ts": self.ts, "body": part("body") }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            kind: Value,
            ts: Timestamp,
            #[serde(default)]
            body: Value,
        }
        let Read { kind, ts, body } = Read::deserialize(deserializer)?;
        let kind = EventKind::deserialize(json!({ "kind": kind, "body": body }));
        Ok(Self { kind: kind.map_err(serde::de::Error::custom)?, ts })
    }
}

impl schemars::JsonSchema for Event {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (kind, ts) = (generator.subschema_for::<EventKind>(), generator.subschema_for::<Timestamp>());
        schemars::json_schema!({
            "description": "An event of a job.",
            "type": "object",
            "required": ["kind", "ts", "body"],
            "properties": { "ts": ts },
            "allOf": [kind],
        })
    }
}

//! What each side can do, and what a session can do of it. Source: draft-arcp-01, 7, 10.3, 11.3 and 16.3.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What becomes of a job whose heartbeats are lost. Source: draft-arcp-01, 10.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeartbeatRecovery {
    /// The job fails at once.
    Fail,
    /// The job is blocked while it recovers.
    Block,
}

/// How long artifacts are kept. Source: draft-arcp-01, 16.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ArtifactRetention {
    /// The seconds that an artifact is kept if its sender does not say.
    pub default_seconds: u64,
    /// The seconds that an artifact is kept at most.
    pub max_seconds: u64,
}

/// What one side can do. Source: draft-arcp-01, 7.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capabilities {
    /// The extensions that it knows, by their namespaced names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// The encodings of binary streams that it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binary_encoding: Vec<String>,
    /// The seconds between two heartbeats of a job at most; 30 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval_seconds: Option<u64>,
    /// What becomes of a job whose heartbeats are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_recovery: Option<HeartbeatRecovery>,
    /// How long artifacts are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_retention: Option<ArtifactRetention>,
    /// The boolean capabilities, such as `streaming`, and fields that the draft does not have.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Capabilities {
    /// Whether a boolean capability is there; absent means false.
    pub fn has(&self, name: &str) -> bool {
        self.others.get(name) == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
mod tests {
    use super::Capabilities;

    #[test]
    fn absent_capabilities_are_false_and_unknown_fields_are_kept() {
        let text = r#"{"extensions":["com.acme.flow.v2"],"binary_encoding":["base64"],"heartbeat_interval_seconds":5,
            "heartbeat_recovery":"block","artifact_retention":{"default_seconds":1,"max_seconds":2},
            "streaming":true,"scheduled_jobs":false,"shade":"red"}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let read: Capabilities = serde_json::from_value(value.clone()).unwrap();
        assert!(read.has("streaming") && !read.has("scheduled_jobs") && !read.has("interrupt"));
        assert_eq!(serde_json::to_value(read).unwrap(), value);
    }
}

//! Fingerprints: of a command, to tell a repeated one from another under the same id; of the environment, to tell
//! what an event was valid in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// SHA-256 over a command in canonical JSON, in hexadecimal. What only matters for a retry is left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct CommandFingerprint(String);

impl CommandFingerprint {
    /// The fingerprint of what a command asks of a session (`target`), or of the server where there is none yet.
    pub fn of(target: &str, command: &impl Serialize) -> Self {
        let body = serde_json::to_value(command).unwrap_or(Value::Null);
        let text = canonical(&Value::Array(vec![Value::String(target.to_owned()), body]));
        let digest = Sha256::digest(text.as_bytes());
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the hexadecimal digits of the hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A fingerprint read back from the log.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }
}

/// JSON with sorted keys and no white space, whatever order the map type keeps.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// Writes JSON with sorted keys and no white space, whatever order the map type keeps.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write_canonical(member, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string())
        }
    }
}

/// What a session's code rests on besides itself, by name: assemblies that it refers to, scripts that it loaded.
pub type References = BTreeMap<String, Reference>;

/// One thing that code rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Its file, absolute, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// SHA-256 of its content, in hexadecimal; none where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// What code ran against. Source: seed 000, "The Dependency Fingerprint Model".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// The runtime under the language.
    pub runtime: String,
    /// What it rests on besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub references: References,
}

impl Environment {
    /// Names it, by the content of all that is in it. Where a file lies does not matter.
    pub fn fingerprint(&self) -> EnvironmentFingerprint {
        let contents: BTreeMap<_, _> =
            self.references.iter().map(|(name, reference)| (name, &reference.hash)).collect();
        let digest = Sha256::digest(canonical(&json!([self.runtime, contents])).as_bytes());
        EnvironmentFingerprint(
            digest.iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect(),
        )
    }
}

/// Every event of a job's end has one, so it is short.
const FINGERPRINT_BYTES: usize = 16;

/// Names an [`Environment`]: the beginning of a SHA-256, in hexadecimal.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct EnvironmentFingerprint(String);

impl EnvironmentFingerprint {
    /// Returns the text of the fingerprint.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_order_of_members_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b":{"d":null,"c":[1,2]},"a":1}"#).unwrap();
        assert_eq!(CommandFingerprint::of("s", &a), CommandFingerprint::of("s", &b));
        assert_ne!(CommandFingerprint::of("s", &a), CommandFingerprint::of("t", &a));
    }

    proptest! {
        #[test]
        fn different_code_has_a_different_fingerprint(a: String, b: String) {
            let same = CommandFingerprint::of("s", &a) == CommandFingerprint::of("s", &b);
            prop_assert_eq!(same, a == b);
        }
    }
}

//! Objects: bytes that are known by their hash.

use serde::{Deserialize, Serialize};

/// Names an object: BLAKE3 over its bytes, in hexadecimal.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct ObjectHash(String);

impl ObjectHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// A hash as it was stored.
    pub fn from_stored(digits: String) -> Self {
        Self(digits)
    }

    /// Returns the hexadecimal digits of the hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ObjectHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

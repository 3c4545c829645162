//! Objects.

use std::fmt;

/// Names an object: BLAKE3 over its bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectHash(String);

impl ObjectHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

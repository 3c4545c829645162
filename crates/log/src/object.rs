//! Objects.

use std::{fmt, io};

/// Names an object: BLAKE3 over its bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectHash(String);

impl ObjectHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// The hash of all that is read, which is held in memory a piece at a time.
    pub(crate) fn of_reader(bytes: impl io::Read) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(bytes)?;
        Ok(Self(hasher.finalize().to_hex().to_string()))
    }

    /// A hash as it was stored.
    pub(crate) fn from_stored(digits: String) -> Self {
        Self(digits)
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

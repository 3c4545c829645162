//! Bytes as text, as JSON has them. Source: RFC 4648, section 4.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};

/// Some writers do not clear the bits after the last byte, and every reader ignores them.
const ENGINE: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Bytes in base64, padded, without white space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Base64(String);

impl TryFrom<String> for Base64 {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or("it is no base64")
    }
}

impl From<Base64> for String {
    fn from(base64: Base64) -> Self {
        base64.0
    }
}

impl Base64 {
    /// Text that is base64; white space in it, as notebooks have it, goes.
    pub fn new(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        ENGINE.decode(&text).is_ok().then_some(Self(text))
    }

    /// Encodes bytes as Base64.
    pub fn of(bytes: &[u8]) -> Self {
        Self(ENGINE.encode(bytes))
    }

    /// The text, to be kept.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Returns the encoded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many bytes it stands for.
    pub fn len(&self) -> usize {
        self.0.len() / 4 * 3 - (self.0.len() - self.0.trim_end_matches('=').len())
    }

    /// Whether it stands for none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decodes the text into its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.beginning(self.len())
    }

    /// The first so many bytes.
    pub(crate) fn beginning(&self, count: usize) -> Vec<u8> {
        let digits = self.0.get(..count.div_ceil(3) * 4).unwrap_or(&self.0);
        // What is no base64 is never in one.
        let mut bytes = ENGINE.decode(digits).unwrap_or_default();
        bytes.truncate(count);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_everyone_does_and_read_again() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            let written = Base64::of(bytes.as_bytes());
            assert_eq!((written.as_str(), written.len()), (text, bytes.len()));
            assert_eq!(Base64::new(text).unwrap().bytes(), bytes.as_bytes());
        }
        assert_eq!(Base64::of(&[0xff, 0xfe, 0xfd, 0x00]).as_str(), "//79AA==");
        assert!(["Zg", "Zg=", "Z===", "Z-g="].iter().all(|text| Base64::new(text).is_none()));
        let open = Base64::new("Zm\n9v YmF=").unwrap();
        assert_eq!(
            (open.beginning(4), open.beginning(9), open.len()),
            (b"foob".to_vec(), b"fooba".to_vec(), 5)
        );
    }
}

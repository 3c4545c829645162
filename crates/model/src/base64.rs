//! Bytes as text, as JSON has them. Source: RFC 4648, section 4.

use serde::{Deserialize, Serialize};

const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
        let digits = text.trim_end_matches('=');
        let is_padded = text.len().is_multiple_of(4) && text.len() - digits.len() <= 2;
        (is_padded && digits.bytes().all(|byte| digit(byte).is_some())).then_some(Self(text))
    }

    /// Encodes bytes as Base64.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for chunk in bytes.chunks(3) {
            let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4_usize {
                let sign = SIGNS[(bits >> (18 - 6 * place)) as usize & 63];
                text.push(if place > chunk.len() { '=' } else { char::from(sign) });
            }
        }
        Self(text)
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
        let digits: Vec<u8> = self.0.bytes().take(count.div_ceil(3) * 4).map_while(digit).collect();
        let bytes = digits.chunks(4).flat_map(|four| {
            let whole = four.iter().fold(0_u32, |whole, digit| whole << 6 | u32::from(*digit))
                << (6 * (4 - four.len()));
            let [_, bytes @ ..] = whole.to_be_bytes();
            bytes.into_iter().take(four.len() * 6 / 8)
        });
        bytes.take(count).collect()
    }
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
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
    }
}

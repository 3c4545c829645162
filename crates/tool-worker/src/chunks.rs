//! Results that come in parts. Source: draft-arcp-1.1, 8.4.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_arcp_protocol::b::{Encoding, ResultChunk};
use serde_json::{Value, json};

/// The parts of a result that have come so far.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    bytes: Vec<u8>,
    next: u64,
    /// The name of the result, once a part of it has come.
    result: Option<String>,
    /// Whether the last part has come.
    is_whole: bool,
    /// What was wrong with the first that could not be taken.
    wrong: Option<String>,
}

impl Chunks {
    /// Takes a part in; `limit` is how many bytes all of them may have.
    pub(crate) fn take(&mut self, chunk: &ResultChunk, limit: usize) {
        if self.wrong.is_some() {
            return;
        }
        self.wrong = self.add(chunk, limit).err();
    }

    /// Takes note that a part has come that cannot be read.
    pub(crate) fn spoil(&mut self) {
        self.wrong.get_or_insert_with(|| "a part of the result cannot be read".to_owned());
    }

    fn add(&mut self, chunk: &ResultChunk, limit: usize) -> Result<(), String> {
        if chunk.chunk_seq != self.next {
            return Err(format!("part {} of the result came where {} was due", chunk.chunk_seq, self.next));
        }
        let result = self.result.get_or_insert_with(|| chunk.result_id.clone());
        if *result != chunk.result_id || self.is_whole {
            return Err(format!("a part came of {}, which is not the result", chunk.result_id));
        }
        self.next += 1;
        self.is_whole = !chunk.more;
        let decoded;
        let bytes = match chunk.encoding {
            Encoding::Utf8 => chunk.data.as_bytes(),
            Encoding::Base64 => {
                decoded = STANDARD.decode(&chunk.data).map_err(|error| error.to_string())?;
                &decoded
            }
        };
        if self.bytes.len() + bytes.len() > limit {
            return Err(too_large(limit));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The whole: a text, or bytes in base64. The end of the job may say what the result is called, and how many bytes it has.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn whole(self, result: Option<&str>, size: Option<u64>) -> Result<Value, String> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let is_it = result.is_none_or(|result| self.result.as_deref() == Some(result));
        let has_all = size.is_none_or(|size| self.bytes.len() as u64 == size);
        if !(self.is_whole && is_it && has_all) {
            return Err("parts of the result are missing".to_owned());
        }
        Ok(match String::from_utf8(self.bytes) {
            Ok(text) => Value::String(text),
            Err(bytes) => json!({ "base64": STANDARD.encode(bytes.into_bytes()) }),
        })
    }
}

/// Why a result is not taken that has more bytes than this.
pub(crate) fn too_large(limit: usize) -> String {
    format!(
        "the result has more than {limit} bytes (`value-bytes` in `[limits]`); have the tool write it to a file"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(chunk_seq: u64, data: &str, encoding: Encoding) -> ResultChunk {
        ResultChunk { result_id: "r".to_owned(), chunk_seq, data: data.to_owned(), encoding, more: true }
    }

    fn last(chunk_seq: u64) -> ResultChunk {
        ResultChunk { more: false, ..chunk(chunk_seq, "", Encoding::Utf8) }
    }

    #[test]
    fn parts_are_put_together_whatever_their_encoding() {
        let mut chunks = Chunks::default();
        chunks.take(&chunk(0, "ab", Encoding::Utf8), 10);
        chunks.take(&chunk(1, "w6k=", Encoding::Base64), 10);
        chunks.take(&last(2), 10);
        assert_eq!(chunks.whole(Some("r"), Some(4)), Ok(json!("abé")));
        let mut bytes = Chunks::default();
        bytes.take(&chunk(0, "/w==", Encoding::Base64), 10);
        bytes.take(&last(1), 10);
        assert_eq!(bytes.whole(None, None), Ok(json!({ "base64": "/w==" })));
    }

    #[test]
    fn a_part_that_is_missing_wrong_or_too_much_spoils_the_whole() {
        let spoilt = |parts: &[ResultChunk]| {
            let mut chunks = Chunks::default();
            parts.iter().for_each(|part| chunks.take(part, 3));
            chunks.whole(Some("r"), None).unwrap_err()
        };
        let utf8 = |number, data| chunk(number, data, Encoding::Utf8);
        assert_eq!(
            spoilt(&[utf8(0, "a"), utf8(2, "b"), utf8(1, "c")]),
            "part 2 of the result came where 1 was due"
        );
        assert_eq!(spoilt(&[utf8(0, "ab"), utf8(1, "cd")]), too_large(3));
        assert!(!spoilt(&[chunk(0, "?", Encoding::Base64)]).is_empty());
        let other = ResultChunk { result_id: "s".to_owned(), ..last(1) };
        assert_eq!(spoilt(&[utf8(0, "a"), other]), "a part came of s, which is not the result");
        let missing = "parts of the result are missing";
        assert_eq!(spoilt(&[]), missing);
        assert_eq!(spoilt(&[utf8(0, "a")]), missing);
        let mut short = Chunks::default();
        short.take(&last(0), 3);
        assert_eq!(short.whole(None, Some(1)).unwrap_err(), missing);
        let mut unread = Chunks::default();
        unread.spoil();
        unread.take(&last(0), 3);
        assert_eq!(unread.whole(None, None).unwrap_err(), "a part of the result cannot be read");
    }
}

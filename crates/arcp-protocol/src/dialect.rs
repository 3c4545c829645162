//! Which dialect a connection speaks: its first frame says it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A dialect of ARCP. The two are different protocols under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The protocol 1.0 of draft-arcp-01.
    A,
    /// Protocol 1.1, draft-arcp-1.1, with the details of draft-arcp-02.
    B,
}

/// Why a first frame is of no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// The frame is not JSON, or not an object of JSON with a type.
    #[error("the first frame is no envelope: {0}")]
    NoEnvelope(String),
    /// The frame opens no session.
    #[error(
        "the first message opens a session: `session.open` in dialect A, `session.hello` or `session.resume` in dialect B, not `{0}`"
    )]
    OpensNothing(String),
}

impl Dialect {
    /// The dialect of a connection whose first frame is this.
    ///
    /// # Errors
    /// Where the frame opens a session of neither.
    pub fn of_first_frame(frame: &str) -> Result<Self, DialectError> {
        #[derive(Deserialize)]
        struct Header {
            r#type: Value,
        }
        let header: Header =
            serde_json::from_str(frame).map_err(|error| DialectError::NoEnvelope(error.to_string()))?;
        match header.r#type.as_str() {
            Some("session.open") => Ok(Self::A),
            Some("session.hello" | "session.resume") => Ok(Self::B),
            Some(other) => Err(DialectError::OpensNothing(other.to_owned())),
            None => Err(DialectError::NoEnvelope("its type is no text".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_says_the_dialect() {
        let of = |text: &str| Dialect::of_first_frame(&format!(r#"{{"arcp":"1.0","type":"{text}"}}"#));
        assert_eq!(of("session.open"), Ok(Dialect::A));
        assert_eq!(of("session.hello"), Ok(Dialect::B));
        assert_eq!(of("session.resume"), Ok(Dialect::B));
        assert_eq!(of("ping"), Err(DialectError::OpensNothing("ping".to_owned())));
        for frame in ["", "[]", "{}", r#"{"type":1}"#] {
            assert!(matches!(Dialect::of_first_frame(frame), Err(DialectError::NoEnvelope(_))), "{frame}");
        }
    }
}

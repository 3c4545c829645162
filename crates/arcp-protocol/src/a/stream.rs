//! Streams. Source: draft-arcp-01, 11.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ErrorCode;
use super::payload::payloads;

/// What a stream carries. Source: draft-arcp-01, 11.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// The stream carries plain text.
    Text,
    /// The stream carries opaque bytes.
    Binary,
    /// The stream carries lines of a log.
    Log,
    /// The stream carries samples of telemetry.
    Metric,
    /// The stream carries what a model thinks.
    Thought,
    /// The stream carries structured events. An unknown kind is read as this.
    #[serde(other)]
    Event,
}

payloads! {
    /// A stream is opened. Source: draft-arcp-01, 11.1.
    StreamOpen {
        /// What the stream carries.
        kind: StreamKind,
    } optional {
        /// The media type of its content.
        content_type: String,
        /// The encoding of its content.
        encoding: String,
    }

    /// A piece of a stream: data, or a thought. Source: draft-arcp-01, 11.3 and 11.4.
    StreamChunk {} optional {
        /// The number of the piece, from 0.
        sequence: u64,
        /// The piece itself; bytes are base64 where no frame of bytes follows.
        data: Value,
        /// The media type of the piece.
        content_type: String,
        /// How many bytes the piece has.
        size: u64,
        /// The hash of the piece, in hexadecimal digits.
        sha256: String,
        /// Who thinks, in a stream of thoughts.
        role: String,
        /// What is thought, in a stream of thoughts.
        content: String,
        /// Whether the thought is withheld.
        redacted: bool,
    }

    /// A stream has come to its end. Source: draft-arcp-01, 6.2.
    StreamClose {} optional {
        /// Why the stream is closed.
        reason: String,
        /// How many pieces it had.
        chunks: u64,
    }

    /// A stream was broken off. Source: draft-arcp-01, 10.4.
    StreamError {
        /// Why the stream was broken off.
        code: ErrorCode,
        /// The same for people.
        message: String,
    } optional {}
}

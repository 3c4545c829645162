//! Artifacts: what is referred to instead of being sent. Source: draft-arcp-01, 16.

use jiff::Timestamp;

use super::payload::payloads;

payloads! {
    /// Where an artifact can be fetched. Source: draft-arcp-01, 16.1.
    ArtifactRef {
        /// The name of the artifact.
        artifact_id: String,
        /// The address of the artifact.
        uri: String,
        /// The media type of its content.
        media_type: String,
        /// How many bytes it has.
        size: u64,
        /// The hash of its content, in hexadecimal digits.
        sha256: String,
    } optional {
        /// When it may be gone.
        expires_at: Timestamp,
    }

    /// A client stores an artifact. Source: draft-arcp-01, 16.2.
    ArtifactPut {
        /// The media type of its content.
        media_type: String,
    } optional {
        /// The content in base64; frames of bytes follow where it is absent.
        data: String,
        /// How many bytes its content has.
        size: u64,
        /// The hash of its content, in hexadecimal digits.
        sha256: String,
        /// For how long it is kept, in seconds.
        retention_seconds: u64,
    }

    /// A client wants an artifact. Source: draft-arcp-01, 16.2.
    ArtifactFetch {
        /// The name of the artifact.
        artifact_id: String,
    } optional {}

    /// An artifact was stored, or is here. Source: draft-arcp-01, 16.1 and 16.2.
    ArtifactSent {
        /// The name of the artifact.
        artifact_id: String,
        /// The address of the artifact.
        uri: String,
        /// The media type of its content.
        media_type: String,
        /// How many bytes it has.
        size: u64,
        /// The hash of its content, in hexadecimal digits.
        sha256: String,
    } optional {
        /// When it may be gone.
        expires_at: Timestamp,
        /// The content in base64, where it was asked for.
        data: String,
    }

    /// A client needs an artifact no more. Source: draft-arcp-01, 16.2.
    ArtifactRelease {
        /// The name of the artifact.
        artifact_id: String,
    } optional {}
}

//! Artifacts: content that clients store for each other, by name, for a time. Source: seed 002; draft-arcp-01, 16.

use async_trait::async_trait;
use mainstay_model::{Error, ObjectHash, Principal, Timestamp};

/// Stores artifacts. What is in one is an object.
#[async_trait]
pub trait Artifacts: Send + Sync + 'static {
    /// Stores an artifact with its bytes, where the artifacts of its principal then have at most so many bytes together. One of this id that is there already
    /// stays as it is.
    ///
    /// # Errors
    /// [`Error::ArtifactsTooLarge`], and nothing is stored; [`Error::StoreFailed`].
    async fn put_artifact(
        &self,
        artifact: NewArtifact,
        bytes: Vec<u8>,
        limit: u64,
    ) -> Result<Artifact, Error>;

    /// The artifact of this id, also one that has expired and was not removed yet.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn artifact(&self, id: &str) -> Result<Option<Artifact>, Error>;

    /// Removes an artifact; says whether it was there. Its content goes with the last that has it.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn release_artifact(&self, id: &str) -> Result<bool, Error>;

    /// Removes the artifacts that expired before this moment; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_expired_artifacts(&self, before: Timestamp) -> Result<u64, Error>;
}

/// An artifact that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    /// The name of the artifact, which no other has.
    pub id: String,
    /// Whose artifact it is.
    pub principal: Principal,
    /// The media type of its content.
    pub media_type: String,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it may be removed.
    pub expires_at: Timestamp,
}

/// An artifact that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// What was said of the artifact as it was stored.
    pub stored: NewArtifact,
    /// The object that is its content.
    pub object: ObjectHash,
    /// How many bytes its content has.
    pub size: u64,
}

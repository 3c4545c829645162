//! Artifacts of a client's principal: content that it stores for others to fetch, for a time.

use mainstay_log::{Artifact, NewArtifact};
use mainstay_model::{Error, Timestamp};
use sha2::{Digest, Sha256};

use super::Client;
use crate::Engine;

/// Content that is to be stored as an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactContent {
    id: String,
    media_type: String,
    bytes: Vec<u8>,
    sha256: String,
    expires_at: Timestamp,
}

impl ArtifactContent {
    /// Content with the name that its artifact is to have, which no other has, and the moment from which that may be removed.
    pub fn new(id: String, media_type: String, bytes: Vec<u8>, expires_at: Timestamp) -> Self {
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { id, media_type, bytes, sha256, expires_at }
    }

    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

impl Client {
    /// Stores an artifact of this client's principal, whose artifacts may have so many bytes together.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::ArtifactsTooLarge`], [`Error::StoreFailed`].
    pub async fn put_artifact(
        &self,
        content: ArtifactContent,
        limit: u64,
        now: Timestamp,
    ) -> Result<Artifact, Error> {
        self.must_write("store an artifact")?;
        let ArtifactContent { id, media_type, bytes, sha256, expires_at } = content;
        let artifact = NewArtifact {
            id,
            principal: self.access.principal.clone(),
            media_type,
            sha256,
            created_at: now,
            expires_at,
        };
        self.engine.shared.log.put_artifact(artifact, bytes, limit).await
    }

    /// The artifact of this id; none where it has expired or is another principal's.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn artifact(&self, id: &str, now: Timestamp) -> Result<Option<Artifact>, Error> {
        let found = self.engine.shared.log.artifact(id).await?;
        Ok(found.filter(|artifact| {
            artifact.stored.principal == self.access.principal && artifact.stored.expires_at > now
        }))
    }

    /// The content of an artifact, verified against its hash.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`], [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    pub async fn artifact_content(&self, artifact: &Artifact) -> Result<Vec<u8>, Error> {
        self.engine.shared.log.object(&artifact.object).await
    }

    /// Removes an artifact of this client's principal; says whether it was there.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn release_artifact(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        match self.artifact(id, now).await? {
            Some(_) => self.engine.shared.log.release_artifact(id).await,
            None => Ok(false),
        }
    }
}

impl Engine {
    /// Removes the artifacts that have expired at this moment; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn remove_expired_artifacts(&self, now: Timestamp) -> Result<u64, Error> {
        self.shared.log.remove_expired_artifacts(now).await
    }
}

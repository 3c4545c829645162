//! Artifacts: what clients of dialect A store for each other. Source: draft-arcp-01, 16.

use jiff::SignedDuration;
use mainstay_arcp_protocol::a::artifact::{ArtifactPut, ArtifactSent};
use mainstay_arcp_protocol::a::control::{Ack, Nack};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_engine::ArtifactContent;
use mainstay_log::Artifact;
use mainstay_model::{Base64, Error, Timestamp};

use super::{A, errors};
use crate::new_id::new_ulid;
use crate::session::Session;

/// How long the media type of an artifact may be, in characters.
const MEDIA_TYPE_CHARS: usize = 200;

impl Session<A> {
    /// Stores an artifact of the client.
    pub(super) async fn put_artifact(&mut self, id: &str, put: ArtifactPut) -> Result<(), Error> {
        let content = match self.content(put) {
            Ok(content) => content,
            Err(nack) => return self.refused_artifact(id, nack).await,
        };
        let limit = self.settings.artifact_bytes;
        match self.client.put_artifact(content, limit, Timestamp::now()).await {
            Ok(stored) => {
                self.answer(id, Message::ArtifactRef(self.reference(&stored, None))).await;
                Ok(())
            }
            Err(error @ Error::ArtifactsTooLarge { .. }) => {
                self.refused_artifact(id, errors::of_error(&error)).await
            }
            Err(error) => Err(error),
        }
    }

    /// What is to be stored, where it is what its client says it is.
    fn content(&self, put: ArtifactPut) -> Result<ArtifactContent, Nack> {
        let invalid = |reason: &str| errors::nack(ErrorCode::InvalidArgument, reason);
        let ArtifactPut { media_type, data, size, sha256, retention_seconds } = put;
        let Some(data) = data else {
            return Err(errors::nack(ErrorCode::Unimplemented, "the content must be in `data`, in base64"));
        };
        if media_type.is_empty() || media_type.chars().count() > MEDIA_TYPE_CHARS {
            return Err(invalid("`media_type` must have 1 to 200 characters"));
        }
        let bytes = Base64::new(&data).ok_or_else(|| invalid("`data` is no base64"))?.bytes();
        if size.is_some_and(|size| size != bytes.len() as u64) {
            return Err(invalid("the content has not as many bytes as `size` says"));
        }
        let most = self.settings.artifact_most_sec();
        let seconds = retention_seconds.unwrap_or(self.settings.artifact_sec()).clamp(1, most);
        let kept = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let expires_at = Timestamp::now().checked_add(kept).unwrap_or(Timestamp::MAX);
        let content = ArtifactContent::new(format!("art_{}", new_ulid()), media_type, bytes, expires_at);
        let said = sha256.as_ref().map(|hash| hash.strip_prefix("sha256:").unwrap_or(hash));
        match said.is_none_or(|said| said.eq_ignore_ascii_case(content.sha256())) {
            true => Ok(content),
            false => Err(errors::nack(ErrorCode::DataLoss, "the content has another sha256 than was said")),
        }
    }

    /// Sends an artifact with its content, which is verified.
    pub(super) async fn fetch_artifact(&mut self, id: &str, artifact: &str) -> Result<(), Error> {
        let Some(stored) = self.client.artifact(artifact, Timestamp::now()).await? else {
            return self.no_artifact(id, artifact).await;
        };
        match self.client.artifact_content(&stored).await {
            Ok(bytes) => {
                let data = Base64::of(&bytes).into_string();
                self.answer(id, Message::ArtifactRef(self.reference(&stored, Some(data)))).await;
                Ok(())
            }
            Err(error @ (Error::ObjectNotFound { .. } | Error::ObjectDamaged { .. })) => {
                let nack = errors::nack(ErrorCode::DataLoss, error.to_string());
                self.refused_artifact(id, nack).await
            }
            Err(error) => Err(error),
        }
    }

    /// Gives an artifact up.
    pub(super) async fn release_artifact(&mut self, id: &str, artifact: &str) -> Result<(), Error> {
        match self.client.release_artifact(artifact, Timestamp::now()).await? {
            true => self.answer(id, Message::Ack(Ack { details: None })).await,
            false => return self.no_artifact(id, artifact).await,
        }
        Ok(())
    }

    async fn no_artifact(&self, id: &str, artifact: &str) -> Result<(), Error> {
        let reason = format!("there is no artifact {artifact}, or it is kept no more");
        self.refused_artifact(id, errors::nack(ErrorCode::NotFound, reason)).await
    }

    async fn refused_artifact(&self, id: &str, nack: Nack) -> Result<(), Error> {
        self.nack(id, nack).await;
        Ok(())
    }

    fn reference(&self, artifact: &Artifact, data: Option<String>) -> ArtifactSent {
        let stored = &artifact.stored;
        ArtifactSent {
            artifact_id: stored.id.clone(),
            uri: format!("arcp://session/{}/artifact/{}", self.stored.id, stored.id),
            media_type: stored.media_type.clone(),
            size: artifact.size,
            sha256: stored.sha256.clone(),
            expires_at: Some(stored.expires_at),
            data,
        }
    }
}

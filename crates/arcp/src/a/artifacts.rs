//! Artifacts: what clients of dialect A store for each other. Source: draft-arcp-01, 16.

use jiff::SignedDuration;
use mainstay_arcp_protocol::a::artifact::{ArtifactPut, ArtifactRef, ArtifactSent};
use mainstay_arcp_protocol::a::control::{Ack, Nack};
use mainstay_arcp_protocol::a::sidecar::{Owner, SidecarFrame};
use mainstay_arcp_protocol::a::{ErrorCode, Message};
use mainstay_engine::ArtifactContent;
use mainstay_log::Artifact;
use mainstay_model::{Base64, CommandId, Error, Timestamp};

use super::results::ResultArtifacts;
use super::translator::encoded;
use super::uploads::{UploadError, Uploaded};
use super::{A, errors, results};
use crate::frames::Outgoing;
use crate::new_id::new_ulid;
use crate::session::Session;

/// How long the media type of an artifact may be, in characters.
const MEDIA_TYPE_CHARS: usize = 200;
/// How long the SHA-256 of an artifact may be, in hexadecimal digits.
const SHA256_CHARS: usize = 64;

/// How many bytes of an artifact a frame has at most.
const FRAME: usize = 256 * 1024;

impl Session<A> {
    /// Does what a client asks about artifacts.
    pub(super) async fn artifact_request(&mut self, id: &str, message: Message) -> Result<(), Error> {
        match message {
            Message::ArtifactPut(put) => self.put_artifact(id, put).await,
            Message::ArtifactFetch(fetch) => self.fetch_artifact(id, &fetch.artifact_id).await,
            Message::ArtifactRelease(release) => self.release_artifact(id, &release.artifact_id).await,
            _ => Ok(()),
        }
    }

    /// Stores an artifact of the client, or waits for its content.
    async fn put_artifact(&mut self, id: &str, mut put: ArtifactPut) -> Result<(), Error> {
        // What waits for its content is kept, so it may not be large itself.
        if let Err(reason) = check(&put) {
            let nack = errors::nack(ErrorCode::InvalidArgument, reason, "Put it again with that corrected.");
            return self.refused_artifact(id, nack).await;
        }
        let nack = match put.data.take().map(|data| Base64::new(&data)) {
            Some(Some(data)) => return self.store_artifact(id, put, data.bytes()).await,
            Some(None) => {
                let step = "Encode the content as base64 with the alphabet of RFC 4648, 4 and with padding.";
                errors::nack(ErrorCode::InvalidArgument, "`data` is no base64", step)
            }
            None if !self.dialect.terms.sidecar => {
                let reason =
                    "the content must be in `data`, in base64: this connection has no sidecar frames";
                let step = "Put it again with `data`, or open a session with `binary_encoding` `sidecar`.";
                errors::nack(ErrorCode::Unimplemented, reason, step)
            }
            None => match self.dialect.uploads.announce(id, put) {
                None => return Ok(()),
                Some(given_up) => return self.refuse_upload(&given_up).await,
            },
        };
        self.refused_artifact(id, nack).await
    }

    /// Takes a frame of bytes: content of an artifact that was announced. Source: draft-arcp-01, 16.2.
    pub(super) async fn take_bytes(&mut self, frame: &[u8]) -> Result<(), Error> {
        let limit = self.daemon.engine.limits().message_bytes;
        let frame = match SidecarFrame::decode(frame) {
            Ok(frame) => frame,
            Err(error) => {
                let step = "Send frames of bytes with the header that the protocol says.";
                let nack = errors::nack(ErrorCode::InvalidArgument, error.to_string(), step);
                self.send_frame(encoded(&self.envelope(None, Message::Nack(nack)))).await;
                return Ok(());
            }
        };
        match self.dialect.uploads.take(frame, limit) {
            Ok(Some(Uploaded { message, put, bytes })) => self.store_artifact(&message, put, bytes).await,
            Ok(None) => Ok(()),
            Err(error) => self.refuse_upload(&error).await,
        }
    }

    /// Refuses an artifact, or a frame of one, as an answer to the message that announced it, where one did.
    async fn refuse_upload(&self, error: &UploadError) -> Result<(), Error> {
        let nack = errors::nack(code_of(error), error.to_string(), error.next_step());
        self.send_frame(encoded(&self.envelope(error.message(), Message::Nack(nack)))).await;
        Ok(())
    }

    async fn store_artifact(&mut self, id: &str, put: ArtifactPut, bytes: Vec<u8>) -> Result<(), Error> {
        let content = match self.content(put, bytes) {
            Ok(content) => content,
            Err(nack) => return self.refused_artifact(id, nack).await,
        };
        let limit = self.settings.artifact_bytes;
        match self.client.put_artifact(content, limit, Timestamp::now()).await {
            Ok(stored) => {
                self.answer(id, Message::ArtifactRef(self.reference(&stored))).await;
                Ok(())
            }
            Err(error @ Error::ArtifactsTooLarge { .. }) => {
                self.refused_artifact(id, errors::of_error(&error)).await
            }
            Err(error) => Err(error),
        }
    }

    /// What is to be stored, where it is what its client says it is.
    fn content(&self, put: ArtifactPut, bytes: Vec<u8>) -> Result<ArtifactContent, Nack> {
        let ArtifactPut { media_type, data: _, size, sha256, retention_seconds } = put;
        if size.is_some_and(|size| size != bytes.len() as u64) {
            let reason = "the content has not as many bytes as `size` says";
            let step = "Put it again with the `size` of the content, or without.";
            return Err(errors::nack(ErrorCode::InvalidArgument, reason, step));
        }
        let most = self.settings.artifact_most_sec();
        let seconds = retention_seconds.unwrap_or(self.settings.artifact_sec()).clamp(1, most);
        let kept = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let expires_at = Timestamp::now().checked_add(kept).unwrap_or(Timestamp::MAX);
        let content = ArtifactContent::new(format!("art_{}", new_ulid()), media_type, bytes, expires_at);
        let said = sha256.as_deref().map(digits_of);
        match said.is_none_or(|said| said.eq_ignore_ascii_case(content.sha256())) {
            true => Ok(content),
            false => {
                let reason = "the content has another sha256 than was said";
                let step = "Put it again, with the sha256 of the bytes that are sent.";
                Err(errors::nack(ErrorCode::DataLoss, reason, step))
            }
        }
    }

    /// Sends an artifact with its content, which is verified.
    async fn fetch_artifact(&mut self, id: &str, artifact: &str) -> Result<(), Error> {
        if let Some(job) = results::job_of(artifact) {
            return match self.result_content(&job).await? {
                Some((sent, content)) => {
                    self.send_content(id, sent, &content).await;
                    Ok(())
                }
                None => self.no_artifact(id, artifact).await,
            };
        }
        let Some(stored) = self.client.artifact(artifact, Timestamp::now()).await? else {
            return self.no_artifact(id, artifact).await;
        };
        match self.client.artifact_content(&stored).await {
            Ok(bytes) => {
                self.send_content(id, self.reference(&stored), &bytes).await;
                Ok(())
            }
            Err(error @ (Error::ObjectNotFound { .. } | Error::ObjectDamaged { .. })) => {
                let nack = errors::of_error_as(ErrorCode::DataLoss, &error);
                self.refused_artifact(id, nack).await
            }
            Err(error) => Err(error),
        }
    }

    /// Answers with an artifact and its content, which follows in frames of bytes where the client takes those.
    async fn send_content(&self, id: &str, sent: ArtifactSent, content: &[u8]) {
        if !self.dialect.terms.sidecar {
            let data = Some(Base64::of(content).into_string());
            self.answer(id, Message::ArtifactRef(ArtifactSent { data, ..sent })).await;
            return;
        }
        let envelope = self.envelope(Some(id), Message::ArtifactRef(sent));
        let bytes = frames_of(&envelope.id, content);
        self.send_frame(Outgoing { text: encoded(&envelope), bytes }).await;
    }

    /// Gives an artifact up.
    async fn release_artifact(&mut self, id: &str, artifact: &str) -> Result<(), Error> {
        // A result stays in the log with its job.
        let is_result = match results::job_of(artifact) {
            Some(job) => self.result_content(&job).await?.is_some(),
            None => false,
        };
        match is_result || self.client.release_artifact(artifact, Timestamp::now()).await? {
            true => self.answer(id, Message::Ack(Ack { details: None })).await,
            false => return self.no_artifact(id, artifact).await,
        }
        Ok(())
    }

    async fn no_artifact(&self, id: &str, artifact: &str) -> Result<(), Error> {
        let reason = format!("there is no artifact {artifact}, or it is kept no more");
        let step = "Name an artifact of this principal before its `expires_at`, or put it again.";
        self.refused_artifact(id, errors::nack(ErrorCode::NotFound, reason, step)).await
    }

    async fn refused_artifact(&self, id: &str, nack: Nack) -> Result<(), Error> {
        self.nack(id, nack).await;
        Ok(())
    }

    /// The result of a job as an artifact with its content; none where there is none, or none any more.
    pub(super) async fn result_content(
        &self,
        job: &CommandId,
    ) -> Result<Option<(ArtifactSent, Vec<u8>)>, Error> {
        let Some((home, true)) = self.place_of(job).await? else { return Ok(None) };
        let Some((result, ended_at)) = self.result_of(job, home).await? else { return Ok(None) };
        let content = result.to_string().into_bytes();
        let results = ResultArtifacts::new(self.stored.chunk_bytes, &self.settings);
        let reference = results.reference_to(&self.stored.id, job, &content, ended_at);
        let ArtifactRef { artifact_id, uri, media_type, size, sha256, expires_at } = reference;
        let sent = ArtifactSent { artifact_id, uri, media_type, size, sha256, expires_at, data: None };
        let is_kept = expires_at.is_none_or(|expires_at| expires_at > Timestamp::now());
        Ok(is_kept.then_some((sent, content)))
    }

    fn reference(&self, artifact: &Artifact) -> ArtifactSent {
        let stored = &artifact.stored;
        ArtifactSent {
            artifact_id: stored.id.clone(),
            uri: format!("arcp://session/{}/artifact/{}", self.stored.id, stored.id),
            media_type: stored.media_type.clone(),
            size: artifact.size,
            sha256: stored.sha256.clone(),
            expires_at: Some(stored.expires_at),
            data: None,
        }
    }
}

/// The digits of a SHA-256, which may have the name of the algorithm before them.
fn digits_of(sha256: &str) -> &str {
    sha256.strip_prefix("sha256:").unwrap_or(sha256)
}

/// What is wrong with an artifact, whatever its content is.
fn check(put: &ArtifactPut) -> Result<(), &'static str> {
    if put.media_type.is_empty() || put.media_type.chars().count() > MEDIA_TYPE_CHARS {
        return Err("`media_type` must have 1 to 200 characters");
    }
    match put.sha256.as_deref().map(digits_of).is_some_and(|digits| digits.chars().count() > SHA256_CHARS) {
        true => Err("`sha256` must have 64 hexadecimal digits"),
        false => Ok(()),
    }
}

/// The content of an artifact in frames of bytes that belong to the message with this id.
fn frames_of(message: &str, content: &[u8]) -> Vec<Vec<u8>> {
    let last = content.len().div_ceil(FRAME).saturating_sub(1);
    let pieces = content.chunks(FRAME).map(<[u8]>::to_vec).chain(content.is_empty().then(Vec::new));
    let frame = |(at, bytes): (usize, Vec<u8>)| SidecarFrame {
        owner: Owner::Message(message.to_owned()),
        sequence: at as u64,
        is_last: at == last,
        bytes,
    };
    pieces.enumerate().map(frame).map(|frame| frame.encode()).collect()
}

fn code_of(error: &UploadError) -> ErrorCode {
    match error {
        UploadError::TooMany { .. } | UploadError::TooLarge { .. } => ErrorCode::ResourceExhausted,
        UploadError::Unannounced(_) => ErrorCode::FailedPrecondition,
        UploadError::OutOfOrder { .. } => ErrorCode::InvalidArgument,
    }
}

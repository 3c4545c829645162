//! Large results as artifacts. Source: draft-arcp-01, 16.1.
//!
//! The log has the result of each job, so nothing more is stored: the artifact is read from the log when it is fetched. Its name says which job it is of.

use jiff::SignedDuration;
use mainstay_arcp_protocol::a::artifact::ArtifactRef;
use mainstay_model::{CommandId, Timestamp};
use serde_json::Value;

use super::binary::hash;
use crate::settings::Settings;

/// How the names of artifacts begin that are results.
const RESULT: &str = "art_result_";

/// The media type of results.
const MEDIA_TYPE: &str = "application/json";

/// Which results are artifacts, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultArtifacts {
    /// The largest result that is told itself, in bytes.
    pub(super) inline_bytes: usize,
    /// How long a result can be fetched.
    pub(super) kept: SignedDuration,
}

impl ResultArtifacts {
    /// Of sessions that take results of so many bytes themselves.
    pub(super) fn new(inline_bytes: usize, settings: &Settings) -> Self {
        let seconds = i64::try_from(settings.artifact_sec()).unwrap_or(i64::MAX);
        Self { inline_bytes, kept: SignedDuration::from_secs(seconds) }
    }

    /// The reference to a result that is larger; none of one that is told itself.
    pub(super) fn reference(
        self,
        session: &str,
        job: &CommandId,
        result: &Value,
        ended_at: Timestamp,
    ) -> Option<ArtifactRef> {
        let content = result.to_string();
        (content.len() > self.inline_bytes && can_be_named(job))
            .then(|| self.reference_to(session, job, content.as_bytes(), ended_at))
    }

    /// The reference to a result with this content.
    pub(super) fn reference_to(
        self,
        session: &str,
        job: &CommandId,
        content: &[u8],
        ended_at: Timestamp,
    ) -> ArtifactRef {
        let artifact_id = format!("{RESULT}{job}");
        ArtifactRef {
            uri: format!("arcp://session/{session}/artifact/{artifact_id}"),
            artifact_id,
            media_type: MEDIA_TYPE.to_owned(),
            size: content.len() as u64,
            sha256: hash(content),
            expires_at: Some(ended_at.checked_add(self.kept).unwrap_or(Timestamp::MAX)),
        }
    }
}

/// Whether the id of a job can stand in an address as it is.
fn can_be_named(job: &CommandId) -> bool {
    job.as_str().chars().all(|c| c.is_ascii_alphanumeric() || "-._~:".contains(c))
}

/// The job whose result an artifact of this name is.
pub(super) fn job_of(artifact: &str) -> Option<CommandId> {
    CommandId::new(artifact.strip_prefix(RESULT)?.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_named_after_its_job_where_it_is_large() {
        let artifacts = ResultArtifacts { inline_bytes: 10, kept: SignedDuration::from_secs(60) };
        let job = CommandId::new("job_1").unwrap();
        let refer = |value: Value| artifacts.reference("sess_1", &job, &value, Timestamp::UNIX_EPOCH);
        assert_eq!(refer(json!("12345678")), None);
        let reference = refer(json!("123456789")).unwrap();
        assert_eq!(reference.uri, "arcp://session/sess_1/artifact/art_result_job_1");
        assert_eq!(job_of(&reference.artifact_id), Some(job.clone()));
        assert_eq!((reference.size, reference.expires_at), (11, Timestamp::from_second(60).ok()));
        assert_eq!(job_of("art_01JABC"), None);
        let odd = CommandId::new("a/b").unwrap();
        assert_eq!(artifacts.reference("s", &odd, &json!("123456789"), Timestamp::UNIX_EPOCH), None);
    }
}

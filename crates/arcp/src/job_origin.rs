//! Where a job comes from, as the event says that accepts its command.

use mainstay_model::grant::Grants;
use mainstay_model::{CommandFingerprint, CommandId, Event, EventBody, IdempotencyKey, SessionId};

use serde::{Deserialize, Serialize};

use crate::submission_key::SubmissionKey;

/// An event that accepts a command.
pub(crate) struct Acceptance<'e> {
    pub(crate) key: Option<&'e IdempotencyKey>,
    /// What the command says.
    pub(crate) fingerprint: &'e CommandFingerprint,
    /// What its job may do.
    pub(crate) grants: Option<&'e Grants>,
    /// Whether the command is carried out from here on; else it waits.
    pub(crate) begins: bool,
    /// Whether it is accepted by this; else it waited before.
    pub(crate) is_first: bool,
}

impl<'e> Acceptance<'e> {
    /// What this event says of the command that it accepts.
    pub(crate) fn of(event: &'e Event) -> Option<Self> {
        match &event.body {
            EventBody::CommandQueued(queued) if queued.body.rules().runs_job => {
                let (key, fingerprint) = (queued.key.as_ref(), &queued.fingerprint);
                let grants = queued.grants.as_deref();
                Some(Self { key, fingerprint, grants, begins: false, is_first: true })
            }
            EventBody::EvalRequested { key, fingerprint, grants, .. }
            | EventBody::JobRequested { key, fingerprint, grants, .. } => {
                let is_first = event.metadata.causation.is_none();
                let grants = grants.as_deref();
                Some(Self { key: key.as_ref(), fingerprint, grants, begins: true, is_first })
            }
            _ => None,
        }
    }
}

/// Where a job was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobOrigin {
    /// The session of ARCP that submitted it; where it came by another way, the session of the engine that has it.
    pub(crate) session: String,
    /// The trace of which it is part.
    pub(crate) trace: String,
    /// The message that submitted it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl JobOrigin {
    /// The origin of a job that one of its events tells.
    pub(crate) fn of(event: &Event, job: &CommandId) -> Self {
        let key = Acceptance::of(event).and_then(|acceptance| acceptance.key);
        Self::of_key(key, job).unwrap_or_else(|| Self::of_engine(event.session, job))
    }

    /// The origin of a job that did not come over ARCP, by the session of the engine that has it.
    pub(crate) fn of_engine(home: SessionId, job: &CommandId) -> Self {
        Self { session: home.to_string(), trace: trace_of_job(job), message: None }
    }

    /// The origin of a job whose command has this key; none where it did not come over ARCP.
    pub(crate) fn of_key(key: Option<&IdempotencyKey>, job: &CommandId) -> Option<Self> {
        let SubmissionKey { session, trace, message } = SubmissionKey::read(key?, job)?;
        Some(Self { session, trace: trace.unwrap_or_else(|| trace_of_job(job)), message })
    }
}

/// A trace id for a job whose client gave none, of 32 hexadecimal digits.
pub(crate) fn trace_of_job(job: &CommandId) -> String {
    let hash = blake3::derive_key("mainstay arcp trace id 1", job.as_str().as_bytes());
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

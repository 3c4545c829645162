//! The job that runs in a session.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::agent::JobKind;
use crate::event::{Deadline, Event, EventBody, Source, ends_by};
use crate::fingerprint::CommandFingerprint;
use crate::grant::Grants;
use crate::id::{CommandId, IdempotencyKey, JobId, Principal, Seq};

/// The job that runs, and whose command it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningJob {
    /// The id of the job.
    pub job: JobId,
    /// The command that asked for it.
    pub command: CommandId,
    /// The source that asked for the job.
    pub source: Source,
    /// What the command said.
    pub fingerprint: CommandFingerprint,
    /// The event that accepted it.
    pub requested: Seq,
    /// When the job was requested.
    pub requested_at: Timestamp,
    /// Whether someone asked for it to stop.
    pub cancel_requested: bool,
    /// How long it may take to stop, in milliseconds, where who asked for that said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// The client's name for what it wants done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// When its command must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What it may do, with what it has spent; none where nothing bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Box<Grants>>,
    /// Whether its command has been answered already: it took longer than it may, or was denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_answered: bool,
    /// Whether its code, and what comes of it, is stored nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// What kind of job it is.
    #[serde(default, skip_serializing_if = "JobKind::is_eval")]
    pub kind: JobKind,
}

impl RunningJob {
    /// The job that an event has accepted; none where it accepts none.
    pub fn begun(event: &Event) -> Option<Self> {
        let (job, command, fingerprint, key, deadline, grants, withheld, kind) = match &event.body {
            EventBody::EvalRequested {
                job, command, fingerprint, key, deadline, grants, withheld, ..
            } => (job, command, fingerprint, key, deadline, grants, *withheld, JobKind::Eval),
            EventBody::JobRequested { job, command, fingerprint, key, deadline, grants, work } => {
                (job, command, fingerprint, key, deadline, grants, false, work.kind())
            }
            _ => return None,
        };
        Some(Self {
            job: *job,
            command: command.clone(),
            source: event.metadata.source.clone(),
            fingerprint: fingerprint.clone(),
            requested: event.seq,
            requested_at: event.at,
            cancel_requested: false,
            grace_ms: None,
            key: key.clone(),
            deadline: *deadline,
            grants: grants.clone(),
            is_answered: false,
            withheld,
            kind,
        })
    }

    /// Counts in its budget what an event of its session says that it spent, gave to another job, or got back.
    pub fn account(&mut self, body: &EventBody) {
        let Some(grants) = self.grants.as_deref_mut() else { return };
        match body {
            EventBody::MessageAdded(message) => grants.spend_on(&message.usage.unwrap_or_default()),
            EventBody::JobDelegated { job, grants: Some(given), .. } if *job == self.job => {
                grants.give_away(given);
            }
            EventBody::DelegationEnded { job, unspent, .. } if *job == self.job => grants.take_back(unspent),
            _ => {}
        }
    }

    /// When its command must have ended: its deadline, or the end of its grant.
    pub fn ends_by(&self) -> Option<Timestamp> {
        ends_by(self.deadline, self.grants.as_deref())
    }

    /// Whether it answers this command.
    pub fn answers(&self, principal: &Principal, command: &CommandId) -> bool {
        self.command == *command && self.source.principal() == *principal
    }
}

//! Jobs that were submitted over a connection and not answered yet, and what the tasks say that submit them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use mainstay_model::{CommandFingerprint, CommandId, Error, SessionId};

use crate::agents::AgentRefused;

/// A submission that was not answered yet.
#[derive(Clone)]
pub(crate) struct PendingSubmission {
    /// The message that submitted the job.
    pub(crate) message: String,
    pub(crate) agent: String,
    pub(crate) trace: String,
    /// What its command says, once it is on its way to its session. The event that accepts the command says the same.
    pub(crate) fingerprint: Arc<OnceLock<CommandFingerprint>>,
}

/// What a task has to say of the submission that it carries out.
pub(crate) struct SubmissionUpdate {
    pub(crate) job: CommandId,
    /// The message that submitted the job.
    pub(crate) message: String,
    pub(crate) found: Found,
}

/// What became of a submission.
pub(crate) enum Found {
    /// Its session has the job, by this submission or by another.
    Existing { home: SessionId },
    /// It is refused, or has failed. Where its session accepted it, events tell that.
    Refused(Refusal),
}

/// Why a submission is refused.
pub(crate) enum Refusal {
    /// The engine refuses it.
    Engine(Error),
    /// Its agent cannot be given a job.
    Agent { agent: String, why: AgentRefused },
    /// Its session is that of the job which gives the task.
    BehindParent { agent: String },
}

impl Refusal {
    /// What there is to do about a task whose session is that of the job which gives it.
    pub(crate) const ELSEWHERE: &'static str =
        "Name another `session` or `working_directory`, or give the task without the `job_id` of a job.";

    /// Why a task for an agent whose session is that of the job which gives it is refused.
    pub(crate) fn behind_parent(agent: &str) -> String {
        format!(
            "the task would wait for the job that gives it: the session of {agent} does one job after the other, and that job runs in it"
        )
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The submissions that were not answered yet.
#[derive(Default)]
pub(crate) struct PendingSubmissions(HashMap<CommandId, Vec<PendingSubmission>>);

impl PendingSubmissions {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub(crate) fn add(&mut self, job: CommandId, submission: PendingSubmission) {
        self.0.entry(job).or_default().push(submission);
    }

    /// The submission of a job by this message.
    pub(crate) fn take(&mut self, job: &CommandId, message: &str) -> Option<PendingSubmission> {
        self.take_where(job, |submission| submission.message == message).pop()
    }

    /// The submissions of a job that a command accepts which says this.
    pub(crate) fn take_accepted(
        &mut self,
        job: &CommandId,
        fingerprint: &CommandFingerprint,
    ) -> Vec<PendingSubmission> {
        self.take_where(job, |submission| submission.fingerprint.get() == Some(fingerprint))
    }

    fn take_where(
        &mut self,
        job: &CommandId,
        is_meant: impl Fn(&PendingSubmission) -> bool,
    ) -> Vec<PendingSubmission> {
        let Some(all) = self.0.get_mut(job) else { return Vec::new() };
        let (taken, left) = std::mem::take(all).into_iter().partition(|submission| is_meant(submission));
        *all = left;
        if all.is_empty() {
            self.0.remove(job);
        }
        taken
    }
}

//! Jobs that were submitted over a connection and not answered yet, and what the tasks that submit them say.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use mainstay_arcp_protocol::b::ErrorPayload;
use mainstay_model::{CommandFingerprint, CommandId, Error, SessionId};

/// A submission that was not answered yet.
#[derive(Clone)]
pub(super) struct PendingSubmission {
    /// The message that submitted the job.
    pub(super) message: String,
    pub(super) agent: String,
    pub(super) trace: String,
    /// What its command says, once it is on its way to its session. The event that accepts the command says the same.
    pub(super) said: Arc<OnceLock<CommandFingerprint>>,
}

/// What a task that submits a job has to say, of which submission.
pub(super) struct Word {
    pub(super) job: CommandId,
    /// The message that submitted the job.
    pub(super) message: String,
    pub(super) found: Found,
}

/// What became of a submission.
pub(super) enum Found {
    /// Its session has the job, by this submission or by another.
    Known { home: SessionId },
    /// The job was refused, or has failed. Where its session accepted it, events tell that.
    Refused(Error),
    /// The job cannot be submitted.
    Unfit(ErrorPayload),
}

/// The submissions that were not answered yet.
#[derive(Default)]
pub(super) struct PendingSubmissions(HashMap<CommandId, Vec<PendingSubmission>>);

impl PendingSubmissions {
    pub(super) fn add(&mut self, job: CommandId, submission: PendingSubmission) {
        self.0.entry(job).or_default().push(submission);
    }

    /// The submission of a job by this message.
    pub(super) fn take(&mut self, job: &CommandId, message: &str) -> Option<PendingSubmission> {
        self.take_where(job, |submission| submission.message == message).pop()
    }

    /// The submissions of a job that a command accepts which says this.
    pub(super) fn take_accepted(
        &mut self,
        job: &CommandId,
        said: &CommandFingerprint,
    ) -> Vec<PendingSubmission> {
        self.take_where(job, |submission| submission.said.get() == Some(said))
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

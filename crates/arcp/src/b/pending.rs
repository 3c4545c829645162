//! Jobs that were submitted over a connection and not answered yet, and what the tasks that submit them say.

use mainstay_arcp_protocol::b::ErrorPayload;
use mainstay_model::{CommandId, Error, SessionId};

/// A submission that was not answered yet.
pub(super) struct PendingSubmission {
    /// The message that submitted the job.
    pub(super) message: String,
    pub(super) agent: String,
    pub(super) trace: String,
}

/// What a task that submits a job has to say.
pub(super) enum Word {
    /// The job was submitted before.
    Known { job: CommandId, home: SessionId, has_ended: bool },
    /// The job was refused, or has ended. Where its session accepted it, events tell that.
    Refused { job: CommandId, error: Error },
    /// The job cannot be submitted.
    Unfit { job: CommandId, payload: ErrorPayload },
}

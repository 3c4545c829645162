//! What clients of dialect B read otherwise than the draft says, by what they send in `session.hello`.

use mainstay_arcp_protocol::b::{FinalStatus, Hello};

/// What one client reads otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peculiarities {
    /// Whether a `job.error` whose `final_status` is not `error` ends the client. PyPI `agentruntimecontrolprotocol` 1.1.3 takes no other value, and
    /// what it cannot read ends its reader and all of its jobs. The code still says what happened.
    errors_are_errors: bool,
}

impl Peculiarities {
    /// Those of the client that says this. The Python SDK alone lists agents among what it can do.
    pub(super) fn of(hello: &Hello) -> Self {
        Self { errors_are_errors: hello.capabilities.lists_agents() }
    }

    /// How the end of a job that did not succeed is told.
    pub(super) const fn final_status(self, status: FinalStatus) -> FinalStatus {
        match (self.errors_are_errors, status) {
            (true, FinalStatus::Cancelled | FinalStatus::TimedOut) => FinalStatus::Error,
            (_, status) => status,
        }
    }
}

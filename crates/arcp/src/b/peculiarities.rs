//! What clients of dialect B read otherwise than the draft says, by what they send in `session.hello`.

use mainstay_arcp_protocol::b::{FinalStatus, Hello};

/// What one client reads otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peculiarities {
    /// Whether it is PyPI `agentruntimecontrolprotocol` 1.1.3. It takes no `final_status` of a `job.error` but `error`, and what it cannot read ends
    /// its reader and all of its jobs; the code still says what happened. A `session.error` ends all of its jobs too. What comes with the answer to a
    /// subscription may be lost, since another task takes note of that.
    is_python_sdk: bool,
}

impl Peculiarities {
    /// Those of the client that says this. The Python SDK alone lists agents among what it can do.
    pub(super) fn of(hello: &Hello) -> Self {
        Self { is_python_sdk: hello.capabilities.lists_agents() }
    }

    /// Whether a `session.error` ends all jobs of the client, whatever it answers, so that it is not told what changes nothing for it.
    pub(super) const fn dies_of_errors(self) -> bool {
        self.is_python_sdk
    }

    /// Whether the client drops what is told of a job right behind `job.subscribed`, before it has taken note of its subscription.
    pub(super) const fn subscribes_late(self) -> bool {
        self.is_python_sdk
    }

    /// How the end of a job that did not succeed is told.
    pub(super) const fn final_status(self, status: FinalStatus) -> FinalStatus {
        match (self.is_python_sdk, status) {
            (true, FinalStatus::Cancelled | FinalStatus::TimedOut) => FinalStatus::Error,
            (_, status) => status,
        }
    }
}

//! Jobs that are given a task by another job, whatever the dialect.

use mainstay_engine::{Client, GivenTask};
use mainstay_model::command::Delegate;
use mainstay_model::grant::OperationKind;
use mainstay_model::{CommandId, Error};

/// Which job gives the task, and what of its grant goes with it.
pub(crate) struct Delegation {
    pub(crate) parent: CommandId,
    pub(crate) inherits: Vec<OperationKind>,
}

impl Delegation {
    /// Has the session of the job that gives the task decide what the other job may do.
    ///
    /// # Errors
    /// [`Error::NotRunning`] where no such job runs, and what its grant refuses.
    pub(crate) async fn decide(
        self,
        client: &Client,
        child: &CommandId,
        agent: &str,
    ) -> Result<GivenTask, Error> {
        let Self { parent, inherits } = self;
        let (child, agent) = (child.clone(), agent.to_owned());
        client.delegate(Delegate { parent, child, agent, inherits }).await
    }
}

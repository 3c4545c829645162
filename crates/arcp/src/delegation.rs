//! Jobs that are given a task by another job, whatever the dialect.

use mainstay_engine::{Client, CommandStatus, GivenTask};
use mainstay_model::command::Delegate;
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::{CommandId, Error, SessionId};

/// Which job gives the task, and what of its grant goes with it.
pub(crate) struct Delegation {
    pub(crate) parent: CommandId,
    pub(crate) inherits: Vec<OperationKind>,
}

/// How many jobs that gave a task are looked at.
const DEEPEST: usize = 64;

impl Delegation {
    /// Whether this session of the engine is that of the job which gives the task, or of one that gave that job its own: it does one job after the
    /// other, so the task would wait for whoever may wait for it.
    pub(crate) async fn is_within(&self, client: &Client, session: SessionId) -> Result<bool, Error> {
        let mut parent = self.parent.clone();
        for _ in 0..DEEPEST {
            // Whether it runs at all is decided elsewhere.
            let Ok(CommandStatus::Runs { session: home }) = client.command(&parent).await else { break };
            if home == session {
                return Ok(true);
            }
            let home = client.seen_session(home).await?;
            let running = home.as_ref().and_then(|home| home.running()).filter(|job| job.command == parent);
            let grants = running.and_then(|job| job.grants.as_deref());
            let Some(delegator) = grants.and_then(Grants::delegator) else { break };
            parent = delegator.parent.clone();
        }
        Ok(false)
    }

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

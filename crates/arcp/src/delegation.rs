//! Jobs that are given a task by another job, whatever the dialect.

use mainstay_engine::{Client, CommandStatus};
use mainstay_model::command::Delegate;
use mainstay_model::grant::{Grants, OperationKind};
use mainstay_model::{
    Command, CommandId, Error, EventBody, Outcome, Response, Seq, SessionCommand, SessionId,
};

/// Which job gives the task, and what of its grant goes with it.
pub(crate) struct Delegation {
    pub(crate) parent: CommandId,
    pub(crate) inherits: Vec<OperationKind>,
}

impl Delegation {
    /// Has the session of the job that gives the task decide what the other job may do. The same job is given the same, however often this is
    /// asked.
    ///
    /// # Errors
    /// [`Error::NotRunning`] where no such job runs, and what its grant refuses.
    pub(crate) async fn decide(
        self,
        client: &Client,
        child: &CommandId,
        agent: &str,
    ) -> Result<Box<Grants>, Error> {
        let Self { parent, inherits } = self;
        let home = match client.command(&parent).await {
            Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => Some(session),
            Ok(CommandStatus::Ended(stored)) => stored.session,
            Err(Error::CommandNotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let home = home.ok_or_else(|| Error::CommandNotFound { command: parent.clone() })?;
        let (child, agent) = (child.clone(), agent.to_owned());
        let id = child.part(1)?;
        let body = SessionCommand::Delegate(Delegate { parent, child, agent, inherits });
        let outcome = client.submit(home, Command::new(id, client.source(), body)).await?.outcome;
        given(client, home, outcome).await
    }

    /// What was decided before for the other job; none where nothing was.
    ///
    /// # Errors
    /// What its grant refused.
    pub(crate) async fn decided(client: &Client, child: &CommandId) -> Result<Option<Box<Grants>>, Error> {
        match client.command(&child.part(1)?).await {
            Ok(CommandStatus::Ended(stored)) => match stored.session {
                Some(home) => given(client, home, stored.outcome).await.map(Some),
                None => Ok(None),
            },
            Ok(CommandStatus::Waits { .. } | CommandStatus::Runs { .. })
            | Err(Error::CommandNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What the event says that a decision led to. Where it is not there, nothing is known of what the other job may do, and so it is not begun.
async fn given(client: &Client, home: SessionId, outcome: Outcome) -> Result<Box<Grants>, Error> {
    let unknown = || Error::StoreFailed { reason: "what the other job may do is not in the log".to_owned() };
    let seq = match outcome {
        Outcome::Done { response: Response::Recorded { seq } } => seq,
        Outcome::Done { .. } => return Err(unknown()),
        Outcome::Failed { error } => return Err(error),
    };
    let told = client.events(home, Seq(seq.0.saturating_sub(1)), 1).await?;
    match told.into_iter().next().map(|event| event.body) {
        Some(EventBody::JobDelegated { grants: Some(grants), .. }) => Ok(grants),
        _ => Err(unknown()),
    }
}

//! Giving a part of what a job may do to a job of another agent. The session of the job that gives the task decides; what is decided is stored
//! before the other job can be submitted.

use mainstay_model::command::Delegate;
use mainstay_model::grant::Grants;
use mainstay_model::{
    Command, CommandId, Error, EventBody, Outcome, Response, Seq, SessionCommand, SessionId,
};

use super::Client;
use crate::engine::CommandStatus;
use crate::open_tasks::Submission;

/// A task that a job gave to another. Its command is to be submitted while this is held: where there is none by then, the task has ended.
pub struct GivenTask {
    /// What the other job may do.
    pub grants: Box<Grants>,
    _submission: Submission,
}

impl Client {
    /// Has the session of the job that gives a task decide what the other job may do. As long as the task has not ended, the same job is given
    /// the same, however often this is asked.
    ///
    /// # Errors
    /// [`Error::CommandNotFound`] and [`Error::NotRunning`] where no such job runs, what its grant refuses, [`Error::TooManyCommands`].
    pub async fn delegate(&self, delegate: Delegate) -> Result<GivenTask, Error> {
        let Delegate { parent, child, .. } = &delegate;
        let home = match self.command(parent).await? {
            CommandStatus::Waits { session } | CommandStatus::Runs { session } => Some(session),
            CommandStatus::Ended(stored) => stored.session,
        };
        let home = home.ok_or_else(|| Error::CommandNotFound { command: parent.clone() })?;
        let key = (self.principal().clone(), child.clone());
        let delegations = self.engine().shared.delegations.clone();
        let submission = delegations.submission(&key, home).await;
        // Each time that the task was given and has ended, this was asked under another id.
        for number in 1_u64.. {
            let body = SessionCommand::Delegate(delegate.clone());
            let asked = Command::new(child.part(number)?, self.source(), body);
            let answered = self.submit(home, asked).await?;
            let (given_at, grants) = self.given(home, answered.outcome).await?;
            if self.engine().has_open_task(home, given_at).await? {
                return Ok(GivenTask { grants, _submission: submission });
            }
            if !answered.is_replay {
                break;
            }
        }
        Err(Error::NotRunning { command: parent.clone() })
    }

    /// What was decided last for a job that another gave a task to; none where nothing was.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn delegated(&self, child: &CommandId) -> Result<Option<Box<Grants>>, Error> {
        let mut decided = None;
        for number in 1_u64.. {
            match self.command(&child.part(number)?).await {
                Ok(CommandStatus::Ended(stored)) => {
                    let Some(home) = stored.session else { break };
                    decided = Some(self.given(home, stored.outcome).await?.1);
                }
                Ok(CommandStatus::Waits { .. } | CommandStatus::Runs { .. })
                | Err(Error::CommandNotFound { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(decided)
    }

    /// The event that a decision led to, and what it says. Where it is not there, nothing is known of what the other job may do, and so it is not begun.
    async fn given(&self, home: SessionId, outcome: Outcome) -> Result<(Seq, Box<Grants>), Error> {
        let unknown =
            || Error::StoreFailed { reason: "what the other job may do is not in the log".to_owned() };
        let seq = match outcome {
            Outcome::Done { response: Response::Recorded { seq } } => seq,
            Outcome::Done { .. } => return Err(unknown()),
            Outcome::Failed { error } => return Err(error),
        };
        let told = self.events(home, Seq(seq.0.saturating_sub(1)), 1).await?;
        match told.into_iter().next().map(|event| event.body) {
            Some(EventBody::JobDelegated { grants: Some(grants), .. }) => Ok((seq, grants)),
            _ => Err(unknown()),
        }
    }
}

//! How a client of dialect A has a job pause and ask. Source: draft-arcp-01, 10.5.

use mainstay_arcp_protocol::a::ErrorCode;
use mainstay_arcp_protocol::a::control::{CancelTarget, Interrupt, Nack};
use mainstay_model::command::Pause;
use mainstay_model::{Command, CommandId, Error, Outcome, SessionCommand, SessionId};

use super::{A, errors};
use crate::session::Session;

impl Session<A> {
    /// Has a job of the principal pause. What it asks then is told as any question of a job.
    pub(super) async fn interrupt(&mut self, id: &str, interrupt: Interrupt) -> Result<(), Error> {
        let command = self.command_of(id)?;
        let interrupted = match self.outcome_of(&command).await {
            Some(outcome) => Ok(outcome),
            None => match self.interruptible(&interrupt).await? {
                Ok((home, job)) => Ok(self.pause(command, home, job, interrupt.prompt).await),
                Err(nack) => Err(nack),
            },
        };
        match interrupted {
            Ok(outcome) => self.settle(id, outcome).await,
            Err(nack) => {
                self.nack(id, nack).await;
                Ok(())
            }
        }
    }

    /// The job that is to pause, and the session of the engine that has it; else why there is none.
    async fn interruptible(
        &self,
        interrupt: &Interrupt,
    ) -> Result<Result<(SessionId, CommandId), Nack>, Error> {
        let job = match (interrupt.target, CommandId::new(interrupt.target_id.clone())) {
            (CancelTarget::Job, Ok(job)) => job,
            (CancelTarget::Job, Err(_)) => return Ok(Err(errors::no_such_job())),
            (CancelTarget::Session | CancelTarget::Stream, _) => {
                let step = "Interrupt the job, or end a session with `cancel`.";
                return Ok(Err(errors::nack(
                    ErrorCode::FailedPrecondition,
                    "only a job is interrupted",
                    step,
                )));
            }
        };
        Ok(match self.place_of(&job).await? {
            Some((home, false)) => Ok((home, job)),
            Some((_, true)) => Err(errors::job_has_ended()),
            None => Err(errors::no_such_job()),
        })
    }

    async fn pause(
        &self,
        command: CommandId,
        home: SessionId,
        job: CommandId,
        prompt: Option<String>,
    ) -> Result<Outcome, Error> {
        let body = SessionCommand::Pause(Pause { target: Some(job), prompt });
        Ok(self.client.submit(home, Command::new(command, self.client.source(), body)).await?.outcome)
    }
}

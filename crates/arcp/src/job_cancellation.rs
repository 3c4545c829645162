//! How a session's client stops one of its jobs, whatever the dialect.

use mainstay_engine::CommandStatus;
use mainstay_gateway::command::anonymous;
use mainstay_model::{Command, CommandId, Error, SessionCommand, SessionId, command};

use crate::dialect::Dialect;
use crate::job_origin::JobOrigin;
use crate::session::Session;

/// What becomes of a wish to stop a job.
pub(crate) enum CancelResult {
    /// The job is told to stop. What comes of it is told by the job's own events.
    Begun,
    /// The job has ended.
    Ended,
    /// Another session submitted the job.
    NotOwn,
    /// There is no such job, or it may not be seen.
    Unknown,
    /// The engine refuses it.
    Refused(Error),
}

impl<D: Dialect> Session<D> {
    /// Stops a job of the session, within so many milliseconds where that is said. Only who submitted a job may.
    pub(crate) async fn cancel_job(
        &mut self,
        job: &CommandId,
        grace_ms: Option<u64>,
    ) -> Result<CancelResult, Error> {
        let home = match self.fold.job(job) {
            Some(known) if !known.is_own => return Ok(CancelResult::NotOwn),
            Some(known) if known.state.is_terminal() => return Ok(CancelResult::Ended),
            Some(known) => known.home,
            None => match self.place_of(job).await? {
                Some((home, has_ended)) => return self.cancel_untold(job, home, has_ended).await,
                None => return Ok(CancelResult::Unknown),
            },
        };
        let body = SessionCommand::Cancel(command::Cancel { target: Some(job.clone()), grace_ms });
        let command = Command::new(anonymous(), self.client.source(), body);
        match self.client.begin(home, command).await {
            Ok(begun) => {
                tokio::spawn(async move { begun.ended().await.map(drop) });
                Ok(CancelResult::Begun)
            }
            Err(error) => Ok(CancelResult::Refused(error)),
        }
    }

    /// The same of a job of which the session is not told: it may have been its own, and was forgotten once that was acknowledged.
    async fn cancel_untold(
        &self,
        job: &CommandId,
        home: SessionId,
        has_ended: bool,
    ) -> Result<CancelResult, Error> {
        let accepted = self.acceptance_of(job, home).await?;
        let is_own = accepted.is_some_and(|event| JobOrigin::of(&event, job).session == self.stored.id);
        Ok(match has_ended && is_own {
            true => CancelResult::Ended,
            false => CancelResult::NotOwn,
        })
    }

    /// The session of the engine that has a job of this principal, and whether the job has ended.
    pub(crate) async fn place_of(&self, job: &CommandId) -> Result<Option<(SessionId, bool)>, Error> {
        match self.client.command(job).await {
            Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => {
                Ok(Some((session, false)))
            }
            Ok(CommandStatus::Ended(stored)) => Ok(stored.session.map(|session| (session, true))),
            Err(Error::CommandNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

//! The commands of a client: handing one over, its status, its outcome.

use mainstay_log::{KeyScope, StoredOutcome};
use mainstay_model::command::Lane;
use mainstay_model::{Answered, Command, CommandId, Error, IdempotencyKey, Right, SessionCommand, SessionId};

use super::Client;
use crate::dependencies::each_succeeded;
use crate::engine::{AcceptedCommand, CommandStatus};
use crate::sync::task;

impl Client {
    /// Carries out a command, or gives the stored outcome of an earlier one with the same id. Its source is this client.
    ///
    /// # Errors
    /// What `model` refuses; [`Error::SessionNotFound`], [`Error::NotPermitted`], [`Error::CommandConflict`],
    /// [`Error::LaneFull`], [`Error::TooManySessions`], [`Error::TooManyCommands`], [`Error::RateLimited`],
    /// [`Error::KeyConflict`], [`Error::DaemonStopping`], [`Error::StoreFailed`].
    pub async fn submit(&self, session: SessionId, command: Command) -> Result<Answered, Error> {
        self.begin(session, command).await?.ended().await
    }

    /// Hands a command over to its session: those that one client hands over one after the other come in that order. What comes of it
    /// is told by what this gives.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotPermitted`], [`Error::DaemonStopping`], [`Error::StoreFailed`].
    pub async fn begin(&self, session: SessionId, command: Command) -> Result<AcceptedCommand, Error> {
        let rules = command.body.rules();
        match rules.right {
            Right::See => self.must_see(session).await?,
            Right::Drive => self.must_drive(session).await?,
            Right::Own(to) => self.must_own(session, to).await?,
        }
        if let SessionCommand::Answer(answer) = &command.body {
            self.may_answer(session, answer.ask).await?;
        }
        let asked_by = (self.is_connection && rules.runs_job).then(|| self.presence.number());
        let command = Command { source: self.source(), ..command };
        if rules.lane == Lane::Server {
            return Ok(self.engine.begin_load(session, command, &self.trace));
        }
        if let SessionCommand::Rename(_) = &command.body {
            let name = self.engine.name_of_rename(session, &command).await?;
            let begun = self.engine.begin(session, command, &self.trace).await?;
            // Whoever waits for it may go: the name is its own until it has ended.
            return Ok(AcceptedCommand::by(task::spawn(async move {
                let answered = begun.ended().await;
                drop(name);
                answered
            })));
        }
        self.engine.begin_asked(session, command, asked_by, &self.trace).await
    }

    /// How far one of the principal's commands has come.
    ///
    /// # Errors
    /// [`Error::CommandNotFound`], [`Error::StoreFailed`].
    pub async fn command(&self, command: &CommandId) -> Result<CommandStatus, Error> {
        self.engine.command(&self.access.principal, command).await
    }

    /// What came of the principal's command to a session that had this idempotency key, once it has ended.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn ended_with_key(
        &self,
        session: SessionId,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error> {
        let log = &self.engine.shared.log;
        log.outcome_of_key(&self.access.principal, KeyScope::Session(session), key).await
    }

    /// Waits until these commands of its principal have succeeded, as long as a command would wait for them.
    ///
    /// # Errors
    /// [`Error::DependencyUnknown`], [`Error::DependencyPending`], [`Error::DependencyFailed`], [`Error::Cancelled`],
    /// [`Error::StoreFailed`].
    pub async fn succeeded(&self, commands: &[CommandId]) -> Result<(), Error> {
        let shared = &self.engine().shared;
        let limit_ms = shared.limits.dependency_wait_ms;
        each_succeeded(
            self.principal(),
            commands,
            limit_ms,
            &shared.single_process.claims,
            shared.log.as_ref(),
        )
        .await
    }
}

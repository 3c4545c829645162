//! Handing a command over to its session, and waiting for its outcome.

use mainstay_log::StoredOutcome;
use mainstay_model::{Answered, Command, CommandId, Error, Principal, SessionId};
use tracing::Span;

use super::Engine;
use super::tasks::PendingAnswer;
use crate::pending_commands::Reply;
use crate::session::Request;
use crate::sync::task::JoinHandle;
use crate::trace::CommandTrace;

/// How far a command has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// It waits for its turn.
    Waits {
        /// The session in whose queue the command waits.
        session: SessionId,
    },
    /// It is carried out.
    Runs {
        /// The session in which the command runs.
        session: SessionId,
    },
    /// It has its outcome.
    Ended(Box<StoredOutcome>),
}

/// A command that its session has.
pub struct AcceptedCommand(AcceptedState);

enum AcceptedState {
    Waits { answer: PendingAnswer<Result<Answered, Error>>, engine: Engine },
    Creates(JoinHandle<Result<Answered, Error>>),
    Ended(Answered),
}

impl AcceptedCommand {
    /// What was answered already.
    pub(crate) fn at_once(answered: Answered) -> Self {
        Self(AcceptedState::Ended(answered))
    }

    /// What a task answers.
    pub(crate) fn by(task: JoinHandle<Result<Answered, Error>>) -> Self {
        Self(AcceptedState::Creates(task))
    }

    /// What came of it; waits for that.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn ended(self) -> Result<Answered, Error> {
        match self.0 {
            AcceptedState::Waits { answer, engine } => answer.answered(&engine).await?,
            AcceptedState::Creates(task) => {
                task.await.unwrap_or_else(|error| Err(Error::DaemonFailed { reason: error.to_string() }))
            }
            AcceptedState::Ended(answered) => Ok(answered),
        }
    }
}

impl Engine {
    /// Hands a command over to its session, as part of what a span stands for.
    pub(crate) async fn begin(
        &self,
        session: SessionId,
        command: Command,
        parent: &Span,
    ) -> Result<AcceptedCommand, Error> {
        self.begin_asked(session, command, None, parent).await
    }

    /// The same of a command that a connection asks for, the client of this number: that it has left is known of what it asked for.
    pub(crate) async fn begin_asked(
        &self,
        session: SessionId,
        command: Command,
        asked_by: Option<u64>,
        parent: &Span,
    ) -> Result<AcceptedCommand, Error> {
        let trace = CommandTrace::arrived(parent, session, &command.id, command.body.action());
        let fingerprint = command.fingerprint(session);
        let (principal, id, said) = (command.source.principal(), command.id.clone(), fingerprint.clone());
        let handed_over = self
            .hand_over(session, |reply| Request::Submit {
                command,
                fingerprint,
                reply: Reply::new(reply),
                asked_by,
                trace,
            })
            .await;
        match handed_over {
            Ok(answer) => Ok(AcceptedCommand(AcceptedState::Waits { answer, engine: self.clone() })),
            // Where it was deleted, what was answered before is answered again.
            Err(error @ Error::SessionNotFound { .. }) => {
                match self.shared.log.outcome(&principal, &id).await? {
                    Some(StoredOutcome { fingerprint, outcome, version, .. }) if fingerprint == said => {
                        Ok(AcceptedCommand::at_once(Answered { outcome, version, is_replay: true }))
                    }
                    Some(_) | None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// How far a command has come.
    pub(crate) async fn command(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<CommandStatus, Error> {
        // In this order: one that ends between the two is found by the second look.
        let session = self.shared.single_process.claims.holder(&(principal.clone(), command.clone()));
        if let Some(stored) = self.shared.log.outcome(principal, command).await? {
            return Ok(CommandStatus::Ended(Box::new(stored)));
        }
        let Some(session) = session else { return Err(Error::CommandNotFound { command: command.clone() }) };
        // A session that is not there yet is being created by the command.
        let stored = self.shared.log.session(session).await?;
        let waits = stored.is_some_and(|stored| stored.waits(principal, command));
        Ok(if waits { CommandStatus::Waits { session } } else { CommandStatus::Runs { session } })
    }

    /// How many commands are under way in all sessions.
    pub fn commands_under_way(&self) -> usize {
        self.shared.single_process.claims.count()
    }
}

//! One request on its way to the engine: what all handlers do with it.

use std::sync::Arc;

use mainstay_engine::Client;
use mainstay_gateway::command::id_of;
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::view::session_view;
use mainstay_model::{Admission, Command, CommandId, Error, Outcome, SessionCommand, SessionId};
use mainstay_protocol::view::SessionView;
use mainstay_protocol::{Conditions, Sent};

/// One request, and on whose behalf.
pub(crate) struct Call {
    /// The daemon that was asked.
    pub(crate) daemon: Arc<Daemon>,
    /// The client that asks, with the trace of this request.
    pub(crate) client: Client,
}

impl Call {
    /// The session that a reference names: its id, the end of it, or its name.
    pub(super) async fn resolve(&self, reference: &str) -> Result<SessionId, Error> {
        self.client.resolve(reference).await
    }

    /// The session that a reference names, where there is one.
    pub(super) async fn optional(&self, reference: Option<String>) -> Result<Option<SessionId>, Error> {
        match reference {
            Some(reference) => self.resolve(&reference).await.map(Some),
            None => Ok(None),
        }
    }

    /// The session that a reference names, also a deleted one, by its whole id: a command that is sent again is answered all the same.
    pub(super) async fn resolve_known(&self, reference: &str) -> Result<SessionId, Error> {
        match (self.resolve(reference).await, reference.parse()) {
            (Err(Error::SessionNotFound { .. }), Ok(session)) => Ok(session),
            (resolved, _) => resolved,
        }
    }

    /// A session with its state, as clients see it.
    pub(super) async fn view(&self, session: SessionId) -> Result<SessionView, Error> {
        let validity = self.client.validity(session).await?;
        let status = self.client.status(session).await?;
        Ok(SessionView { validity, ..session_view(status) })
    }

    /// Submits a command that changes a session, and returns the session as it is afterwards.
    pub(super) async fn change(
        &self,
        session: &str,
        body: SessionCommand,
        sent: Sent,
    ) -> Result<SessionView, Error> {
        let session = self.resolve(session).await?;
        match self.submit(session, body, sent).await? {
            Outcome::Done { .. } => self.view(session).await,
            Outcome::Failed { error } => Err(error),
        }
    }

    /// Submits a command that is a job, waits for its end, and returns the id of the command too.
    pub(super) async fn run(
        &self,
        session: SessionId,
        body: SessionCommand,
        admission: Admission,
        sent: Sent,
    ) -> Result<(CommandId, mainstay_model::Answered), Error> {
        let command = self.command_of(body, sent)?;
        let id = command.id.clone();
        Ok((id, self.client.submit(session, Command { admission, ..command }).await?))
    }

    /// Submits a command and returns its outcome.
    pub(super) async fn submit(
        &self,
        session: SessionId,
        body: SessionCommand,
        sent: Sent,
    ) -> Result<Outcome, Error> {
        let command = self.command_of(body, sent)?;
        self.client.submit(session, command).await.map(|answered| answered.outcome)
    }

    /// A command of this client's, for when the session can carry it out.
    pub(super) fn command_of(&self, body: SessionCommand, sent: Sent) -> Result<Command, Error> {
        let Sent { command, conditions } = sent;
        let Conditions { key, depends_on, if_version, timeout_ms } = conditions;
        let command = Command::new(id_of(command)?, self.client.source(), body);
        Ok(Command { key, depends_on, if_version, timeout_ms, ..command })
    }
}

/// Why an outcome is not the one that a command has: the error it failed with, where it failed.
pub(super) fn unexpected(outcome: &Outcome) -> Error {
    match outcome {
        Outcome::Failed { error } => error.clone(),
        Outcome::Done { response } => {
            Error::BadRequest { reason: format!("the command's outcome is {response:?}") }
        }
    }
}

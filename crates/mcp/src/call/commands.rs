//! The commands that a call has carried out.

use std::sync::atomic::Ordering;

use mainstay_gateway::command::anonymous;
use mainstay_model::{
    Admission, Command, CommandId, Error, Outcome, Response, Session, SessionCommand, SessionId,
    SessionState, Version,
};

use super::Call;

impl Call {
    /// Has the command carried out that the call is for, or refused at once.
    pub(crate) async fn submit(&self, session: SessionId, body: SessionCommand) -> Result<Response, Error> {
        self.have_carried_out(session, self.command(body)).await
    }

    /// The same with one that the call needs beside it.
    pub(crate) async fn submit_beside(
        &self,
        session: SessionId,
        body: SessionCommand,
    ) -> Result<Response, Error> {
        self.have_carried_out(session, Command::new(anonymous(), self.client.source(), body)).await
    }

    /// Deletes a session, unless it has changed since it had this version.
    pub(crate) async fn delete_unchanged(&self, session: SessionId, version: Version) -> Result<(), Error> {
        let delete = Command::new(anonymous(), self.client.source(), SessionCommand::Delete);
        match self.have_carried_out(session, Command { if_version: Some(version), ..delete }).await {
            Ok(_) | Err(Error::VersionMismatch { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn have_carried_out(&self, session: SessionId, command: Command) -> Result<Response, Error> {
        match self.client.submit(session, command).await?.outcome {
            Outcome::Done { response } => Ok(response),
            Outcome::Failed { error } => Err(error),
        }
    }

    /// The id of the command that the call is for: the call's own, once.
    pub(crate) fn command_id(&self) -> CommandId {
        match self.is_id_taken.swap(true, Ordering::Relaxed) {
            false => self.under_way.id.clone(),
            true => anonymous(),
        }
    }

    /// The command that the call is for.
    pub(crate) fn command(&self, body: SessionCommand) -> Command {
        Command::new(self.command_id(), self.client.source(), body)
    }

    /// A new command that runs code. While other code runs, it waits for its turn; while that waits for an answer, it is refused, since the
    /// answer may be this client's to give.
    pub(crate) fn code(&self, session: &Session, body: SessionCommand) -> Command {
        let admission = match session.state() {
            SessionState::Waiting(_) => Admission::Now,
            _ => Admission::Queue,
        };
        Command { admission, ..self.command(body) }
    }
}

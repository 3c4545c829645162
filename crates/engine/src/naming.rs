//! Names of sessions: each is taken once in a folder, so that a name finds one session there. A session whose creator calls it by an alias of
//! its own (the pi protocol) is found by that, and may be named like another.

use mainstay_log::{KeyScope, SessionFilter};
use mainstay_model::command::validate_dependencies;
use mainstay_model::decide::Identity;
use mainstay_model::{Answered, Command, Error, Session, SessionCommand, SessionId};
use tracing::Span;

use crate::engine::{Begun, Engine};
use crate::sync::task;

impl Engine {
    /// Refuses a name that another session in a folder has.
    pub(crate) async fn check_name(
        &self,
        name: &str,
        folder: &str,
        own: Option<SessionId>,
    ) -> Result<(), Error> {
        match self.is_taken(name, folder, own).await? {
            true => Err(Error::SessionExists { reference: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// The name for a session that was given none: this one, or this one numbered where another in its folder has it.
    pub(crate) async fn default_name(&self, name: String, folder: &str) -> Result<String, Error> {
        let mut candidate = name.clone();
        let mut number = 1_u32;
        while self.is_taken(&candidate, folder, None).await? {
            number = number.saturating_add(1);
            candidate = format!("{name}-{number}");
        }
        Ok(candidate)
    }

    /// Whether a session in a folder has a name, other than one.
    async fn is_taken(&self, name: &str, folder: &str, other_than: Option<SessionId>) -> Result<bool, Error> {
        let filter = SessionFilter {
            name: Some(name.to_owned()),
            working_directory: Some(folder.to_owned()),
            ..SessionFilter::default()
        };
        let is_another = |session: &Session| session.alias.is_none() && Some(session.id) != other_than;
        Ok(self.sessions(filter).await?.iter().any(is_another))
    }

    /// Gives a session another name. Whoever waits for it may go: it is carried out all the same, in the server's own lane, so that no other
    /// gets the name meanwhile.
    pub(crate) fn begin_rename(&self, session: SessionId, command: Command, parent: &Span) -> Begun {
        let (engine, parent) = (self.clone(), parent.clone());
        Begun::by(task::spawn(async move { engine.rename(session, command, &parent).await }))
    }

    async fn rename(
        &self,
        session: SessionId,
        mut command: Command,
        parent: &Span,
    ) -> Result<Answered, Error> {
        validate_dependencies(&command.id, &command.depends_on, &self.shared.limits)?;
        // In the session's lane it would keep the server's waiting for whatever runs there.
        let depends_on = std::mem::take(&mut command.depends_on);
        let identity = Identity::of(&command, command.fingerprint(session));
        self.wait_for(&identity, session, depends_on).await?;
        let _turn = self.shared.server_lane.turn().await?;
        let log = &self.shared.log;
        let before = match (log.outcome(&identity.principal, &identity.command).await?, &identity.key) {
            (None, Some(key)) => {
                log.outcome_of_key(&identity.principal, KeyScope::Session(session), key).await?
            }
            (before, _) => before,
        };
        if let (None, SessionCommand::Rename { name }) = (before, &command.body) {
            let folder = self.stored(session).await?.working_directory;
            self.check_name(name, &folder, Some(session)).await?;
        }
        self.begin(session, command, parent).await?.ended().await
    }
}

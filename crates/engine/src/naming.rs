//! Names of sessions: each owner's are taken once in a folder, so that a name finds one session there. Sessions of other owners do not count. A session whose creator calls it by an alias of its own (the pi protocol) is found by that,
//! and may be named like another.

use mainstay_log::{KeyScope, SessionFilter};
use mainstay_model::command;
use mainstay_model::decide::Identity;
use mainstay_model::{Command, Error, Principal, Session, SessionCommand, SessionId};

use crate::engine::Engine;

impl Engine {
    /// Refuses a name that another session of this owner in a folder has.
    pub(crate) async fn check_name(
        &self,
        name: &str,
        (owner, folder): (&Principal, &str),
        own: Option<SessionId>,
    ) -> Result<(), Error> {
        match self.is_taken(name, (owner, folder), own).await? {
            true => Err(Error::SessionExists { reference: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// The name for a session that was given none: this one, or this one numbered where another in its folder has it.
    pub(crate) async fn default_name(&self, name: String, of: (&Principal, &str)) -> Result<String, Error> {
        let mut candidate = name.clone();
        let mut number = 1_u32;
        while self.is_taken(&candidate, of, None).await? {
            number = number.saturating_add(1);
            candidate = format!("{name}-{number}");
        }
        Ok(candidate)
    }

    /// Whether a session of this owner in a folder has a name, other than one.
    async fn is_taken(
        &self,
        name: &str,
        (owner, folder): (&Principal, &str),
        other_than: Option<SessionId>,
    ) -> Result<bool, Error> {
        let filter = SessionFilter {
            name: Some(name.to_owned()),
            working_directory: Some(folder.to_owned()),
            ..SessionFilter::default()
        };
        let is_another = |session: &Session| {
            let is_named_so = session.alias.is_none() && session.name == name;
            is_named_so && session.owner == *owner && Some(session.id) != other_than
        };
        Ok(self.sessions(filter).await?.iter().any(is_another))
    }

    /// Refuses what gives a session a name that another has, unless it was answered before. Two that are sent at the same moment may both
    /// pass; creations come one after the other.
    pub(crate) async fn check_rename(&self, session: SessionId, command: &Command) -> Result<(), Error> {
        let SessionCommand::Rename(command::Rename { name }) = &command.body else { return Ok(()) };
        let Session { owner, working_directory, alias, .. } = self.stored(session).await?;
        // One that its creator calls otherwise is not found by its name.
        if alias.is_some() || self.was_answered(session, command).await? {
            return Ok(());
        }
        self.check_name(name, (&owner, &working_directory), Some(session)).await
    }

    async fn was_answered(&self, session: SessionId, command: &Command) -> Result<bool, Error> {
        let Identity { principal, command, key, .. } = Identity::of(command, command.fingerprint(session));
        let log = &self.shared.log;
        let of_key = match &key {
            Some(key) => log.outcome_of_key(&principal, KeyScope::Session(session), key).await?,
            None => None,
        };
        Ok(of_key.is_some() || log.outcome(&principal, &command).await?.is_some())
    }
}

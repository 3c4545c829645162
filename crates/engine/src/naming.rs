//! Names of sessions: each owner's are taken once in a folder, so that a name finds one session there. Sessions of other owners do not count. A session whose creator calls it by an alias of its own (the pi protocol) is found by that,
//! and may be named like another.

use mainstay_log::{KeyScope, SessionFilter};
use mainstay_model::command;
use mainstay_model::command;
use mainstay_model::command::validate_dependencies;
use mainstay_model::decide::Identity;
use mainstay_model::{Answered, Command, Error, Principal, Session, SessionCommand, SessionId};
use tracing::Span;

use crate::engine::{Begun, Engine};
use crate::sync::task;

/// Characters that a name keeps before its number.
const STEM_CHARACTERS: usize = 108;

/// How a name that is taken is numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbering {
    /// From 2 on, behind the whole name: a number in it is a folder's, and counts no sessions.
    Anew,
    /// From the number on that the name has: it is another session's, which may have an alias.
    GoesOn,
}

impl Numbering {
    /// Whether a session of the name keeps another from it.
    fn counts(self, session: &Session) -> bool {
        matches!(self, Self::GoesOn) || session.alias.is_none()
    }

    /// What stands before the number, and the number to go on from.
    fn parts(self, name: &str) -> (&str, u32) {
        let own = || name.rsplit_once('-').and_then(|(stem, number)| Some((stem, number.parse().ok()?)));
        match self {
            Self::Anew => (name, 1),
            Self::GoesOn => own().unwrap_or((name, 1)),
        }
    }
}

impl Engine {
    /// Refuses a name that another session of this owner in a folder has.
    pub(crate) async fn check_name(
        &self,
        name: &str,
        (owner, folder): (&Principal, &str),
        own: Option<SessionId>,
    ) -> Result<(), Error> {
        match self
            .is_taken(name, (owner, folder), |other| other.alias.is_none() && Some(other.id) != own)
            .await?
        {
            true => Err(Error::SessionExists { reference: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// A name that no other session of this owner in a folder has: this one, or this one numbered.
    pub(crate) async fn free_name(
        &self,
        name: &str,
        of: (&Principal, &str),
        numbering: Numbering,
    ) -> Result<String, Error> {
        let (stem, mut number) = numbering.parts(name);
        // With a number it must still be a name.
        let stem: String = stem.chars().take(STEM_CHARACTERS).collect();
        let mut candidate = name.to_owned();
        while self.is_taken(&candidate, of, |other| numbering.counts(other)).await? {
            number = number.saturating_add(1);
            candidate = format!("{stem}-{number}");
        }
        Ok(candidate)
    }

    /// Whether a session of this owner in a folder that counts has a name.
    async fn is_taken(
        &self,
        name: &str,
        (owner, folder): (&Principal, &str),
        counts: impl Fn(&Session) -> bool,
    ) -> Result<bool, Error> {
        let filter = SessionFilter {
            name: Some(name.to_owned()),
            working_directory: Some(folder.to_owned()),
            ..SessionFilter::default()
        };
        let is_it = |session: &Session| session.name == name && session.owner == *owner && counts(session);
        Ok(self.sessions(filter).await?.iter().any(is_it))
    }

    /// Renames a session in the server's own lane, where sessions are created too, so that no other gets the name meanwhile. Whoever waits for
    /// it may go: it is carried out all the same.
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
        // What was answered before is answered again, however many wait.
        if self.was_answered(session, &command).await? {
            return self.begin(session, command, parent).await?.ended().await;
        }
        // In the session's lane it would keep the server's waiting for whatever runs there.
        let depends_on = std::mem::take(&mut command.depends_on);
        let identity = Identity::of(&command, command.fingerprint(session));
        self.wait_for(&identity, session, depends_on).await?;
        let _turn = self.shared.server_lane.turn().await?;
        self.check_rename(session, &command).await?;
        self.begin(session, command, parent).await?.ended().await
    }

    /// Refuses what gives a session a name that another has, unless it was answered before.
    async fn check_rename(&self, session: SessionId, command: &Command) -> Result<(), Error> {
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

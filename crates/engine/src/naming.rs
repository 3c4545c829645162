//! Names of sessions: each owner's are taken once in a folder, so that a name finds one session there. Sessions of other owners do not count.
//! A session whose creator calls it by an alias of its own (the pi protocol) is found by that, and may be named like another.

use mainstay_log::{KeyScope, SessionFilter};
use mainstay_model::command;
use mainstay_model::decide::Identity;
use mainstay_model::{Command, Error, Principal, Session, SessionCommand, SessionId};

use crate::engine::Engine;
use crate::reserved_names::Reservation;

/// From this number on, the number in a name counts no sessions.
const LARGEST_COUNTED: u32 = 1_000_000;
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
        // One that is longer is somebody's own, and counting on from it could come to its end.
        let own = || own().filter(|(_, number)| *number < LARGEST_COUNTED);
        match self {
            Self::Anew => (name, 1),
            Self::GoesOn => own().unwrap_or((name, 1)),
        }
    }
}

impl Engine {
    /// Takes a name for a session of this owner in a folder, until what this gives is dropped: then the session has it, or did not get it.
    ///
    /// # Errors
    /// [`Error::SessionExists`] where another session has it, or is about to.
    pub(crate) async fn take_name(
        &self,
        name: &str,
        (owner, folder): (&Principal, &str),
        session: SessionId,
    ) -> Result<Reservation, Error> {
        let taken = || Error::SessionExists { reference: name.to_owned() };
        // First: whoever takes it later sees in the store what has become of this.
        let key = (owner.clone(), folder.to_owned(), name.to_owned());
        let reservation = self.shared.single_process.names.reserve(key, session).ok_or_else(taken)?;
        let is_another = |other: &Session| other.alias.is_none() && other.id != session;
        match self.is_taken(name, (owner, folder), is_another).await? {
            true => Err(taken()),
            false => Ok(reservation),
        }
    }

    /// A name that no other session of this owner in a folder has or is about to get: this one, or this one numbered.
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
        let key = |name: &str| (of.0.clone(), of.1.to_owned(), name.to_owned());
        // What is reserved first: whoever has just lost the reservation has the name, or never gets it.
        while self.shared.single_process.names.is_reserved(&key(&candidate))
            || self.is_taken(&candidate, of, |other| numbering.counts(other)).await?
        {
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

    /// Takes the name that a rename gives a session; nothing for what was answered before, and where the session is not found by its name.
    ///
    /// # Errors
    /// As [`Self::take_name`].
    pub(crate) async fn name_of_rename(
        &self,
        session: SessionId,
        command: &Command,
    ) -> Result<Option<Reservation>, Error> {
        let SessionCommand::Rename(command::Rename { name }) = &command.body else { return Ok(None) };
        let Session { owner, working_directory, alias, .. } = self.stored(session).await?;
        if alias.is_some() || self.was_answered(session, command).await? {
            return Ok(None);
        }
        self.take_name(name, (&owner, &working_directory), session).await.map(Some)
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

//! Finding the session that a folder, a kind, a project or a name means, creating it where there is none, and bringing it into use.

use std::sync::Arc;
use std::time::Duration;

use mainstay_log::SessionFilter;
use mainstay_model::{
    Answered, Command, CommandId, CreateSession, Error, Outcome, Session, SessionCommand, SessionId,
    SessionKind, SessionSearch, SessionState, SessionWork,
};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::Client;
use crate::KindResolver;

/// Among how many sessions one is looked for first. Most users mean one that was active lately.
const RECENT: usize = 100;

/// The session that a search means: one that is there, or one to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The session that was active last of those that are meant.
    Found(Box<Session>),
    /// There is none; this one would be created.
    New(CreateSession),
}

/// The right to create a session for want of one, until it is dropped.
#[must_use]
pub struct CreationTurn {
    _held: OwnedMutexGuard<()>,
}

impl Client {
    /// The session of this principal that a search means, where there is one.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn find_session(
        &self,
        search: &SessionSearch,
        kinds: &KindResolver,
    ) -> Result<Option<Session>, Error> {
        let folder = search.working_directory.as_deref();
        let preferred = kinds.preferred(self, &search.kinds, folder).await;
        self.find_of(search, preferred.as_ref(), kinds).await
    }

    /// The session of this principal that a search means, else the one to create for it.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn choose_session(
        &self,
        search: SessionSearch,
        kinds: &KindResolver,
    ) -> Result<SessionChoice, Error> {
        let folder = search.working_directory.as_deref();
        let preferred = kinds.preferred(self, &search.kinds, folder).await;
        if let Some(session) = self.find_of(&search, preferred.as_ref(), kinds).await? {
            return Ok(SessionChoice::Found(Box::new(session)));
        }
        let folder = search.working_directory.clone().unwrap_or_else(|| self.usual_folder());
        let kind = match (preferred, search.work) {
            (Some(kind), _) => kind,
            (None, SessionWork::Conversation) => SessionKind::pi(),
            (None, SessionWork::Any | SessionWork::Code) => kinds.default_kind(self, &folder).await,
        };
        Ok(SessionChoice::New(search.creation(kind, || folder)))
    }

    /// Waits until no other client creates a session for want of one. A client that was told to create a session takes its turn, chooses
    /// again and then creates, so that two clients who mean the same session do not create two.
    pub async fn creation_turn(&self) -> CreationTurn {
        let turn = Arc::clone(&self.engine.shared.single_process.creation_turn);
        CreationTurn { _held: turn.lock_owned().await }
    }

    /// The folder of a new session for a client that does not say where it works: its home, else the daemon's.
    pub fn usual_folder(&self) -> String {
        let of_client = || self.environment()?.variable("HOME").map(str::to_owned);
        let of_daemon = || std::env::home_dir().map(|home| home.display().to_string());
        of_client().or_else(of_daemon).unwrap_or_else(|| "/".to_owned())
    }

    /// Starts a session where it is idle, and waits at most `limit` until it is neither idle nor warming up. An agent stays idle until it
    /// has something to do.
    ///
    /// # Errors
    /// As [`Client::submit`] of a start.
    pub async fn bring_into_use(&self, session: SessionId, limit: Duration) -> Result<(), Error> {
        let found = self.visible_session(session).await?;
        if found.is_agent() {
            return Ok(());
        }
        if found.state() == SessionState::Uninitialized {
            let id = CommandId::anonymous(Uuid::now_v7());
            let start = Command::new(id, self.source(), SessionCommand::Start);
            let failed = match self.submit(session, start).await {
                Ok(Answered { outcome: Outcome::Failed { error }, .. }) | Err(error) => Some(error),
                Ok(Answered { outcome: Outcome::Done { .. }, .. }) => None,
            };
            match failed {
                // Another client has started it just now.
                None | Some(Error::NotOffered { .. }) => {}
                Some(error) => return Err(error),
            }
        }
        self.settled(session, limit).await.map(drop)
    }

    /// Looks among the latest sessions of the principal first, and among all only where none of those is meant.
    async fn find_of(
        &self,
        search: &SessionSearch,
        preferred: Option<&SessionKind>,
        kinds: &KindResolver,
    ) -> Result<Option<Session>, Error> {
        for limit in [Some(RECENT), None] {
            let filter = SessionFilter {
                working_directory: search.working_directory.clone(),
                name: search.name.clone(),
                owner: Some(self.principal().clone()),
                limit,
                ..SessionFilter::default()
            };
            let sessions = self.sessions(filter).await?;
            let same = match preferred {
                Some(kind) => self.same_kernel(kind, &sessions, search, kinds).await,
                None => Vec::new(),
            };
            let found = search.most_recent(self.principal(), &sessions, &same);
            if found.is_some() || limit.is_some_and(|limit| sessions.len() < limit) {
                return Ok(found.cloned());
            }
        }
        Ok(None)
    }

    /// The kinds of these sessions that the kernel of this kind runs.
    async fn same_kernel(
        &self,
        kind: &SessionKind,
        sessions: &[Session],
        search: &SessionSearch,
        kinds: &KindResolver,
    ) -> Vec<SessionKind> {
        let mut others: Vec<_> = sessions.iter().map(|session| session.kind.clone()).collect();
        others.sort();
        others.dedup();
        kinds.same_kernel(self, kind.clone(), others, search.working_directory.as_deref()).await
    }
}

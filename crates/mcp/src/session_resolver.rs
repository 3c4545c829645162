//! Which session a call means that names none: the one its connection used last, else the one that the engine's rule finds in the client's
//! folder, where that is known.

use mainstay_engine::{Client, KindResolver, SessionChoice};
use mainstay_model::{Error, Language, Session, SessionId, SessionKind, SessionSearch, SessionWork};

/// What it takes to tell which session is meant.
pub(super) struct SessionResolver {
    pub(super) client: Client,
    /// The client's folder, where it is known.
    pub(super) folder: Option<String>,
    /// The session that the connection used last.
    pub(super) last_used: Option<SessionId>,
    /// Which kind a folder is for, and which kinds one kernel runs.
    pub(super) kinds: KindResolver,
}

impl SessionResolver {
    /// The session, where there is one.
    pub(super) async fn find(&self) -> Result<Option<SessionId>, Error> {
        match self.last_used {
            Some(session) => Ok(Some(session)),
            None => {
                let found = self.client.find_session(&self.search(Vec::new()), &self.kinds).await?;
                Ok(found.map(|session| session.id))
            }
        }
    }

    /// The session as it is; none where there is none any more, or it may not be seen.
    pub(super) async fn session(&self) -> Result<Option<Session>, Error> {
        let Some(session) = self.find().await? else { return Ok(None) };
        match self.client.status(session).await {
            Ok(status) => Ok(Some(status.session)),
            Err(Error::SessionNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The session, else the one to create. Unless the connection used one already, it is of one of these kinds, where there are any.
    pub(super) async fn choose(&self, kinds: Vec<SessionKind>) -> Result<SessionChoice, Error> {
        match self.last_used {
            Some(session) => {
                let found = self.client.status(session).await?.session;
                Ok(SessionChoice::Found(Box::new(found)))
            }
            None => self.client.choose_session(self.search(kinds), &self.kinds).await,
        }
    }

    /// Where the code of a session runs that is created without a word about it.
    pub(super) fn folder(&self) -> String {
        self.folder.clone().unwrap_or_else(|| self.client.usual_folder())
    }

    /// Of what kind such a session is.
    pub(super) async fn kind(&self) -> SessionKind {
        self.kinds.default_kind(&self.client, &self.folder()).await
    }

    fn search(&self, kinds: Vec<SessionKind>) -> SessionSearch {
        SessionSearch {
            working_directory: self.folder.clone(),
            work: SessionWork::Code,
            language: kinds.iter().find_map(Language::of),
            kinds,
            ..SessionSearch::default()
        }
    }
}

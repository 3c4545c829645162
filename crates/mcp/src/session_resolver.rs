//! Which session a call means that names none: the one its connection used last, else its principal's most recently active session that runs
//! code, of the client's folder where that is known; and of what kind and where one would be that it creates.

use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, Session, SessionId, SessionKind};

use mainstay_gateway::DefaultKind;

/// Among how many sessions the most recently active one that runs code is looked for.
const RECENT: usize = 100;

/// Which sessions are looked for.
pub(super) type SessionPredicate<'a> = &'a (dyn Fn(&Session) -> bool + Sync);

/// What it takes to tell which session is meant.
pub(super) struct SessionResolver {
    pub(super) client: Client,
    /// The client's folder, where it is known.
    pub(super) folder: Option<String>,
    /// The session that the connection used last.
    pub(super) last_used: Option<SessionId>,
    /// What sessions are for whose kind nobody says.
    pub(super) default_kind: DefaultKind,
}

impl SessionResolver {
    /// The session that the connection used last.
    pub(super) fn used(&self) -> Option<SessionId> {
        self.last_used
    }

    /// The session, where there is one.
    pub(super) async fn find(&self) -> Result<Option<SessionId>, Error> {
        self.find_for(&|_| true).await
    }

    /// The same; the most recently active one counts where it fits.
    pub(super) async fn find_for(&self, fits: SessionPredicate<'_>) -> Result<Option<SessionId>, Error> {
        match self.used() {
            Some(session) => Ok(Some(session)),
            None => self.most_recent(fits).await,
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

    /// Where the code of a session runs that is created without a word about it.
    pub(super) fn folder(&self) -> String {
        let of_user = || self.client.environment()?.variable("HOME").map(str::to_owned);
        let of_daemon = || std::env::home_dir().map(|home| home.display().to_string());
        self.folder.clone().or_else(of_user).or_else(of_daemon).unwrap_or_else(|| "/".to_owned())
    }

    /// Of what kind such a session is.
    pub(super) async fn kind(&self) -> SessionKind {
        self.default_kind.of(&self.client, &self.folder()).await
    }

    async fn most_recent(&self, fits: SessionPredicate<'_>) -> Result<Option<SessionId>, Error> {
        let filter = SessionFilter {
            working_directory: self.folder.clone(),
            limit: Some(RECENT),
            ..SessionFilter::default()
        };
        let sessions = self.client.sessions(filter).await?;
        let is_meant = |session: &&Session| {
            !session.is_agent() && session.owner == *self.client.principal() && fits(session)
        };
        Ok(sessions.iter().find(is_meant).map(|session| session.id))
    }
}

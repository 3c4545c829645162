//! Who asks, and which session is meant.

use axum::extract::{Extension, FromRequestParts};
use axum::http::request::Parts;
use mainstay_engine::{Client, CommandStatus};
use mainstay_log::SessionFilter;
use mainstay_model::{Action, CommandId, Error, IdempotencyKey, Session, SessionId};

use super::coding;
use super::daemon::HttpDaemon;
use super::media::Media;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::trace::within;

/// Characters of what a client calls itself.
const NAME_CHARACTERS: usize = 64;

/// The header in which a client says what it is; it stands beside what it does, for all to see.
const NAME_HEADER: &str = "mainstay-client";

/// Someone who asks for something, maybe of a session.
pub(super) struct Caller {
    pub(super) daemon: HttpDaemon,
    pub(super) client: Client,
    /// Until when it may be told something.
    pub(super) admission: Admission,
    /// Whether it takes what is compressed.
    pub(super) takes_gzip: bool,
    /// How it takes what it is told; none where it would like something else.
    pub(super) takes: Option<Media>,
    /// What the path, or `?session=`, says.
    reference: Option<String>,
}

impl FromRequestParts<HttpDaemon> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, daemon: &HttpDaemon) -> Result<Self, Problem> {
        let Extension(admission) = Extension::<Admission>::from_request_parts(parts, daemon)
            .await
            .map_err(|_| Problem::from(Error::Unauthorized))?;
        let name = parts.headers.get(NAME_HEADER).and_then(|name| name.to_str().ok()).unwrap_or("http");
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARACTERS).collect();
        let client = daemon
            .engine
            .attach(admission.access.clone(), if name.trim().is_empty() { "http" } else { &name });
        let client = within(client, parts);
        let takes_gzip = coding::takes_gzip(&parts.headers);
        let takes = Media::accepted(&parts.headers);
        let reference = reference_of(parts);
        Ok(Self { daemon: daemon.clone(), client, admission, takes_gzip, takes, reference })
    }
}

/// What a request says of the session that it means.
fn reference_of(parts: &Parts) -> Option<String> {
    let mut segments = parts.uri.path().split('/').skip(1);
    if segments.next() == Some("sessions")
        && let Some(segment) = segments.next().filter(|segment| !segment.is_empty())
    {
        // As in a query, percent-encoded; a plus is a plus there.
        let segment = segment.replace('+', "%2B");
        return form_urlencoded::parse(format!("s={segment}").as_bytes())
            .next()
            .map(|(_, text)| text.into_owned());
    }
    query(parts, "session")
}

/// A parameter of the query.
pub(super) fn query(parts: &Parts, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(parts.uri.query()?.as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

impl Caller {
    /// How what it asked for is answered: who would like something else gets JSON, rather than no answer to what was carried out.
    pub(super) fn answers(&self) -> Media {
        self.takes.unwrap_or(Media::Json)
    }

    /// The session that is meant: the one that is named, else the most recent in which this can be done at all.
    pub(super) async fn session(&self, action: Option<Action>) -> Result<SessionId, Error> {
        if let Some(reference) = &self.reference {
            return self.client.resolve(reference).await;
        }
        let sessions = self.client.sessions(SessionFilter::default()).await?;
        let is_fit = |session: &&Session| action.is_none_or(|action| action.is_of(session.capabilities()));
        let found = sessions.iter().find(is_fit).map(|session| session.id);
        found.ok_or_else(|| Error::SessionNotFound { reference: "the most recent one".to_owned() })
    }

    /// The same, also one that was deleted, by its whole id: a command that is sent again is answered all the same.
    pub(super) async fn session_or_deleted(&self) -> Result<SessionId, Error> {
        let id = self.reference.as_ref().and_then(|reference| reference.parse().ok());
        match (self.session(None).await, id) {
            (Err(Error::SessionNotFound { .. }), Some(session)) => Ok(session),
            (resolved, _) => resolved,
        }
    }

    /// Refuses a key where no session is named: it counts in one session, and the most recent may be another the next time.
    pub(super) fn must_name_session(&self, key: Option<&IdempotencyKey>) -> Result<(), Error> {
        match (&self.reference, key) {
            (None, Some(_)) => Err(Error::InvalidArgument {
                argument: "Idempotency-Key".to_owned(),
                reason: "a key counts in one session: name it with `?session=` or in the path".to_owned(),
            }),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// The session that is meant by a command of this name: where none is named, the one that it was given to before.
    pub(super) async fn session_of(
        &self,
        command: Option<&CommandId>,
        action: Option<Action>,
    ) -> Result<SessionId, Error> {
        if let (None, Some(command)) = (&self.reference, command) {
            match self.client.command(command).await {
                Ok(CommandStatus::Waits { session } | CommandStatus::Runs { session }) => return Ok(session),
                Ok(CommandStatus::Ended(stored)) => {
                    if let Some(session) = stored.session {
                        return Ok(session);
                    }
                }
                Err(Error::CommandNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.session(action).await
    }

    /// Whether all sessions are meant.
    pub(super) fn means_all(&self) -> bool {
        self.reference.as_deref() == Some("*")
    }
}

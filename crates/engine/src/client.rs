//! A client: one connection, on behalf of one principal. All that a gateway asks of sessions comes through here, and here
//! it is checked what the principal may see and drive. A session that it may not see is not there for it.

mod access;
mod artifacts;
mod asks;
mod buffers;
mod commands;
mod delegations;
mod reloading;
mod resumable_connections;
mod run_records;
mod schedules;
mod session_choice;
mod sessions;
mod subscription;
mod testing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay_log::SessionFilter;
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::client_info::ClientInfo;
use mainstay_model::{
    Access, Content, Diagnostic, Error, Event, Position, Principal, Rights, Seq, Session, SessionId,
    SessionKind, Source, TextPosition, TranscriptEntry,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{AgentQuestion, Completions, Conversation, Environment, ResourceUsage, WarmUpProgress};
use serde_json::Value;
use tokio::sync::watch;
use tracing::Span;

use crate::clock::now;
use crate::context::conversation_of;
use crate::engine::{Engine, SessionStatus};
use crate::presence::Presence;
use crate::warm_up_progress::FollowedWarmUp;

use self::access::not_found;
pub use self::artifacts::ArtifactContent;
pub use self::asks::WaitingAsk;
pub use self::delegations::GivenTask;
pub use self::reloading::Reloading;
pub use self::schedules::NewSchedule;
pub use self::session_choice::{CreationTurn, SessionChoice};
pub use self::subscription::{ClientSubscription, LiveSubscription};
pub use self::testing::CoverageQuestion;

/// A client of the engine. Its clones are the same client; it is gone with the last of them.
#[derive(Clone)]
pub struct Client {
    engine: Engine,
    access: Arc<Access>,
    presence: Arc<Presence>,
    /// Whether it is there for as long as its user wants to hear of what it asked for.
    is_connection: bool,
    /// What its commands are part of.
    trace: Span,
    /// What it has in its environment, where it says so: the sessions that it creates get it.
    environment: Option<Environment>,
}

impl Engine {
    /// Attaches a client that acts for a principal with these rights and calls itself `name`.
    pub fn attach(&self, access: Access, name: &str) -> Client {
        let presence = self.shared.clients.come(access.principal.clone(), name, now());
        Client::new(self.clone(), access, presence)
    }
}

impl Client {
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn new(engine: Engine, access: Access, presence: Presence) -> Self {
        Self {
            engine,
            access: Arc::new(access),
            presence: Arc::new(presence),
            is_connection: false,
            trace: Span::none(),
            environment: None,
        }
    }

    /// The same client; it is a connection, which lasts for as long as its user wants to hear of what it asked for. Where it leaves before
    /// that has ended, the session says so.
    #[must_use]
    pub fn as_connection(self) -> Self {
        Self { is_connection: true, ..self }
    }

    /// Notes that it has left, though its clones may still wait for answers.
    pub fn leave(&self) {
        self.presence.leave();
    }

    /// Whether the connection that asked for what runs in a session has left.
    pub fn is_orphaned(&self, session: &Session) -> bool {
        self.access.sees(session) && self.engine.is_orphaned(session)
    }

    /// Word of each client that leaves from now on.
    pub fn departures(&self) -> watch::Receiver<()> {
        self.engine.departures()
    }

    /// The same client; its commands are part of what this span stands for.
    #[must_use]
    pub fn traced(self, trace: Span) -> Self {
        Self { trace, ..self }
    }

    /// Whom it stands for.
    pub fn principal(&self) -> &Principal {
        &self.access.principal
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        self.presence.name()
    }

    /// What it has in its environment, where it says so.
    pub fn environment(&self) -> Option<&Environment> {
        self.environment.as_ref()
    }

    /// What its commands have as their source.
    pub fn source(&self) -> Source {
        Source::Client { principal: self.access.principal.clone(), name: self.presence.name().to_owned() }
    }

    /// Who else is there, as far as this client may know.
    pub fn clients(&self) -> Vec<ClientInfo> {
        let mut clients = self.engine.clients();
        if self.access.rights != Rights::All {
            clients.retain(|client| client.principal == self.access.principal);
        }
        clients
    }

    /// The same client, which has this in its environment.
    #[must_use]
    pub fn with_environment(self, environment: Option<Environment>) -> Self {
        Self { environment, ..self }
    }

    /// The same, large ones with all that they say instead of an object.
    ///
    /// # Errors
    /// As [`Client::entries`]; [`Error::ObjectDamaged`].
    pub async fn whole_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        let mut entries = self.entries(session, from, limit).await?;
        for placed in &mut entries {
            placed.entry.content = Content::Text(self.engine.text_of(placed).await?);
        }
        Ok(entries)
    }

    /// The entries of a session's transcript from the one with this index on, in order, at most `limit`.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::EntryDamaged`], [`Error::StoreFailed`].
    pub async fn entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        self.must_see(session).await?;
        self.engine.entries(session, from, limit).await
    }

    /// Whether runners of the kinds that were used are started; why not only for who may do everything, since it tells of
    /// others' sessions.
    pub fn breakers(&self) -> BTreeMap<SessionKind, BreakerStatus> {
        self.without_own_reasons(self.engine.breakers())
    }

    /// Whether turns begin with the providers of models that agents used.
    pub fn provider_breakers(&self) -> BTreeMap<String, BreakerStatus> {
        self.without_own_reasons(self.engine.provider_breakers())
    }

    /// What the agent of a session is shown of its transcript, whole, and how it goes on.
    ///
    /// # Errors
    /// As [`Client::entries`].
    pub async fn conversation(&self, session: SessionId) -> Result<Conversation, Error> {
        let session = self.visible_session(session).await?;
        conversation_of(self.engine.shared.log.as_ref(), &session).await
    }

    /// Checks code without running it.
    ///
    /// # Errors
    /// [`Error::NotOffered`], [`Error::Timeout`], [`Error::WorkerFailed`], [`Error::SessionNotFound`],
    /// [`Error::NotPermitted`], and what is wrong with the code's form.
    pub async fn check(
        &self,
        session: SessionId,
        code: String,
        file: Option<String>,
    ) -> Result<Vec<Diagnostic>, Error> {
        self.must_drive(session).await?;
        self.engine.check(session, code, file).await
    }

    /// Completes at a cursor.
    ///
    /// # Errors
    /// As [`Client::check`]; [`Error::InvalidArgument`] where the code has no such place.
    pub async fn complete(
        &self,
        session: SessionId,
        code: String,
        cursor: TextPosition,
    ) -> Result<Completions, Error> {
        TextPosition::named(&code, Some(cursor.line), Some(cursor.column))?;
        self.must_drive(session).await?;
        self.engine.complete(session, code, cursor).await
    }

    /// Asks a session's kernel about what it has.
    ///
    /// # Errors
    /// As [`Client::check`]; [`Error::InvalidArgument`] where nothing has the name that is asked for.
    pub async fn query(&self, session: SessionId, query: KernelQuery) -> Result<KernelAnswer, Error> {
        self.must_drive(session).await?;
        self.engine.query(session, query).await
    }

    /// The session `reference` names: an id, the end of one, or a name.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::SessionAmbiguous`], [`Error::StoreFailed`].
    pub async fn resolve(&self, reference: &str) -> Result<SessionId, Error> {
        let mut candidates = self.engine.resolve(reference).await?;
        if self.access.rights != Rights::All {
            let mut seen = Vec::new();
            for session in candidates {
                if self.sees(session).await? {
                    seen.push(session);
                }
            }
            candidates = seen;
        }
        if candidates.len() > 1 {
            candidates = self.own_or_all(candidates).await?;
        }
        match candidates.as_slice() {
            [] => Err(Error::SessionNotFound { reference: reference.to_owned() }),
            [session] => Ok(*session),
            [_, ..] => Err(Error::SessionAmbiguous {
                reference: reference.to_owned(),
                candidates: candidates.iter().map(SessionId::short).collect(),
            }),
        }
    }

    /// A session as committed, and what its worker uses.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`].
    pub async fn status(&self, session: SessionId) -> Result<SessionStatus, Error> {
        let status = self.engine.status(session).await?;
        match self.access.sees(&status.session) {
            true => Ok(status),
            false => Err(not_found(session)),
        }
    }

    /// A session as committed, without asking its worker anything. Where its task has it as the log does, nothing is read.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub(crate) async fn visible_session(&self, session: SessionId) -> Result<Session, Error> {
        let stored = self.engine.stored(session).await?;
        if self.access.sees(&stored) { Ok(stored) } else { Err(not_found(session)) }
    }

    /// The sessions that match, most recently active first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.engine.sessions(self.seen(filter)).await
    }

    /// How many sessions match.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.engine.count_sessions(self.seen(filter)).await
    }

    /// The events of a session after a cursor, at most `limit`.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] where it may not be seen, [`Error::StoreFailed`].
    pub async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        self.must_see(session).await?;
        self.engine.events(session, after, limit).await
    }

    /// The events of all sessions that may be seen after a cursor, in the order of the log, at most `limit`; none only where
    /// there are none.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn all_events(&self, mut after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        loop {
            let page = self.engine.all_events(after, limit).await?;
            let Some(last) = page.last() else { return Ok(page) };
            after = last.position;
            let mut seen = Vec::with_capacity(page.len());
            for event in page {
                if self.sees(event.session).await? {
                    seen.push(event);
                }
            }
            if !seen.is_empty() {
                return Ok(seen);
            }
        }
    }

    /// The place of the newest event of all.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn last_position(&self) -> Result<Position, Error> {
        self.engine.shared.log.last_position().await
    }

    /// What the agent of a session says of itself. An idle agent is not started for it.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NotOfKind`] of a kernel, [`Error::NotOffered`] where it is not there,
    /// [`Error::Timeout`], and what the agent says where it refuses.
    pub async fn question(&self, session: SessionId, question: AgentQuestion) -> Result<Value, Error> {
        self.must_see(session).await?;
        self.engine.question(session, question).await
    }

    /// Waits until the session is neither idle nor warming up, at most `limit`, and returns the session as it then is.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`].
    pub async fn settled(&self, session: SessionId, limit: Duration) -> Result<Arc<Session>, Error> {
        self.must_see(session).await?;
        self.engine.settled(session, limit).await
    }

    /// How far a session is that is given its definitions back.
    pub fn warm_up(&self, session: &Session) -> Option<WarmUpProgress> {
        self.access.sees(session).then(|| self.engine.warm_up(session)).flatten()
    }

    /// What there is to hear, from now on, of how far a session is each time it is given its definitions back.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`].
    pub async fn follow_warm_up(&self, session: SessionId) -> Result<FollowedWarmUp, Error> {
        self.must_see(session).await?;
        Ok(self.engine.shared.warm_ups.follow(session))
    }

    /// What a live session's worker uses.
    pub async fn usage(&self, session: SessionId) -> Option<ResourceUsage> {
        match self.sees(session).await {
            Ok(true) => self.engine.usage(session).await,
            Ok(false) | Err(_) => None,
        }
    }

    /// Those of the sessions that are this principal's own, where there are some: what others call theirs hides none of them.
    async fn own_or_all(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>, Error> {
        let mut own = Vec::new();
        for session in &sessions {
            let found = self.engine.session(*session).await?;
            if found.is_some_and(|found| found.owner == self.access.principal) {
                own.push(*session);
            }
        }
        Ok(if own.is_empty() { sessions } else { own })
    }
}

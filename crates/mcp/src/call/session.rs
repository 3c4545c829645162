//! The session of a call: found, created where there is none, and brought up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mainstay_engine::SessionChoice;
use mainstay_gateway::command::anonymous;
use mainstay_model::{
    Action, Capabilities, CommandId, CreateSession, Error, Outcome, Response, Session, SessionCommand,
    SessionId, SessionKind, SessionState,
};

use super::{Call, unexpected};
use crate::session_resolver::SessionResolver;

/// How long is waited for a session to get ready. Calls are answered before that; what starts a worker has limits of its own.
const SETTLE_LIMIT: Duration = Duration::from_hours(6);

impl Call {
    /// The session the call turned out to be about.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.under_way.session()
    }

    /// The session the call is about, where there is one.
    pub(crate) async fn find(&self, reference: Option<&str>) -> Result<Option<SessionId>, Error> {
        let found = match self.named(reference).await? {
            Some(session) => Some(session),
            None => self.meant().find().await?,
        };
        if let Some(session) = found {
            self.is_about(session);
        }
        Ok(found)
    }

    /// The session that the call names, or that the call used which it repeats.
    async fn named(&self, reference: Option<&str>) -> Result<Option<SessionId>, Error> {
        match reference {
            Some(reference) => self.client.resolve(reference).await.map(Some),
            None => Ok(self.repeatable.session_before(&self.client).await),
        }
    }

    /// The session the call is about; where there is none, `action` is refused as by an idle session.
    pub(crate) async fn existing(&self, reference: Option<&str>, action: Action) -> Result<SessionId, Error> {
        let found = self.find(reference).await?;
        let Some(session) = found else {
            let (state, kind) = (SessionState::Uninitialized, self.meant().kind().await);
            return Err(Error::NotOffered { action, state, kind, fault: None });
        };
        Ok(session)
    }

    /// The session in which the call does this, created where there is none. The connection's next calls take it too. One whose kind
    /// does not know it is left alone.
    pub(crate) async fn workplace(
        &self,
        reference: Option<&str>,
        action: Action,
    ) -> Result<SessionId, Error> {
        self.workplace_for(reference, action, Vec::new()).await
    }

    /// The same; one that the call does not name is of one of these kinds, where there are any.
    pub(crate) async fn workplace_for(
        &self,
        reference: Option<&str>,
        action: Action,
        kinds: Vec<SessionKind>,
    ) -> Result<SessionId, Error> {
        let _one_at_a_time = self.server.creation.lock().await;
        let choice = match self.named(reference).await? {
            Some(session) => SessionChoice::Found(Box::new(self.client.status(session).await?.session)),
            None => self.meant().choose(kinds.clone()).await?,
        };
        let session = match choice {
            SessionChoice::Found(found) => self.found_for(action, &found)?,
            SessionChoice::New(_) => {
                let _turn = self.client.creation_turn().await;
                // Another client may have created it since.
                match self.meant().choose(kinds).await? {
                    SessionChoice::Found(found) => self.found_for(action, &found)?,
                    SessionChoice::New(create) => self.create_for(action, create).await?,
                }
            }
        };
        self.server.use_session(session);
        Ok(session)
    }

    fn found_for(&self, action: Action, found: &Session) -> Result<SessionId, Error> {
        self.is_about(found.id);
        match action.is_of(found.capabilities()) {
            true => Ok(found.id),
            false => Err(Error::NotOfKind { action, kind: found.kind.clone() }),
        }
    }

    /// Creates a session for want of one, and keeps what is to be said of that.
    async fn create_for(&self, action: Action, create: CreateSession) -> Result<SessionId, Error> {
        let kind = create.kind.clone();
        if !action.is_of(Capabilities::of_kind(&kind)) {
            return Err(Error::NotOfKind { action, kind });
        }
        let session = self.create(anonymous(), create).await?;
        let dropped = self.client.status(session).await?.dropped_environment;
        let said = format!("a new {kind} session was created for this; create_session takes another kind");
        let said = dropped.into_iter().fold(said, |said, dropped| format!("{said}\nwarning: {dropped}"));
        self.created.set(said).ok();
        Ok(session)
    }

    /// Creates a session. The connection's next calls take it.
    pub(crate) async fn create(&self, id: CommandId, create: CreateSession) -> Result<SessionId, Error> {
        let outcome = self.client.create(id, create).await?;
        match outcome {
            Outcome::Done { response: Response::Created { session } } => {
                self.use_session(session);
                Ok(session)
            }
            Outcome::Done { response } => Err(unexpected(&response)),
            Outcome::Failed { error } => Err(error),
        }
    }

    /// What tells which session is meant where none is named.
    pub(crate) fn meant(&self) -> SessionResolver {
        SessionResolver {
            client: self.client.clone(),
            folder: self.folder.clone(),
            last_used: self.server.last_used(),
            kinds: self.server.daemon.kind_resolver.clone(),
        }
    }

    /// Whether the next calls of this client remember the session that this one uses.
    pub(crate) fn is_of_connection(&self) -> bool {
        self.server.is_connection() || !self.is_of_newest()
    }

    /// The call is about this session.
    pub(crate) fn is_about(&self, session: SessionId) {
        self.under_way.set_session(session);
    }

    /// The call is about this session, and the connection's next calls are too.
    pub(crate) fn use_session(&self, session: SessionId) {
        self.is_about(session);
        self.server.use_session(session);
    }

    /// A session that came to be: the connection's next calls take it once it is there. An agent's conversation runs
    /// no code: they go on with what they had, and it stays idle until someone prompts it.
    pub(crate) async fn take_up(&self, session: SessionId) -> Result<Session, Error> {
        let stored = self.client.status(session).await?.session;
        if stored.is_agent() {
            return Ok(stored);
        }
        self.use_session(session);
        Ok((*self.bring_up(session).await?).clone())
    }

    /// Starts an idle session, and waits until it is done with warming up.
    pub(crate) async fn bring_up(&self, session: SessionId) -> Result<Arc<Session>, Error> {
        if self.client.status(session).await?.session.state() == SessionState::Uninitialized {
            match self.submit_beside(session, SessionCommand::Start).await {
                // Someone else may have been quicker.
                Ok(_) | Err(Error::NotOffered { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut settled = pin!(self.settled(session));
        tokio::select! {
            biased;
            settled = &mut settled => return settled,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        self.say("the session is getting ready").await;
        let mut warm_up = self.client.follow_warm_up(session).await?;
        loop {
            tokio::select! {
                biased;
                settled = &mut settled => return settled,
                Some(progress) = warm_up.next() => self.say(progress.to_string()).await,
            }
        }
    }

    /// Waits until a session is neither idle nor warming up, for as long as that takes; its call is answered before that.
    pub(crate) async fn settled(&self, session: SessionId) -> Result<Arc<Session>, Error> {
        self.client.settled(session, SETTLE_LIMIT).await
    }
}

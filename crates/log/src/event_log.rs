//! The events of sessions, in order: appending them, reading them, and what is stored with them.

use async_trait::async_trait;
use futures::future::BoxFuture;
use mainstay_model::decide::Answer;
use mainstay_model::{
    CommandFingerprint, CommandId, Error, Event, EventBody, IdempotencyKey, Metadata, Outcome, Position,
    Principal, Seq, Session, SessionId, Timestamp, Version,
};
use tracing::Span;

use crate::FailedAppend;

/// What comes of an append: the events with their positions, once all of it is durable.
pub type Appended = BoxFuture<'static, Result<Vec<Event>, FailedAppend>>;

/// Stores the events of sessions, with the outcomes and the projection that each append brings.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events, outcomes and the projection in one transaction. Queued when called, in the order of the calls;
    /// the future is done once all of it is durable, and gives the events with their positions. Dropping the future
    /// takes nothing back. A session that is not there is created by an append that begins with
    /// [`EventBody::SessionCreated`], at seq 1 and under [`Epoch::FIRST`]. All moments are cut to the microsecond.
    ///
    /// # Errors
    /// The future fails with [`AppendError`](crate::AppendError), and gives the append back. Fenced: the epoch is not the
    /// newest of the session. Refused: the first seq is not the next one; [`Error::SessionNotFound`] where the session is
    /// not there and this does not create it, where it was deleted, or where this begins with entries of one that was and
    /// that no other has; [`Error::CommandConflict`] where a command has an outcome already, [`Error::KeyConflict`] where
    /// its idempotency key has. Unavailable: the disk refuses, or too much waits for it already. Then nothing of this
    /// append is there; others that were queued beside it are untouched.
    fn append(&self, append: Append) -> Appended;

    /// Stores the outcome of a command that no session has accepted. Its idempotency key is not kept: keys count in a session.
    ///
    /// # Errors
    /// [`Error::CommandConflict`] where the command has an outcome already, [`Error::StoreFailed`].
    async fn store_refusal(&self, answer: Answer) -> Result<(), Error>;

    /// Makes the caller the session's owner: appends under earlier epochs are refused from now on.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::StoreFailed`].
    async fn claim(&self, session: SessionId) -> Result<Epoch, Error>;

    /// The events of a session after `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`Error::StoreFailed`]; a session that does not exist has no events.
    async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error>;

    /// The events of all sessions after `after`, in the order of the log, at most `limit`. Whoever reads on from the last
    /// of them misses none: an event becomes visible only with, or after, those before it.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error>;

    /// The place of the newest event; [`Position::ZERO`] where there is none.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn last_position(&self) -> Result<Position, Error>;

    /// The stored answer to a command.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn outcome(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<Option<StoredOutcome>, Error>;

    /// The stored answer to a command with this idempotency key, where the key counts.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn outcome_of_key(
        &self,
        principal: &Principal,
        scope: KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error>;

    /// How many outcomes are stored. It looks at each.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn count_outcomes(&self) -> Result<u64, Error>;

    /// A session's projection, also of one that was deleted.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn session(&self, session: SessionId) -> Result<Option<Session>, Error>;
}

/// How many times a session's ownership has been taken. Only the newest may append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Held by whoever creates a session.
    pub const FIRST: Self = Self(1);
}

/// What is appended together.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session to which the events are appended.
    pub session: SessionId,
    /// By its owner of this epoch.
    pub epoch: Epoch,
    /// The seq of the first event; the others follow without gaps.
    pub first: Seq,
    /// The events, in order.
    pub events: Vec<NewEvent>,
    /// The outcomes they bring about.
    pub outcomes: Vec<Answer>,
    /// The session's version once their commands had ended. A copy for one more id has that of the first.
    pub version: Version,
    /// The session after them.
    pub projection: Session,
    /// The span of the append; none where it is part of no trace.
    pub trace: Span,
}

/// An event before it has its place in the whole log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The time when the event happened.
    pub at: Timestamp,
    /// The cause of the event: its source and command.
    pub metadata: Metadata,
    /// What the event says.
    pub body: EventBody,
}

/// An outcome as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOutcome {
    /// What the command said.
    pub fingerprint: CommandFingerprint,
    /// The outcome of the command.
    pub outcome: Outcome,
    /// The session's version once the command had ended.
    pub version: Version,
    /// In which session it ended; none where that was not kept yet.
    pub session: Option<SessionId>,
}

/// Where an idempotency key counts: each session has its own, and what creates sessions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// Commands that create sessions.
    Creations,
    /// Commands to this session.
    Session(SessionId),
}

//! The events of sessions, in order: appending them, reading them, and what is stored with them.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use mainstay_model::decide::Answer;
use mainstay_model::{
    CommandFingerprint, CommandId, Error, Event, EventBody, IdempotencyKey, Metadata, Outcome, Position,
    Principal, Seq, Session, SessionId, TakenNotices, Timestamp, Version,
};
use tracing::Span;

use crate::{ClaimError, Epoch, FailedAppend};

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
    /// The answer to an append may be lost after the commit. The same append may be sent again: where all of it is stored
    /// already, with the same epoch, seqs and content, it counts as done, and nothing is stored twice.
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

    /// Makes whoever opened the store the session's owner: appends under earlier epochs are refused from now on. Its own
    /// session can be claimed again, by a daemon that was started again or another task. Claiming renews a lease that has
    /// lapsed.
    ///
    /// # Errors
    /// [`ClaimError::Held`] where another owner has it whose lease is live; [`Error::SessionNotFound`],
    /// [`Error::StoreFailed`].
    async fn claim(&self, session: SessionId) -> Result<Epoch, ClaimError>;

    /// The newest epoch of a session, under which alone something can be appended; none where the session is not there.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn newest_epoch(&self, session: SessionId) -> Result<Option<Epoch>, Error>;

    /// Which notices of the session's runner are taken, by the newest append that said so ([`Append::taken`]); none where none
    /// did, or the session is not there.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn taken(&self, session: SessionId) -> Result<Option<TakenNotices>, Error>;

    /// Renews the lease of whoever opened the store, for all of its sessions. Gives after how long it is to be renewed again;
    /// none where it does not lapse as long as the store is open.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn renew(&self) -> Result<Option<Duration>, Error>;

    /// Gives the lease up: others may claim the sessions at once.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn release(&self) -> Result<(), Error>;

    /// The newest position, after each change that whoever opened the store did not make: first at once, then as others
    /// append. Several changes may come as one. It ends when the store is closed, and at once where nobody else can append.
    fn changes_by_others(&self) -> BoxStream<'static, Position>;

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
    /// Which notices of the session's runner are taken once this is stored: it takes the place of what an earlier append said.
    /// None leaves that as it is.
    pub taken: Option<TakenNotices>,
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

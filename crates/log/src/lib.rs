//! The durable log: events, outcomes, projections and objects.
//!
//! [`Log`] says what a store does, in plain data; [`sqlite`] is the embedded one. What is appended together is there
//! together or not at all, and what `append` has answered survives the loss of the process and of the machine.
//! Nothing here decides anything: the rules are in `model`, and who may append is the engine's.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::future::BoxFuture;
use mainstay_model::decide::Answer;
use mainstay_model::search::Words;
use mainstay_model::{
    Access, CommandFingerprint, CommandId, Error, Event, EventBody, HistoryPage, IdempotencyKey, LineNumber,
    Metadata, NewLine, Outcome, Position, Principal, Role, Seq, Session, SessionId, SessionKind, Timestamp,
    TranscriptEntry, Version,
};
use tracing::Span;

pub mod backup;
pub mod collection;
#[cfg(feature = "failpoints")]
pub mod failpoint;
pub mod finding;
pub mod object;
mod precision;
pub mod sqlite;
pub mod statistics;
mod sync;
pub mod trace;

pub use backup::Manifest;
pub use collection::{Collected, Collection};
pub use finding::{Examination, Finding, Progress, Stage, Weight};
pub use object::ObjectHash;
pub use sqlite::{SqliteLog, SqliteOptions, examine, manifest, restore};
pub use statistics::{SessionStatistics, StoreStatistics};

/// A store of sessions.
#[async_trait]
pub trait Log: Send + Sync + 'static {
    /// Appends events, outcomes and the projection in one transaction. Queued when called, in the order of the calls;
    /// the future is done once all of it is durable, and gives the events with their positions. Dropping the future
    /// takes nothing back. A session that is not there is created by an append that begins with
    /// [`EventBody::SessionCreated`], at seq 1 and under [`Epoch::FIRST`]. All moments are cut to the microsecond.
    ///
    /// # Errors
    /// The future fails with [`Error::SessionOwned`] where the epoch is not the newest or the first seq is not the next
    /// one, with [`Error::SessionNotFound`] where the session is not there and this does not create it, where it was deleted, or
    /// where this begins with entries of one that was and that no other has, with
    /// [`Error::CommandConflict`] where a command has an outcome already, with [`Error::StoreFailed`] where the disk
    /// refuses or too much waits for it already. Then nothing of this append is there; others that were queued beside
    /// it are untouched.
    fn append(&self, append: Append) -> BoxFuture<'static, Result<Vec<Event>, Error>>;

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

    /// The sessions that match, most recently active first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error>;

    /// How many sessions match, whatever the filter's limit.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error>;

    /// The sessions whose id, end of id (four hexadecimal digits or more) or name is `reference`.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error>;

    /// A session's own entries from the one with this number on, in order, at most `limit`: of all that it had when this was
    /// asked. Each is verified against its hash.
    ///
    /// # Errors
    /// [`Error::EntryDamaged`], [`Error::StoreFailed`]; a session that does not exist has none.
    async fn own_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error>;

    /// How many entries of its own a session has.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn count_own_entries(&self, session: SessionId) -> Result<u64, Error>;

    /// The entries that match, each wherever it came to be, with its session; the best first. Each is verified against its
    /// hash.
    ///
    /// # Errors
    /// [`Error::EntryDamaged`], [`Error::StoreFailed`].
    async fn search(&self, filter: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error>;

    /// Removes some of what deleted sessions have left and no other refers to: their events but for the last, entries, outcomes,
    /// and the objects of those. Gives what it removed, and where to go on; nothing more where that is all. It may end at any
    /// step, and another may begin anew.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error>;

    /// Writes a backup of all that is there now into a folder that is empty or not there, while all else goes on. It is whole once
    /// this has ended well; else nothing is left of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the folder is not empty, [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    async fn backup(&self, folder: PathBuf, now: Timestamp) -> Result<Manifest, Error>;

    /// What is stored, in numbers. It looks at every object and counts every event.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn statistics(&self) -> Result<StoreStatistics, Error>;

    /// What is stored of a session, in numbers.
    ///
    /// # Errors
    /// [`Error::StoreFailed`]; one that does not exist has nothing.
    async fn session_statistics(&self, session: SessionId) -> Result<SessionStatistics, Error>;

    /// Keeps a line of a principal's history, large ones as objects; one that is there already under the same id is kept once.
    /// Of all the principal's lines at most `keep` stay, the newest ones.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn add_history(
        &self,
        principal: &Principal,
        line: NewLine,
        keep: Option<u64>,
    ) -> Result<LineNumber, Error>;

    /// The lines of a principal's history that match, newest first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error>;

    /// Removes the lines that match, whatever the filter's limit; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error>;

    /// Stores bytes under their hash; the same bytes are stored once.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    async fn put_object(&self, bytes: Vec<u8>) -> Result<ObjectHash, Error>;

    /// The bytes of an object, verified against its hash.
    ///
    /// # Errors
    /// [`Error::ObjectNotFound`], [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    async fn object(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error>;
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

/// Chooses the entries to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFilter {
    /// What must be in them.
    pub words: Words,
    /// Only those with one of these roles; with any where there is none.
    pub roles: Vec<Role>,
    /// Only those of these sessions; the filter's limit does not matter.
    pub sessions: SessionFilter,
    /// Only those that came to be then or later.
    pub since: Option<Timestamp>,
    /// Only those that came to be before.
    pub until: Option<Timestamp>,
    /// Not the first so many.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// Which lines of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only those of this principal.
    pub principal: Principal,
    /// Return only the line of this number.
    pub number: Option<LineNumber>,
    /// Only those of this folder, and those of which no folder is known.
    pub folder: Option<String>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those in which each of these stands, in small or capital letters; of an object only the beginning is looked at.
    pub words: Vec<String>,
    /// Return only lines older than this one.
    pub before: Option<LineNumber>,
    /// Return only lines newer than this one.
    pub after: Option<LineNumber>,
    /// At most so many; all where absent.
    pub limit: Option<usize>,
}

impl HistoryFilter {
    /// All lines of a principal.
    pub fn of(principal: Principal) -> Self {
        Self {
            principal,
            number: None,
            folder: None,
            session: None,
            words: Vec::new(),
            before: None,
            after: None,
            limit: None,
        }
    }
}

/// Chooses the sessions to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Return only the session with this id.
    pub id: Option<SessionId>,
    /// Only those that run in this folder.
    pub working_directory: Option<String>,
    /// Only those that run in this folder or below it, or are for a project that lies there.
    pub within: Option<String>,
    /// Only those of this name.
    pub name: Option<String>,
    /// Only what its creator calls this.
    pub alias: Option<String>,
    /// Only those whose work this does.
    pub kind: Option<SessionKind>,
    /// Only those that were forked off this one.
    pub forked_from: Option<SessionId>,
    /// Only those that are not at rest.
    pub live: bool,
    /// Only those in which an ask waits for an answer.
    pub asks: bool,
    /// Only those in which a command waits for its turn.
    pub waits: bool,
    /// Only those that are loaded.
    pub loaded: bool,
    /// Those that were deleted too.
    pub with_deleted: bool,
    /// Only those that this principal sees.
    pub seen_by: Option<Access>,
    /// At most so many; all where absent.
    pub limit: Option<usize>,
}

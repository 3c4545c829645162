//! The embedded store: one SQLite database, and a folder with the large objects beside it.
//!
//! [`open`](SqliteLog::open) takes the store's lock, brings the schema up to date and starts the threads. Everything that
//! changes the store goes through one [`writer`]; reads go to a pool of [`readers`] and never wait behind it. What one
//! append does to the tables is in [`append`], what is read from them in [`queries`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use mainstay_model::decide::Answer;
use mainstay_model::{
    CommandId, Content, Error, Event, HistoryPage, IdempotencyKey, LineNumber, NewLine, Position, Principal,
    Seq, Session, SessionId, Timestamp, TranscriptEntry,
};
use tokio::task::spawn_blocking;

use crate::{
    Append, Collected, Collection, EntryFilter, Epoch, HistoryFilter, KeyScope, Log, Manifest, ObjectHash,
    SessionFilter, SessionStatistics, StoreStatistics, StoredOutcome, precision, trace::Steps,
};

mod append;
mod backup;
mod collect;
mod entries;
mod examine;
mod files;
mod history;
mod index;
mod lock;
mod migrations;
mod objects;
mod open;
mod queries;
mod readers;
mod retention;
mod rows;
mod search;
mod statements;
mod statistics;
mod transcribe;
mod writer;

pub use backup::{manifest, restore};
pub use examine::examine;
pub use lock::LOCK_FILE;

use lock::StoreLock;
use objects::Objects;
use readers::Readers;
use writer::Writer;

/// How a store is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The largest the database may become, in bytes, whole pages of 4 KiB; as large as the disk allows where absent.
    /// Large objects and the write-ahead log are not counted.
    pub max_bytes: Option<u64>,
}

/// A log in one folder of this machine. Dropping it lets what is queued finish, and blocks until then.
pub struct SqliteLog {
    // Dropped in this order: the writer's connection must be the last one, to leave no write-ahead log behind, and the
    // lock is given up when no thread touches the files any more.
    readers: Readers,
    writer: Writer,
    objects: Arc<Objects>,
    database: PathBuf,
    /// How many events were appended since it was opened.
    appended: AtomicU64,
    _lock: StoreLock,
}

impl SqliteLog {
    /// Opens the store in `folder`, and makes it where there is none: the folder with mode 0700, its files with 0600. A
    /// folder that exists keeps its mode. Blocks for some milliseconds, longer after a crash or for a migration.
    ///
    /// # Errors
    /// [`Error::StoreLocked`] where it is open already, [`Error::StoreNewer`] where a newer program wrote it,
    /// [`Error::StoreFailed`] where the disk refuses.
    pub fn open(folder: &Path, options: &SqliteOptions) -> Result<Self, Error> {
        files::create_folder(folder)?;
        let lock = StoreLock::take(folder)?;
        let database = folder.join("mainstay.db");
        let connection = open::writer(&database, options)?;
        let readers = Readers::start(&database)?;
        let writer = Writer::start(connection, writer::Limits::default())?;
        let objects = Arc::new(Objects::open(folder.join("objects"))?);
        Ok(Self { readers, writer, objects, database, appended: AtomicU64::new(0), _lock: lock })
    }
}

impl SqliteLog {
    /// Makes the entries of all events that are there now; of what comes meanwhile only as much as comes along. After each step
    /// `tell` hears up to where they are made, and up to where they will be: in a store of an older schema that is a long way.
    ///
    /// # Errors
    /// [`Error::StoreFailed`]. Then whoever reads entries has the rest made.
    pub async fn transcribe(&self, mut tell: impl FnMut(Position, Position)) -> Result<(), Error> {
        let target = self.last_position().await?;
        let is_behind = move |connection: &rusqlite::Connection| {
            transcribe::is_behind(connection, target).map_err(failed)
        };
        while self.readers.run(is_behind).await? {
            self.transcribe_more().await?;
            tell(self.readers.run(transcribe::reached).await?.min(target), target);
        }
        Ok(())
    }

    /// As [`SqliteLog::transcribe`], for whoever only wants to read them.
    async fn transcribe_silently(&self) -> Result<(), Error> {
        self.transcribe(|_, _| ()).await
    }

    /// Has entries made where these events more make it due.
    fn transcribe_when_due(&self, events: u64) {
        let before = self.appended.fetch_add(events, Ordering::Relaxed);
        if before / transcribe::INTERVAL != (before + events) / transcribe::INTERVAL {
            // Where it fails it is tried again by the next, or by whoever reads, who hears of it.
            drop(self.transcribe_more());
        }
    }

    /// Makes the entries of the next events; it is queued when called.
    fn transcribe_more(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let objects = Arc::clone(&self.objects);
        let mut kept = Vec::new();
        self.writer.submit(0, move |statements| transcribe::step(statements, &objects, &mut kept))
    }
}

#[async_trait]
impl Log for SqliteLog {
    fn append(&self, append: Append) -> BoxFuture<'static, Result<Vec<Event>, Error>> {
        let append = precision::to_microseconds(append);
        let session = append.session;
        let steps = Steps::queued(&append.trace);
        let queued = append::AppendRows::encode(&append).map(|rows| {
            self.writer.submit_traced(rows.bytes(), steps, move |statements| rows.apply(statements))
        });
        self.transcribe_when_due(append.events.len() as u64);
        Box::pin(async move {
            let first = queued?.await?;
            Ok(append::placed(session, append.first, first, append.events))
        })
    }

    async fn store_refusal(&self, answer: Answer) -> Result<(), Error> {
        let row = append::OutcomeRow::encode(&answer)?;
        self.writer.submit(row.bytes(), move |statements| row.store_alone(statements)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Epoch, Error> {
        self.writer.submit(0, move |statements| append::claim(statements, session)).await
    }

    async fn events(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.run(move |connection| queries::events(connection, session, after, limit)).await
    }

    async fn all_events(&self, after: Position, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.run(move |connection| queries::all_events(connection, after, limit)).await
    }

    async fn last_position(&self) -> Result<Position, Error> {
        self.readers.run(queries::last_position).await
    }

    async fn outcome(
        &self,
        principal: &Principal,
        command: &CommandId,
    ) -> Result<Option<StoredOutcome>, Error> {
        let (principal, command) = (principal.clone(), command.clone());
        self.readers.run(move |connection| queries::outcome(connection, &principal, &command)).await
    }

    async fn outcome_of_key(
        &self,
        principal: &Principal,
        scope: KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<StoredOutcome>, Error> {
        let (principal, key) = (principal.clone(), key.clone());
        self.readers.run(move |connection| queries::outcome_of_key(connection, &principal, scope, &key)).await
    }

    async fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        self.readers.run(move |connection| queries::session(connection, session)).await
    }

    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.readers.run(move |connection| queries::sessions(connection, &filter)).await
    }

    async fn count_outcomes(&self) -> Result<u64, Error> {
        self.readers.run(queries::count_outcomes).await
    }

    async fn count_sessions(&self, filter: SessionFilter) -> Result<usize, Error> {
        self.readers.run(move |connection| queries::count_sessions(connection, &filter)).await
    }

    async fn resolve(&self, reference: &str) -> Result<Vec<SessionId>, Error> {
        let reference = reference.to_owned();
        self.readers.run(move |connection| queries::resolve(connection, &reference)).await
    }

    async fn own_entries(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<TranscriptEntry>, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| entries::own(connection, session, from, limit)).await
    }

    async fn count_own_entries(&self, session: SessionId) -> Result<u64, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| entries::count(connection, session)).await
    }

    async fn search(&self, filter: EntryFilter) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| search::search(connection, &filter)).await
    }

    async fn collect(&self, from: Collection) -> Result<(Collected, Option<Collection>), Error> {
        match from {
            Collection::Sessions { after } => {
                // Else entries would be made of what is left of a cell.
                self.transcribe_silently().await?;
                self.writer.submit(0, move |statements| collect::sessions(statements, after)).await
            }
            Collection::Outcomes { after } => {
                self.writer.submit(0, move |statements| collect::outcomes(statements, after.as_ref())).await
            }
            Collection::Files { shelf } => {
                let objects = Arc::clone(&self.objects);
                self.readers.run(move |connection| collect::files(connection, &objects, shelf)).await
            }
        }
    }

    async fn backup(&self, folder: PathBuf, now: Timestamp) -> Result<Manifest, Error> {
        let (database, objects) = (self.database.clone(), Arc::clone(&self.objects));
        let made = spawn_blocking(move || backup::make(&database, &objects, &folder, now));
        made.await.map_err(failed)?
    }

    async fn statistics(&self) -> Result<StoreStatistics, Error> {
        self.transcribe_silently().await?;
        self.readers.run(statistics::store).await
    }

    async fn session_statistics(&self, session: SessionId) -> Result<SessionStatistics, Error> {
        self.transcribe_silently().await?;
        self.readers.run(move |connection| statistics::session(connection, session)).await
    }

    async fn add_history(
        &self,
        principal: &Principal,
        mut line: NewLine,
        keep: Option<u64>,
    ) -> Result<LineNumber, Error> {
        let (content, large) = Content::of(std::mem::take(&mut line.text));
        let object = match large {
            Some(bytes) => Some(self.objects.keep(bytes).await?),
            None => None,
        };
        let row = history::LineRow { principal: principal.clone(), line, content, object, keep };
        self.writer.submit(row.bytes(), move |statements| row.store(statements)).await
    }

    async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error> {
        self.readers.run(move |connection| history::page(connection, &filter)).await
    }

    async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error> {
        self.writer.submit(0, move |statements| history::remove(statements, &filter)).await
    }

    async fn put_object(&self, bytes: Vec<u8>) -> Result<ObjectHash, Error> {
        let row = self.objects.keep(bytes).await?;
        let hash = row.hash.clone();
        self.writer.submit(row.bytes(), move |statements| row.store(statements)).await?;
        Ok(hash)
    }

    async fn object(&self, hash: &ObjectHash) -> Result<Vec<u8>, Error> {
        let wanted = hash.clone();
        match self.readers.run(move |connection| objects::find(connection, &wanted)).await? {
            Some(inline) => objects::verified(hash, inline),
            None => self.objects.read(hash).await,
        }
    }
}

/// Why, of an error of the store.
fn reason_of(error: Error) -> String {
    if let Error::StoreFailed { reason } = error { reason } else { error.to_string() }
}

/// The error for what a library below refused.
fn failed(error: impl std::fmt::Display) -> Error {
    // SQLite says that it cannot open a file, and not that no more can be opened.
    let cause = std::fs::File::open("/dev/null").err().filter(|cause| {
        let number = cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        matches!(number, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    });
    let cause = cause.map_or_else(String::new, |cause| format!("; no file can be opened: {cause}"));
    Error::StoreFailed { reason: format!("{error}{cause}") }
}

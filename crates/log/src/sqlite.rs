//! The embedded store: one SQLite database, and a folder with the large objects beside it.
//!
//! [`open`](SqliteLog::open) takes the store's lock, brings the schema up to date and starts the threads. Everything that
//! changes the store goes through one [`writer`]; reads go to a pool of [`readers`] and never wait behind it. What one
//! append does to the tables is in [`append`], what is read from them in [`queries`]. Each trait of the log is implemented
//! in a file of its own, named for the trait; [`Objects`](crate::Objects) in [`object_store`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mainstay_model::{Error, Position};

use crate::EventLog;

mod append;
mod artifacts;
mod backup;
mod changes;
mod collect;
mod directory;
mod entries;
mod entry_index;
mod event_log;
mod examine;
mod failure;
mod files;
mod history;
mod index;
mod known;
mod lease;
mod lock;
mod maintenance;
mod migrations;
mod object_store;
mod objects;
mod open;
mod options;
mod prompt_history;
mod queries;
mod readers;
mod resumable_connections;
mod retention;
mod rows;
mod schedules;
mod search;
mod statements;
mod statistics;
mod transcribe;
mod writer;

pub use backup::{manifest, restore};
pub use examine::examine;
pub use lock::LOCK_FILE;
pub use options::{Sharing, SqliteOptions};

use failure::failed;
use known::KnownOutcomes;
use lock::StoreLock;
use objects::ObjectFiles;
use readers::Readers;
use writer::Writer;

/// A log in one folder of this machine. Dropping it lets what is queued finish, and blocks until then.
pub struct SqliteLog {
    // Dropped in this order: the writer's connection must be the last one, to leave no write-ahead log behind, and the
    // lock is given up when no thread touches the files any more.
    readers: Readers,
    writer: Arc<Writer>,
    objects: Arc<ObjectFiles>,
    database: PathBuf,
    sharing: Arc<Sharing>,
    known: Arc<KnownOutcomes>,
    /// How many events were appended since it was opened.
    appended: AtomicU64,
    _lock: StoreLock,
}

impl SqliteLog {
    /// Opens the store in `folder`, and makes it where there is none: the folder with mode 0700, its files with 0600. A
    /// folder that exists keeps its mode. Blocks for some milliseconds, longer after a crash or for a migration.
    ///
    /// # Errors
    /// [`Error::StoreLocked`] where it is open already and the two do not share it, [`Error::StoreNewer`] where a newer program wrote it,
    /// [`Error::StoreFailed`] where the disk refuses.
    pub fn open(folder: &Path, options: &SqliteOptions) -> Result<Self, Error> {
        files::create_folder(folder)?;
        let lock = StoreLock::take(folder, &options.sharing)?;
        let database = folder.join("mainstay.db");
        let connection = open::writer(&database, options)?;
        let readers = Readers::start(&database)?;
        let writer = Arc::new(Writer::start(connection, writer::Limits::default())?);
        let objects = Arc::new(ObjectFiles::open(folder.join("objects"), &options.sharing)?);
        let sharing = Arc::new(options.sharing.clone());
        let known = Arc::<KnownOutcomes>::default();
        if matches!(*sharing, Sharing::Alone) {
            readers.load(Arc::clone(&known));
        }
        Ok(Self {
            readers,
            writer,
            objects,
            database,
            sharing,
            known,
            appended: AtomicU64::new(0),
            _lock: lock,
        })
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

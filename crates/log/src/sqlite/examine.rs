//! The examination of a store: everything that appends promise is looked for in what is there. It changes nothing, reads
//! one snapshot, and keeps in memory a few numbers for each session.
//!
//! What cannot be seen: a damage that leaves a text a valid one of its kind, since events have no checksums of their own.

use std::path::Path;

use mainstay_model::Error;
use rusqlite::Connection;

use super::failure::{failed, reason_of};
use super::lock::StoreLock;
use super::migrations::{MIGRATIONS, steps_done};
use super::open;
use super::options::Sharing;
use crate::examination::{Examination, Progress, Stage};
use crate::finding::Finding;

mod answers;
mod entries;
mod events;
mod files;
mod history;
mod objects;
mod schedules;
mod sessions;
mod wal;

/// How many rows lie between two tellings of the progress.
const TOLD_EVERY: u64 = 1000;

/// Examines the store in `folder`, and tells how far it is; none where there is no store. Where no daemon has it open,
/// none can open it meanwhile.
///
/// # Errors
/// [`Error::StoreNewer`] where a newer program wrote it.
pub fn examine(folder: &Path, tell: &mut dyn FnMut(Progress)) -> Result<Option<Examination>, Error> {
    let database = folder.join("mainstay.db");
    if !database.exists() && !was_in_use(folder) {
        return Ok(None);
    }
    // Where the lock cannot be had for another reason, that is found with the files.
    let lock = StoreLock::take(folder, &Sharing::Alone);
    let in_use = matches!(lock, Err(Error::StoreLocked));
    let mut examiner = Examiner { tell, report: Examination { in_use, ..Examination::default() } };
    examiner.files(folder);
    if !in_use {
        examiner.write_ahead_log(&database);
    }
    match open_snapshot(&database) {
        Ok(connection) => examiner.database(&connection, folder)?,
        Err(error) => examiner.found(Finding::DatabaseUnreadable { reason: reason_of(error) }),
    }
    Ok(Some(examiner.report))
}

/// Folders of objects are made once the database has its schema.
fn was_in_use(folder: &Path) -> bool {
    folder.join("objects").exists()
}

struct Examiner<'a> {
    tell: &'a mut dyn FnMut(Progress),
    report: Examination,
}

impl Examiner<'_> {
    fn database(&mut self, connection: &Connection, folder: &Path) -> Result<(), Error> {
        let done = match steps_done(connection, MIGRATIONS.len()) {
            Err(Error::StoreFailed { reason }) => {
                self.found(Finding::DatabaseUnreadable { reason });
                return Ok(());
            }
            done => done?,
        };
        self.report.schema = as_version(done);
        if done == 0 && was_in_use(folder) {
            self.found(Finding::DatabaseEmpty);
            return Ok(());
        }
        self.pages(connection);
        if done < MIGRATIONS.len() {
            let (found, known) = (as_version(done), as_version(MIGRATIONS.len()));
            self.found(Finding::SchemaOlder { found, known });
            return Ok(());
        }
        let seen = self.events(connection);
        self.sessions(connection, &seen);
        self.outcomes(connection);
        self.objects(connection, &folder.join("objects"));
        self.entries(connection);
        self.history(connection);
        self.schedules(connection);
        Ok(())
    }

    /// What SQLite itself finds.
    fn pages(&mut self, connection: &Connection) {
        self.progress(Stage::Pages, 0);
        let checked = connection.prepare("PRAGMA integrity_check").and_then(|mut check| {
            let mut rows = check.query(())?;
            while let Some(row) = rows.next()? {
                let message: String = row.get(0)?;
                if message != "ok" {
                    self.found(Finding::PagesDamaged { message });
                }
            }
            Ok(())
        });
        if let Err(error) = checked {
            self.found(Finding::PagesDamaged { message: error.to_string() });
        }
    }

    fn found(&mut self, finding: Finding) {
        self.report.add(finding);
    }

    /// Notes what a table refused, once where it always refuses the same.
    fn read(&mut self, table: &'static str, done: rusqlite::Result<()>) {
        let Err(error) = done else { return };
        let finding = Finding::TableUnreadable { table, reason: error.to_string() };
        if !self.report.findings.contains(&finding) {
            self.found(finding);
        }
    }

    fn progress(&mut self, stage: Stage, done: u64) {
        if done.is_multiple_of(TOLD_EVERY) {
            (self.tell)(Progress { stage, done });
        }
    }
}

fn as_version(steps: usize) -> i64 {
    i64::try_from(steps).unwrap_or(i64::MAX)
}

/// A connection that sees what is committed now, and no more.
fn open_snapshot(database: &Path) -> Result<Connection, Error> {
    let connection = open::reader(database)?;
    let begun = connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema");
    match begun {
        Ok(()) => Ok(connection),
        // A folder that cannot be written has no room for what SQLite shares with other processes.
        Err(_) if !wal::has_frames(database) && open::is_read_only(database) => {
            let connection = open::unchanging(database)?;
            connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(failed)?;
            Ok(connection)
        }
        Err(error) => Err(failed(error)),
    }
}

//! What is the embedded store's own: its files and their modes, its lock, its schema version, damage, and a full disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mainstay_log::{
    AppendError, EntryIndex, EventLog, ObjectHash, Objects, Refusal, SqliteLog, SqliteOptions,
};
use mainstay_model::{Error, Principal, Seq};
use rusqlite::Connection;
use support::{Line, answer, command_id, output};
use tempfile::TempDir;

mod support;

const LARGE: usize = 100_000;
/// A store as the migration to the first schema with entries leaves it.
const ENTRIES_UNMADE: [&str; 4] = [
    "DELETE FROM place",
    "DELETE FROM entry",
    "INSERT INTO entry_text (entry_text) VALUES ('delete-all')",
    "UPDATE transcribed SET position = 0",
];

#[tokio::test]
async fn the_folder_and_its_files_are_private() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("not/yet/there");
    let log = open(&folder);
    log.append(Line::new(1).create()).await.unwrap();
    log.put_object(vec![1; LARGE]).await.unwrap();
    let mut seen = Vec::new();
    walk(&folder, &mut seen);
    for path in &seen {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    for name in ["mainstay.db", "mainstay.db-wal", "store.lock"] {
        assert!(seen.contains(&folder.join(name)), "{name}");
    }
}

#[test]
fn a_folder_that_was_there_keeps_its_mode() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    open(home.path());
    assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_store_is_open_once() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    assert_eq!(refused(home.path()), Error::StoreLocked);
    drop(log);
    open(home.path());
}

#[tokio::test]
async fn reading_entries_writes_only_what_a_cell_that_has_ended_comes_to() {
    let home = tempfile::tempdir().unwrap();
    let (log, mut line) = (open(home.path()), Line::new(1));
    log.append(line.create()).await.unwrap();
    log.append(line.request("1 + 1")).await.unwrap();
    log.append(line.print("hello\n")).await.unwrap();
    let database = Connection::open(home.path().join("mainstay.db")).unwrap();
    // It differs once another connection has changed the database.
    let version = || database.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    assert_eq!(log.count_own_entries(line.id).await, Ok(0));
    assert_eq!(version(), before);
    log.append(line.finish("2")).await.unwrap();
    let ended = version();
    assert_eq!(log.count_own_entries(line.id).await, Ok(2));
    assert_ne!(version(), ended);
}

#[tokio::test]
async fn making_the_entries_of_an_old_store_is_told_step_by_step() {
    let home = tempfile::tempdir().unwrap();
    let (log, mut line) = (open(home.path()), Line::new(1));
    log.append(line.create()).await.unwrap();
    for number in 0..6 {
        log.append(line.request(&format!("{number}{}", "x".repeat(3_000_000)))).await.unwrap();
        log.append(line.finish("done")).await.unwrap();
    }
    let entries = log.own_entries(line.id, 0, usize::MAX).await.unwrap();
    drop(log);
    ENTRIES_UNMADE.iter().for_each(|sql| change(&home, sql));
    let log = open(home.path());
    let last = log.last_position().await.unwrap();
    let mut told = Vec::new();
    log.transcribe(|reached, of| told.push((reached, of))).await.unwrap();
    assert!(told.len() > 2 && told.is_sorted() && told.iter().all(|(_, of)| *of == last), "{told:?}");
    assert_eq!(told.last(), Some(&(last, last)));
    assert_eq!(log.own_entries(line.id, 0, usize::MAX).await.unwrap(), entries);
    log.transcribe(|_, _| panic!("there is nothing left to do")).await.unwrap();
}

#[test]
fn a_newer_store_is_refused_and_left_as_it_is() {
    for mode in ["DELETE", "WAL"] {
        let home = tempfile::tempdir().unwrap();
        drop(open(home.path()));
        let files = ["mainstay.db", "mainstay.db-wal"];
        let database = Connection::open(home.path().join(files[0])).unwrap();
        database.pragma_update(None, "journal_mode", mode).unwrap();
        database.pragma_update(None, "user_version", 1000).unwrap();
        // As a crash leaves it, with a write-ahead log that no connection has copied into the database.
        let left = tempfile::tempdir().unwrap();
        for file in files.into_iter().filter(|file| home.path().join(file).exists()) {
            fs::copy(home.path().join(file), left.path().join(file)).unwrap();
        }
        let stored = || files.map(|file| fs::read(left.path().join(file)).ok());
        let before = stored();
        assert_eq!(before[1].is_some(), mode == "WAL");
        assert!(matches!(refused(left.path()), Error::StoreNewer { found: 1000, known: 1.. }), "{mode}");
        assert!(stored() == before, "{mode}");
    }
}

#[test]
fn what_is_no_store_is_refused_with_its_name() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let Error::StoreFailed { reason } = refused(&file.join("store")) else { panic!("another error") };
    assert!(reason.contains("file"), "{reason}");

    fs::write(home.path().join("mainstay.db"), vec![b'x'; 8192]).unwrap();
    assert!(matches!(refused(home.path()), Error::StoreFailed { .. }));
}

#[tokio::test]
async fn a_large_object_is_a_file_and_a_damaged_one_is_never_given() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let hash = log.put_object(vec![7; LARGE]).await.unwrap();
    let file = object_file(&home, &hash);
    let damaged = Err(Error::ObjectDamaged { hash: hash.to_string() });

    let mut bytes = fs::read(&file).unwrap();
    bytes[LARGE / 2] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(log.object(&hash).await, damaged);
    fs::write(&file, &bytes[..10]).unwrap();
    assert_eq!(log.object(&hash).await, damaged);
    fs::remove_file(&file).unwrap();
    assert_eq!(log.object(&hash).await, damaged);

    assert_eq!(log.put_object(vec![7; LARGE]).await, Ok(hash.clone()));
    assert!(log.object(&hash).await.unwrap() == vec![7; LARGE], "putting it again mends it");
}

#[tokio::test]
async fn a_small_object_that_is_damaged_is_never_given() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let hash = log.put_object(b"some bytes".to_vec()).await.unwrap();
    change(&home, "UPDATE object SET bytes = x'00'");
    assert_eq!(log.object(&hash).await, Err(Error::ObjectDamaged { hash: hash.to_string() }));
    log.put_object(b"some bytes".to_vec()).await.unwrap();
    assert_eq!(log.object(&hash).await, Ok(b"some bytes".to_vec()));
}

#[tokio::test]
async fn what_a_crash_left_of_an_object_is_cleared_away() {
    let home = tempfile::tempdir().unwrap();
    drop(open(home.path()));
    let leftover = home.path().join("objects/unfinished/0");
    fs::write(&leftover, "half").unwrap();
    let log = open(home.path());
    assert!(!leftover.exists());

    let hash = ObjectHash::of(&[3; LARGE]);
    let file = object_file(&home, &hash);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, vec![3; LARGE]).unwrap();
    assert_eq!(log.object(&hash).await, Err(Error::ObjectNotFound { hash: hash.to_string() }));
    log.put_object(vec![3; LARGE]).await.unwrap();
    assert!(log.object(&hash).await.unwrap() == vec![3; LARGE]);
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_named() {
    for change_of in
        ["kind = 'fromTheFuture'", "body = '{'", "body = NULL", "source = '\"nobody\"'", "at = 9e18"]
    {
        let home = tempfile::tempdir().unwrap();
        let log = open(home.path());
        let mut line = Line::new(1);
        log.append(line.create()).await.unwrap();
        log.append(line.append(vec![output("one"), output("two")])).await.unwrap();
        change(&home, &format!("UPDATE event SET {change_of} WHERE seq = 2"));
        let Err(Error::StoreFailed { reason }) = log.events(line.id, Seq::ZERO, 10).await else {
            panic!("{change_of} was read");
        };
        assert!(reason.contains(&format!("event 2 of session {}", line.id)), "{reason}");
        assert_eq!(reason.contains("fromTheFuture"), change_of.contains("fromTheFuture"), "{reason}");
        assert_eq!(log.events(line.id, Seq(2), 10).await.map(|events| events.len()), Ok(1));
    }
}

#[tokio::test]
async fn what_is_said_again_is_stored_once() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    for number in 1..=3 {
        said(&log, number, "let x = 1", "val x : int = 1").await;
    }
    assert_eq!((count(&home, "entry"), count(&home, "place")), (2, 6));
}

#[tokio::test]
async fn a_damaged_entry_is_never_given_and_the_others_are() {
    let damages = [
        "UPDATE entry SET text = '1 + 2' WHERE number = 1",
        "UPDATE entry SET role = 'output' WHERE number = 1",
        "UPDATE entry SET metadata = '{}' WHERE number = 1",
        "UPDATE entry SET hash = zeroblob(32) WHERE number = 1",
    ];
    for damage in damages {
        let home = tempfile::tempdir().unwrap();
        let log = open(home.path());
        let line = said(&log, 1, "1 + 1", "val it : int = 2").await;
        change(&home, damage);
        let damaged = Error::EntryDamaged { session: line.id, number: 0 };
        assert_eq!(log.own_entries(line.id, 0, 9).await, Err(damaged), "{damage}");
        assert_eq!(log.own_entries(line.id, 1, 9).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_read_keeps_only_its_own_cell_out_of_the_transcripts() {
    for seq in [2, 3, 4] {
        let home = tempfile::tempdir().unwrap();
        let log = open(home.path());
        let mut line = Line::new(1);
        log.append(line.create()).await.unwrap();
        log.append(line.request("damaged")).await.unwrap();
        log.append(line.print("half")).await.unwrap();
        log.append(line.finish("")).await.unwrap();
        change(&home, &format!("UPDATE event SET body = '{{' WHERE seq = {seq}"));
        log.append(line.request("whole")).await.unwrap();
        log.append(line.finish("")).await.unwrap();
        let entries = log.own_entries(line.id, 0, 9).await.unwrap();
        let said: Vec<_> = entries.iter().map(|placed| placed.entry.content.beginning()).collect();
        assert_eq!(said, ["whole", ""], "event {seq}");
    }
}

#[tokio::test]
async fn a_full_store_refuses_loses_nothing_and_works_again_with_room() {
    let home = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(
        home.path(),
        &SqliteOptions { max_bytes: Some(256 * 1024), ..SqliteOptions::default() },
    )
    .unwrap();
    let mut line = Line::new(1);
    log.append(line.create()).await.unwrap();
    let refused = loop {
        let number = line.last_seq().0;
        let mut append = line.peek(vec![output("x".repeat(5_000))]);
        append.outcomes.push(answer(&format!("command-{number}"), append.projection.last_seq));
        let projection = append.projection.clone();
        match log.append(append).await {
            Ok(_) => line.session = Some(projection),
            Err(failed) => break failed,
        }
    };
    assert!(matches!(refused.error, AppendError::Unavailable { .. }), "{}", refused.error);
    assert!(line.last_seq().0 > 10);
    let unanswered = command_id(&format!("command-{}", line.last_seq()));
    assert_eq!(log.outcome(&Principal::local(), &unanswered).await, Ok(None));

    let small = log.append(line.peek(vec![output("small")]));
    let large = log.append(Line::new(2).append(vec![support::created(&"x".repeat(100_000), "/")]));
    let other = log.append(line.peek(vec![output("other")]));
    let (small, large, other) = tokio::join!(small, large, other);
    assert!(small.is_ok(), "what still fits is taken, whatever is refused beside it");
    assert!(matches!(large.unwrap_err().error, AppendError::Unavailable { .. }));
    let late = other.unwrap_err().error;
    assert!(matches!(late, AppendError::Refused(Refusal::OutOfSequence { .. })), "{late}");
    drop(log);

    let log = open(home.path());
    let events = log.events(line.id, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(events.len() as u64, line.last_seq().0 + 1);
    line.append(vec![output("small")]);
    assert_eq!(log.session(line.id).await.unwrap(), line.session);
    log.append(line.append(vec![output("x".repeat(50_000))])).await.unwrap();
}

/// A session with one cell, whose entries are made.
async fn said(log: &SqliteLog, number: u128, code: &str, display: &str) -> Line {
    let mut line = Line::new(number);
    log.append(line.create()).await.unwrap();
    log.append(line.request(code)).await.unwrap();
    log.append(line.finish(display)).await.unwrap();
    assert_eq!(log.own_entries(line.id, 0, 9).await.unwrap().len(), 2);
    line
}

fn count(home: &TempDir, table: &str) -> i64 {
    let database = Connection::open(home.path().join("mainstay.db")).unwrap();
    database.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

fn refused(folder: &Path) -> Error {
    SqliteLog::open(folder, &SqliteOptions::default()).err().unwrap()
}

fn object_file(home: &TempDir, hash: &ObjectHash) -> PathBuf {
    home.path().join("objects").join(&hash.as_str()[..2]).join(hash.as_str())
}

/// Damages the store behind the log's back.
fn change(home: &TempDir, sql: &str) {
    Connection::open(home.path().join("mainstay.db")).unwrap().execute(sql, ()).unwrap();
}

fn walk(folder: &Path, seen: &mut Vec<PathBuf>) {
    seen.push(folder.to_owned());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, seen) } else { seen.push(path) }
    }
}

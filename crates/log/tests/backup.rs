//! Backups: made while the store is used, and put in a store's place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mainstay_log::{
    Directory, EntryIndex, EventLog, Maintenance, Objects, SqliteLog, SqliteOptions, examine, manifest,
    restore,
};
use mainstay_model::{Error, Event, Position, Seq, Session, Timestamp};
use support::Line;

mod support;

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

async fn say(log: &SqliteLog, line: &mut Line, code: &str) {
    log.append(line.request(code)).await.unwrap();
    log.append(line.finish("done")).await.unwrap();
}

async fn all_events(log: &SqliteLog) -> Vec<Event> {
    log.all_events(Position::ZERO, usize::MAX).await.unwrap()
}

/// A store with a session that has said something small, an object and a file.
async fn store(folder: &Path) -> (SqliteLog, Line) {
    let log = open(folder);
    let mut line = Line::new(1);
    log.append(line.create()).await.unwrap();
    for code in ["let x = 1", &"y".repeat(20_000), &"z".repeat(100_000)] {
        say(&log, &mut line, code).await;
    }
    assert_eq!(log.count_own_entries(line.id).await, Ok(6));
    (log, line)
}

/// What is done to a file's bytes.
type Damage = fn(&mut Vec<u8>);

fn now() -> Timestamp {
    "2026-02-13T13:29:20Z".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_moment_of_a_store_that_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let (log, line) = store(&home.path().join("store")).await;
    let log = Arc::new(log);
    let (stop, stopped) = (Arc::new(std::sync::atomic::AtomicBool::new(false)), Arc::clone(&log));
    let goes_on = Arc::clone(&stop);
    let appends = tokio::spawn(async move {
        let mut other = Line::new(2);
        stopped.append(other.create()).await.unwrap();
        let mut cells = 0;
        while !goes_on.load(std::sync::atomic::Ordering::Relaxed) {
            say(&stopped, &mut other, &format!("let x = {cells}")).await;
            cells += 1;
        }
        cells
    });
    for round in 0..3 {
        let folder = home.path().join(format!("backup-{round}"));
        let made = log.backup(folder.clone(), now()).await.unwrap();
        assert_eq!(manifest(&folder).unwrap().as_ref(), Some(&made));
        assert_eq!((made.files, made.made_at), (1, now()));
        let restored = home.path().join(format!("restored-{round}"));
        assert_eq!(restore(&folder, &restored, now()), Ok(None));
        let copy = open(&restored);
        let events = all_events(&copy).await;
        assert_eq!(events.last().unwrap().position, made.position);
        assert_eq!(events, all_events(&log).await[..events.len()], "all there was, and nothing more");
        for session in copy.sessions(Default::default()).await.unwrap() {
            let events = copy.events(session.id, Seq::ZERO, usize::MAX).await.unwrap();
            assert_eq!(Session::fold(&events), Some(session));
        }
        assert_eq!(copy.own_entries(line.id, 0, 9).await, log.own_entries(line.id, 0, 9).await);
        let file = mainstay_log::ObjectHash::of("z".repeat(100_000).as_bytes());
        assert_eq!(copy.object(&file).await.unwrap().len(), 100_000);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(appends.await.unwrap() > 0);
}

#[tokio::test]
async fn a_store_that_is_replaced_is_set_aside_whole() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("store");
    let (log, mut line) = store(&place).await;
    let backup = home.path().join("backup");
    log.backup(backup.clone(), now()).await.unwrap();
    let then = all_events(&log).await;
    say(&log, &mut line, "let later = 1").await;
    let later = all_events(&log).await;
    assert_eq!(restore(&backup, &place, now()), Err(Error::StoreLocked), "a daemon has it");
    drop(log);
    let aside = restore(&backup, &place, now()).unwrap().unwrap();
    assert_eq!(all_events(&open(&place)).await, then);
    assert_eq!(all_events(&open(&aside)).await, later);
    let report = examine(&place, &mut |_| {}).unwrap().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    // Nothing is set aside over what was, also within the same second.
    let again = restore(&backup, &place, now()).unwrap().unwrap();
    assert_ne!(again, aside);
    assert_eq!(all_events(&open(&again)).await, then);
    assert_eq!(all_events(&open(&aside)).await, later);
}

#[tokio::test]
async fn what_is_no_whole_and_sound_backup_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("store");
    let (log, _) = store(&place).await;
    let backup = home.path().join("backup");
    log.backup(backup.clone(), now()).await.unwrap();
    let again = log.backup(backup.clone(), now()).await;
    assert!(matches!(again, Err(Error::InvalidArgument { .. })), "{again:?}");
    assert!(manifest(&backup).unwrap().is_some(), "the first is as it was");
    let then = all_events(&log).await;
    drop(log);
    let shelf = fs::read_dir(backup.join("objects")).unwrap().next().unwrap().unwrap().path();
    let object = fs::read_dir(shelf).unwrap().next().unwrap().unwrap().path();
    let damages: [(&Path, Damage); 4] = [
        (&object, |bytes| bytes[7] ^= 1),
        (&backup.join("mainstay.db"), |bytes| bytes.truncate(bytes.len() / 2)),
        (&backup.join("mainstay.db"), |bytes| {
            let at = bytes.windows(9).position(|at| at == b"let x = 1").unwrap();
            bytes[at + 8] = b'7';
        }),
        (&backup.join("backup.json"), |bytes| bytes.truncate(10)),
    ];
    for (file, damage) in damages {
        let whole = fs::read(file).unwrap();
        let mut damaged = whole.clone();
        damage(&mut damaged);
        fs::write(file, damaged).unwrap();
        assert!(restore(&backup, &place, now()).is_err(), "{}", file.display());
        fs::write(file, whole).unwrap();
        assert_eq!(all_events(&open(&place)).await, then);
    }
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
    assert!(restore(&backup, &place, now()).is_ok());
}

#[tokio::test]
async fn a_backup_of_a_newer_version_is_refused_and_put_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let (store_folder, backup) = (home.path().join("store"), home.path().join("backup"));
    let (log, _) = store(&store_folder).await;
    log.backup(backup.clone(), now()).await.unwrap();
    drop(log);
    let database = backup.join("mainstay.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.pragma_update(None, "user_version", 1000).unwrap();
    drop(connection);
    let manifest_file = backup.join("backup.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&manifest_file).unwrap()).unwrap();
    manifest["database"] = blake3::hash(&fs::read(&database).unwrap()).to_hex().as_str().into();
    fs::write(&manifest_file, manifest.to_string()).unwrap();
    let place = home.path().join("restored");
    let refused = restore(&backup, &place, now());
    assert!(matches!(refused, Err(Error::StoreNewer { found: 1000, .. })), "{refused:?}");
    assert!(!place.exists());
}

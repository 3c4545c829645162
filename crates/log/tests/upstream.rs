//! What went wrong in the program that transcripts are modelled on (shared/protocols/transcripts.md, "Failures seen in
//! upstream"), as far as a store can do it wrong. What sessions can is in the engine's tests of the same name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs::{self, OpenOptions};
use std::path::Path;

use mainstay_log::{Directory, EntryIndex, EventLog, SessionFilter, SqliteLog, SqliteOptions};
use mainstay_model::{Error, Timestamp, TranscriptEntry};
use rusqlite::Connection;
use support::Line;

mod support;

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

/// Code whose bytes are no characters by themselves.
const CODE: &str = "printfn \"größer, 更大, 🦀\"";

async fn say(log: &SqliteLog, line: &mut Line, code: &str) {
    log.append(line.request(code)).await.unwrap();
    log.append(line.finish("done")).await.unwrap();
}

async fn said(log: &SqliteLog, line: &Line) -> Vec<TranscriptEntry> {
    log.own_entries(line.id, 0, usize::MAX).await.unwrap()
}

#[tokio::test]
async fn failure_1_a_second_process_is_refused_and_harms_nothing() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let mut line = Line::new(1);
    log.append(line.create()).await.unwrap();
    say(&log, &mut line, CODE).await;
    let second = SqliteLog::open(home.path(), &SqliteOptions::default());
    assert_eq!(second.err(), Some(Error::StoreLocked));
    say(&log, &mut line, CODE).await;
    drop(log);
    assert_eq!(said(&open(home.path()), &line).await.len(), 4);
}

/// The machine stops in the middle of a write: what was written last is cut off at any byte, also within a character. What
/// comes before it can be read, and what is said afterwards too.
#[tokio::test]
async fn failures_3_and_4_a_torn_write_loses_only_itself() {
    let home = tempfile::tempdir().unwrap();
    let log = open(&home.path().join("store"));
    let mut line = Line::new(1);
    log.append(line.create()).await.unwrap();
    let before = used_bytes(&home.path().join("store/mainstay.db-wal"));
    for _ in 0..6 {
        say(&log, &mut line, CODE).await;
    }
    let after = used_bytes(&home.path().join("store/mainstay.db-wal"));
    let mut kept = Vec::new();
    for (round, cut) in (before..after).step_by((after - before) / 40 + 1).enumerate() {
        let torn = home.path().join(format!("torn-{round}"));
        fs::create_dir(&torn).unwrap();
        for file in ["mainstay.db", "mainstay.db-wal"] {
            fs::copy(home.path().join("store").join(file), torn.join(file)).unwrap();
        }
        let wal = OpenOptions::new().write(true).open(torn.join("mainstay.db-wal")).unwrap();
        wal.set_len(cut as u64).unwrap();
        let log = open(&torn);
        let entries = said(&log, &line).await;
        let session = log.session(line.id).await.unwrap().unwrap();
        let mut line = Line { session: Some(session), ..line.clone() };
        assert!(entries.len() <= 12 && entries.len() % 2 == 0, "no half cells");
        say(&log, &mut line, CODE).await;
        assert_eq!(said(&log, &line).await.len(), entries.len() + 2, "cut at {cut}");
        kept.push(entries.len());
    }
    assert!(kept.is_sorted() && kept.contains(&0) && kept.contains(&10), "{kept:?}");
}

/// How far a file that is reserved with zeros is written.
fn used_bytes(file: &Path) -> usize {
    let bytes = fs::read(file).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[tokio::test]
async fn failure_5_a_session_that_cannot_be_read_is_named() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let (mut damaged, mut whole) = (Line::new(1), Line::new(2));
    for line in [&mut damaged, &mut whole] {
        log.append(line.create()).await.unwrap();
        say(&log, line, CODE).await;
    }
    let database = Connection::open(home.path().join("mainstay.db")).unwrap();
    let id = damaged.id.as_uuid().into_bytes();
    let cut = "UPDATE session SET projection = substr(projection, 1, 40) WHERE id = ?1";
    assert_eq!(database.execute(cut, [id]), Ok(1));
    let Err(Error::StoreFailed { reason }) = log.sessions(SessionFilter::default()).await else {
        panic!("it was listed")
    };
    assert!(reason.contains(&damaged.id.to_string()), "{reason}");
    assert_eq!(log.session(whole.id).await.unwrap(), whole.session);
    assert_eq!(said(&log, &damaged).await.len(), 2, "what was said in it is there all the same");
}

#[tokio::test]
async fn failure_6_the_last_session_is_the_one_last_used_after_a_restart_too() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let second = |second: i64| Timestamp::from_second(second).unwrap();
    // Neither the one created last nor the one whose id sorts first or last.
    for (number, created, used) in [(2, 1, 30), (3, 2, 20), (1, 3, 10)] {
        let mut line = Line::new(number);
        line.at = second(created);
        log.append(line.create()).await.unwrap();
        line.at = second(used);
        say(&log, &mut line, CODE).await;
    }
    drop(log);
    let last = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    let found = open(home.path()).sessions(last).await.unwrap();
    assert_eq!(found[0].id, Line::new(2).id);
}

#[tokio::test]
async fn failure_7_what_is_said_twice_is_stored_once_and_every_hash_is_checked() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let mut line = Line::new(1);
    log.append(line.create()).await.unwrap();
    for _ in 0..3 {
        say(&log, &mut line, CODE).await;
    }
    assert_eq!(said(&log, &line).await.len(), 6);
    let database = Connection::open(home.path().join("mainstay.db")).unwrap();
    let count = database.query_row("SELECT count(*) FROM entry", (), |row| row.get::<_, i64>(0));
    assert_eq!(count, Ok(2));
    database.execute("UPDATE entry SET text = text || ' ' WHERE role = 'output'", ()).unwrap();
    let damaged = Error::EntryDamaged { session: line.id, number: 1 };
    assert_eq!(log.own_entries(line.id, 0, 9).await, Err(damaged));
}

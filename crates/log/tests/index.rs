//! The index of events is filled some hundred events at a time, and what is read is the same wherever it ends: before the
//! cursor, behind it, in the middle of an append, or in the middle of a page.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::path::Path;

use mainstay_log::{EventLog, SqliteLog, SqliteOptions};
use mainstay_model::{Event, Seq, Session};
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use support::{Line, output};
use tempfile::TempDir;

mod support;

/// How many events lie between two fillings of the index.
const INTERVAL: u64 = 1024;

/// A store, its sessions, and all that was appended to them.
struct Appended {
    home: TempDir,
    log: SqliteLog,
    lines: Vec<Line>,
    events: Vec<Vec<Event>>,
}

impl Appended {
    async fn begin(sessions: u128) -> Self {
        let home = tempfile::tempdir().unwrap();
        let log = open(home.path());
        let mut lines: Vec<_> = (0..sessions).map(Line::new).collect();
        let mut events = Vec::new();
        for line in &mut lines {
            events.push(log.append(line.create()).await.unwrap());
        }
        Self { home, log, lines, events }
    }

    async fn append(&mut self, session: usize, count: u64) {
        let bodies = (0..count).map(|number| output(format!("{session}: {number}"))).collect();
        let append = self.lines[session].append(bodies);
        self.events[session].extend(self.log.append(append).await.unwrap());
    }

    /// Appends to the session until the next event has this position.
    async fn append_up_to(&mut self, session: usize, position: u64) {
        self.append(session, position - self.next_position()).await;
        assert_eq!(self.next_position(), position);
    }

    async fn open_anew(self) -> Self {
        let Self { home, log, lines, events } = self;
        drop(log);
        Self { log: open(home.path()), home, lines, events }
    }

    fn next_position(&self) -> u64 {
        self.events.iter().flatten().map(|event| event.position.0).max().unwrap() + 1
    }

    /// The last position that is in the index; the index has all up to it, and nothing after it.
    fn indexed(&self) -> u64 {
        let database = Connection::open(self.home.path().join("mainstay.db")).unwrap();
        let number = |sql| database.query_row::<i64, _, _>(sql, (), |row| row.get(0)).unwrap().unsigned_abs();
        let indexed = number("SELECT position FROM indexed");
        assert_eq!(number("SELECT count(*) FROM event_index"), indexed);
        assert_eq!(number("SELECT coalesce(max(position), 0) FROM event_index"), indexed);
        indexed
    }

    /// What a read of the session gives is what was appended to it.
    async fn check(&self, session: usize, after: u64, limit: usize) {
        let read = self.log.events(self.lines[session].id, Seq(after), limit).await.unwrap();
        let rest = self.events[session].iter().filter(|event| event.seq.0 > after);
        assert!(read.iter().eq(rest.take(limit)), "{limit} events of session {session} after {after}");
    }

    /// The same, around where the index ends, and from end to end.
    async fn check_all(&self) {
        let indexed = self.indexed();
        assert!(self.next_position() - 1 - indexed < INTERVAL);
        for (session, events) in self.events.iter().enumerate() {
            let boundary = events.iter().filter(|event| event.position.0 <= indexed).count() as u64;
            for after in
                [0, boundary.saturating_sub(1), boundary, boundary + 1, events.len() as u64, u64::MAX]
            {
                for limit in [0, 1, 2, usize::MAX] {
                    self.check(session, after, limit).await;
                }
            }
            assert_eq!(
                self.log.session(self.lines[session].id).await.unwrap(),
                Session::fold(events),
                "session {session}"
            );
        }
    }
}

#[tokio::test]
async fn the_index_is_filled_by_the_append_that_makes_it_due() {
    let mut store = Appended::begin(2).await;
    store.append_up_to(0, INTERVAL).await;
    assert_eq!(store.indexed(), 0);
    store.check_all().await;
    store.append(1, 1).await;
    assert_eq!(store.indexed(), INTERVAL);
    store.check_all().await;
    store.append(0, 1).await;
    assert_eq!(store.indexed(), INTERVAL);
    store.check_all().await;
}

#[tokio::test]
async fn an_append_in_whose_middle_the_index_becomes_due_is_in_it_whole() {
    let mut store = Appended::begin(2).await;
    store.append_up_to(0, INTERVAL - 5).await;
    store.append(1, 10).await;
    assert_eq!(store.indexed(), INTERVAL + 4);
    store.check_all().await;
    store.append_up_to(0, 2 * INTERVAL).await;
    assert_eq!(store.indexed(), INTERVAL + 4);
    store.append(0, 1).await;
    assert_eq!(store.indexed(), 2 * INTERVAL);
    store.check_all().await;
}

#[tokio::test]
async fn an_append_longer_than_the_interval_is_in_the_index_whole() {
    let mut store = Appended::begin(2).await;
    store.append(0, 10).await;
    store.append(1, 3 * INTERVAL).await;
    assert_eq!(store.indexed(), store.next_position() - 1);
    store.check_all().await;
    store.append(0, 10).await;
    store.check_all().await;
}

#[tokio::test]
async fn what_is_not_in_the_index_is_there_when_the_store_is_opened_anew() {
    let mut store = Appended::begin(3).await;
    store.append(0, INTERVAL).await;
    for session in 0..3 {
        store.append(session, 20).await;
    }
    assert!(store.indexed() < store.next_position() - 1);
    let mut store = store.open_anew().await;
    store.check_all().await;
    store.append_up_to(1, 2 * INTERVAL).await;
    store.append(2, 1).await;
    store.check_all().await;
}

#[tokio::test]
async fn pages_go_on_over_the_end_of_the_index() {
    let mut store = Appended::begin(2).await;
    for turn in 0..300 {
        store.append(turn % 2, 1 + turn as u64 % 7).await;
    }
    assert!(store.indexed() > 0 && store.indexed() < store.next_position() - 1);
    for limit in [1, 7, 100] {
        let mut read = Vec::<Event>::new();
        loop {
            let after = read.last().map_or(Seq::ZERO, |event| event.seq);
            let page = store.log.events(store.lines[0].id, after, limit).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, store.events[0]);
    }
}

#[tokio::test]
async fn an_append_that_is_refused_leaves_the_index_as_it_was() {
    let mut store = Appended::begin(2).await;
    store.append_up_to(0, INTERVAL - 1).await;
    let mut refused = store.lines[1].peek(vec![output("one"), output("two")]);
    refused.first = refused.first.next();
    assert!(store.log.append(refused).await.is_err());
    assert_eq!(store.indexed(), 0);
    store.append(1, 2).await;
    assert_eq!(store.indexed(), INTERVAL);
    store.check_all().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_appended(
        appends in vec((0..3_usize, prop_oneof![4 => 0..4_u64, 2 => 200..600_u64, 1 => 900..2200_u64]), 1..24),
        anew in 0..24_usize,
        reads in vec((0..3_usize, 0..4000_u64, prop_oneof![0..3_usize, 500..1500_usize]), 20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut store = Appended::begin(3).await;
            for (number, (session, count)) in appends.into_iter().enumerate() {
                if number == anew {
                    store = store.open_anew().await;
                }
                store.append(session, count).await;
            }
            store.check_all().await;
            for (session, after, limit) in reads {
                store.check(session, after, limit).await;
            }
        });
    }
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

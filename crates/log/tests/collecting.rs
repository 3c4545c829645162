//! Sessions that are forked, deleted and collected, beside the simplest model there could be: lists that are copied. However far a
//! collection came, and however often the store was opened anew, every session that is there says what it said; and a
//! whole collection leaves exactly what someone can still read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;

use mainstay_log::{Collection, Finding, Log, SqliteLog, SqliteOptions, examine};
use mainstay_model::transcript::{kept, slice};
use mainstay_model::{EventBody, ForkPoint, MergePoint, Seq, SessionId};
use proptest::collection::vec;
use proptest::prelude::*;
use support::Line;

mod support;

#[derive(Clone, Debug)]
enum Step {
    /// The session says what others may say too.
    Cell {
        session: usize,
        code: u8,
    },
    /// A session that begins with some of another's transcript.
    Fork {
        session: usize,
        cells: usize,
    },
    /// A cell of another's transcript is put into this one's.
    Insert {
        session: usize,
        from: usize,
        cell: usize,
        at: usize,
    },
    Delete {
        session: usize,
    },
    /// So many steps of a collection.
    Collect {
        steps: usize,
    },
    OpenAnew,
}

fn step() -> impl Strategy<Value = Step> {
    let session = || 0..64_usize;
    prop_oneof![
        12 => (session(), 0..12_u8).prop_map(|(session, code)| Step::Cell { session, code }),
        5 => (session(), 0..8_usize).prop_map(|(session, cells)| Step::Fork { session, cells }),
        4 => (session(), session(), session(), session())
            .prop_map(|(session, from, cell, at)| Step::Insert { session, from, cell, at }),
        4 => session().prop_map(|session| Step::Delete { session }),
        2 => (0..4_usize).prop_map(|steps| Step::Collect { steps }),
        1 => Just(Step::OpenAnew),
    ]
}

/// What a cell of this number says: the same code is in the same cells everywhere, some of it an object, some a file.
fn code(number: u8) -> String {
    match number {
        0 => format!("{number}{}", "x".repeat(20_000)),
        1 => format!("{number}{}", "x".repeat(100_000)),
        _ => format!("let x = {number}"),
    }
}

/// A session beside its list.
struct Known {
    line: Line,
    is_deleted: bool,
    /// Whose entry each is, and what it says.
    transcript: Vec<(SessionId, u64, String)>,
    own: u64,
    /// What its own entries say, and the event with which each ended.
    said: Vec<String>,
    ends: Vec<u64>,
}

struct Store<'a> {
    log: Option<SqliteLog>,
    folder: &'a Path,
    sessions: Vec<Known>,
}

impl Store<'_> {
    fn log(&self) -> &SqliteLog {
        self.log.as_ref().unwrap()
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Cell { session, code: number } => {
                let Some(index) = self.there(session) else { return };
                let text = code(number);
                let known = &mut self.sessions[index];
                let appends = [known.line.request(&text), known.line.finish("done")];
                for said in [text, "done".to_owned()] {
                    known.transcript.push((known.line.id, known.own, said.clone()));
                    known.said.push(said);
                    known.ends.push(known.line.last_seq().0);
                    known.own += 1;
                }
                for append in appends {
                    self.log().append(append).await.unwrap();
                }
            }
            Step::Fork { session, cells } => {
                let Some(index) = self.there(session) else { return };
                self.fork(index, cells).await;
            }
            Step::Insert { session, from, cell, at } => {
                let (Some(index), Some(from)) = (self.there(session), self.there(from)) else { return };
                self.insert(index, from, cell, at).await;
            }
            Step::Delete { session } => {
                let Some(index) = self.there(session) else { return };
                let known = &mut self.sessions[index];
                known.is_deleted = true;
                let append = known.line.append(vec![EventBody::SessionDeleted]);
                self.log().append(append).await.unwrap();
            }
            Step::Collect { steps } => self.collect(steps).await,
            Step::OpenAnew => {
                self.log = None;
                self.log = Some(open(self.folder));
            }
        }
    }

    /// The session that this number means, of those that are there.
    fn there(&self, number: usize) -> Option<usize> {
        let there: Vec<usize> =
            (0..self.sessions.len()).filter(|index| !self.sessions[*index].is_deleted).collect();
        (!there.is_empty()).then(|| there[number % there.len()])
    }

    async fn fork(&mut self, index: usize, cells: usize) {
        let parent = &self.sessions[index];
        let entries = (cells * 2).min(parent.transcript.len());
        let transcript = parent.transcript[..entries].to_vec();
        let all = parent.line.session.clone().unwrap().transcript.segments(parent.line.id, parent.own);
        let segments = slice(&all, 0..entries as u64);
        let from = parent.line.id;
        let mut line = Line::new(self.sessions.len() as u128);
        let create = line.create();
        let point = ForkPoint {
            from,
            entries: entries as u64,
            asked: None,
            replay: segments.clone(),
            segments,
            labels: Default::default(),
        };
        let mut append = line.append(vec![EventBody::SessionForked(point)]);
        append.first = create.first;
        append.events.splice(0..0, create.events);
        self.log().append(append).await.unwrap();
        self.sessions.push(Known {
            line,
            is_deleted: false,
            transcript,
            own: 0,
            said: Vec::new(),
            ends: Vec::new(),
        });
    }

    async fn insert(&mut self, index: usize, from: usize, cell: usize, at: usize) {
        let cells = self.sessions[from].transcript.len() / 2;
        if cells == 0 {
            return;
        }
        let first = 2 * (cell % cells) as u64;
        let Known { line, own, transcript, .. } = &self.sessions[from];
        let all = line.session.clone().unwrap().transcript.segments(line.id, *own);
        let brought: Vec<_> = kept(&slice(&all, first..first + 2)).collect();
        let said = transcript[first as usize..first as usize + 2].to_vec();
        let from = line.id;
        let known = &mut self.sessions[index];
        let at = 2 * (at % (known.transcript.len() / 2 + 1));
        let mut transcript = known.line.session.clone().unwrap().transcript;
        transcript.insert(known.line.id, known.own, at as u64, &brought);
        let entries = std::iter::once(first..first + 2).collect();
        let point = MergePoint {
            from,
            entries,
            brought,
            at: at as u64,
            wanted: None,
            transcript,
            replay: Vec::new(),
        };
        let append = known.line.append(vec![EventBody::EntriesMerged(Box::new(point))]);
        known.transcript.splice(at..at, said);
        self.log().append(append).await.unwrap();
    }

    async fn collect(&self, steps: usize) {
        let mut next = Some(Collection::default());
        for _ in 0..steps {
            let Some(from) = next else { return };
            next = self.log().collect(from).await.unwrap().1;
        }
    }

    async fn assert_all_is_said(&self) {
        for known in self.sessions.iter().filter(|known| !known.is_deleted) {
            let Known { line, transcript, own, .. } = known;
            let mut said = Vec::new();
            for segment in line.session.as_ref().unwrap().transcript.segments(line.id, *own) {
                let limit = usize::try_from(segment.len()).unwrap();
                for placed in self.log().own_entries(segment.session, segment.from, limit).await.unwrap() {
                    let beginning = placed.entry.content.beginning().to_owned();
                    said.push((placed.session, placed.number, beginning));
                }
            }
            assert_eq!(said.len(), transcript.len());
            for (said, known) in said.iter().zip(transcript) {
                assert_eq!((said.0, said.1), (known.0, known.1));
                assert!(known.2.starts_with(&said.2), "{} says {}", known.2, said.2);
            }
        }
    }

    /// Exactly what someone can read is there: what a session that was not deleted says, and of one that was as much as the
    /// transcript of another has.
    async fn assert_nothing_else_is_there(&self) {
        let there = || self.sessions.iter().filter(|known| !known.is_deleted);
        let has = |of: &Known, number: u64| {
            let is_it =
                |(session, said, _): &(SessionId, u64, String)| *session == of.line.id && *said == number;
            !of.is_deleted || there().any(|known| known.transcript.iter().any(is_it))
        };
        let (mut places, mut entries) = (0, BTreeSet::new());
        for known in &self.sessions {
            let mut last = None;
            for (number, said) in (0..).zip(&known.said).filter(|(number, _)| has(known, *number)) {
                places += 1;
                entries.insert(said.clone());
                last = Some(number);
            }
            let events = self.log().events(known.line.id, Seq::ZERO, usize::MAX).await.unwrap();
            // Of one that was deleted all up to the last that someone has.
            let expected = match (known.is_deleted, last) {
                (false, _) => known.line.last_seq().0,
                (true, None) => 1,
                (true, Some(number)) => known.ends[number as usize] + 1,
            };
            assert_eq!(events.len() as u64, expected);
        }
        let stored = self.log().statistics().await.unwrap();
        let objects = entries.iter().filter(|said| said.len() > 10_000).count();
        let files = entries.iter().filter(|said| said.len() > 64 * 1024).map(String::len).sum::<usize>();
        let distinct = entries.len() as u64;
        assert_eq!((stored.places, stored.entries, stored.objects), (places, distinct, objects as u64));
        assert_eq!(stored.file_bytes, files as u64);
        assert_eq!(files_of(&self.folder.join("objects")), files as u64);
    }
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder, &SqliteOptions::default()).unwrap()
}

/// How many bytes the files in a folder have.
fn files_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .map(
            |file| if file.path().is_dir() { files_of(&file.path()) } else { file.metadata().unwrap().len() },
        )
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_collection_removes_exactly_what_nobody_can_read(steps in vec(step(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("store");
        runtime.block_on(async {
            let mut known =
                Store { log: Some(open(&folder)), folder: &folder, sessions: Vec::new() };
            for number in 0..2 {
                let mut line = Line::new(number);
                known.log().append(line.create()).await.unwrap();
                known.sessions.push(Known { line, is_deleted: false, transcript: Vec::new(), own: 0, said: Vec::new(), ends: Vec::new() });
            }
            for step in steps {
                known.take(step).await;
            }
            known.assert_all_is_said().await;
            known.collect(usize::MAX).await;
            known.assert_all_is_said().await;
            known.assert_nothing_else_is_there().await;
            drop(known);
            let mut found = examine(&folder, &mut |_| {}).unwrap().unwrap().findings;
            // The cells here are nobody's commands.
            found.retain(|finding| {
                !matches!(finding, Finding::OutcomeMissing { .. } | Finding::LittleRoom { .. })
            });
            assert_eq!(found, []);
        });
    }
}

//! Sessions that are forked, merged, compacted, deleted and collected, beside the simplest model there could be: lists that are copied.
//! However far a collection came, and however often the store was opened anew, every session that is there says what it said, and
//! its lineage ends; and a whole collection leaves exactly what someone can still read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use mainstay_log::{EntryIndex, EventLog, Finding, Maintenance, SqliteLog, SqliteOptions, examine};
use mainstay_model::session::Parent;
use mainstay_model::store::Collection;
use mainstay_model::transcript::{context, kept, slice};
use mainstay_model::{
    Compaction, EventBody, ForkPoint, MergePoint, Origin, Role, Segment, Seq, SessionId, TranscriptEntry,
};
use proptest::collection::vec;
use proptest::option;
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
        entries: usize,
    },
    /// An entry of another's transcript, and some before it, are put into this one's, somewhere or at its end.
    Insert {
        session: usize,
        from: usize,
        entry: usize,
        before: usize,
        at: Option<usize>,
    },
    /// A cell of another's transcript runs in this one.
    Run {
        session: usize,
        from: usize,
        entry: usize,
    },
    /// A summary stands for the beginning of the transcript.
    Compact {
        session: usize,
        before: usize,
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
        5 => (session(), session()).prop_map(|(session, entries)| Step::Fork { session, entries }),
        4 => (session(), session(), session(), 0..3_usize, option::of(session())).prop_map(
            |(session, from, entry, before, at)| Step::Insert { session, from, entry, before, at }
        ),
        2 => (session(), session(), session())
            .prop_map(|(session, from, entry)| Step::Run { session, from, entry }),
        3 => (session(), session()).prop_map(|(session, before)| Step::Compact { session, before }),
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

/// An entry of a transcript: whose it is, and what it says.
#[derive(Clone, Debug)]
struct SentMessage {
    session: SessionId,
    number: u64,
    role: Role,
    text: String,
    /// What a summary stands for.
    covers: Vec<Segment>,
    origin: Option<Origin>,
}

/// A session beside its list.
struct Known {
    line: Line,
    is_deleted: bool,
    parent: Option<Parent>,
    transcript: Vec<SentMessage>,
    /// Its own entries, and the event with which each ended.
    own: Vec<SentMessage>,
    ends: Vec<u64>,
}

impl Known {
    fn new(line: Line, parent: Option<Parent>, transcript: Vec<SentMessage>) -> Self {
        Self { line, is_deleted: false, parent, transcript, own: Vec::new(), ends: Vec::new() }
    }

    /// It says something of its own, with the event that is its newest.
    fn says(&mut self, role: Role, text: &str, covers: Vec<Segment>, origin: Option<Origin>) {
        let (session, number) = (self.line.id, self.own.len() as u64);
        let said = SentMessage { session, number, role, text: text.to_owned(), covers, origin };
        self.transcript.push(said.clone());
        self.own.push(said);
        self.ends.push(self.line.last_seq().0);
    }

    /// What its transcript consists of.
    fn segments(&self) -> Vec<Segment> {
        let session = self.line.session.as_ref().unwrap();
        session.transcript.segments(self.line.id, self.own.len() as u64)
    }

    /// A place in its transcript that parts no output from its input.
    fn whole(&self, place: usize) -> usize {
        let place = place % (self.transcript.len() + 1);
        let parts = self.transcript.get(place).is_some_and(|said| said.role == Role::Output);
        if parts { place + 1 } else { place }
    }

    /// The entry with this number, its input or output with it, and some before it.
    fn some(&self, entry: usize, before: usize) -> Option<Range<usize>> {
        let entry = entry % self.transcript.len().max(1);
        let is_output = |at: usize| self.transcript.get(at).is_some_and(|said| said.role == Role::Output);
        let first = entry.saturating_sub(before);
        let first = if is_output(first) { first - 1 } else { first };
        let last = if is_output(entry + 1) { entry + 1 } else { entry };
        (!self.transcript.is_empty()).then_some(first..last + 1)
    }
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
                self.cell(index, &code(number), None).await;
            }
            Step::Fork { session, entries } => {
                let Some(index) = self.there(session) else { return };
                self.fork(index, entries).await;
            }
            Step::Insert { session, from, entry, before, at } => {
                let (Some(index), Some(from)) = (self.there(session), self.there(from)) else { return };
                let Some(brought) = self.sessions[from].some(entry, before) else { return };
                let at = self.sessions[index].whole(at.unwrap_or(self.sessions[index].transcript.len()));
                self.insert(index, from, brought, at).await;
            }
            Step::Run { session, from, entry } => {
                let (Some(index), Some(from)) = (self.there(session), self.there(from)) else { return };
                let inputs = self.sessions[from].transcript.iter().filter(|said| said.role == Role::Input);
                let inputs: Vec<_> = inputs.cloned().collect();
                if inputs.is_empty() {
                    return;
                }
                let SentMessage { session, number, text, .. } = &inputs[entry % inputs.len()];
                self.cell(index, text, Some(Origin { session: *session, number: *number })).await;
            }
            Step::Compact { session, before } => {
                let Some(index) = self.there(session) else { return };
                self.compact(index, before).await;
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

    async fn cell(&mut self, index: usize, text: &str, from: Option<Origin>) {
        let known = &mut self.sessions[index];
        let mut request = known.line.request(text);
        if let EventBody::EvalRequested { origin, .. } = &mut request.events[0].body {
            *origin = from;
        }
        let finish = known.line.finish("done");
        known.says(Role::Input, text, Vec::new(), from);
        known.says(Role::Output, "done", Vec::new(), None);
        for append in [request, finish] {
            self.log().append(append).await.unwrap();
        }
    }

    async fn compact(&mut self, index: usize, before: usize) {
        let known = &mut self.sessions[index];
        let entries = known.whole(before);
        if entries == 0 {
            return;
        }
        let covers = slice(&known.segments(), 0..entries as u64);
        let summary = format!("{entries} entries");
        let metadata = Default::default();
        let compaction = Compaction { covers: covers.clone(), summary: summary.clone(), metadata };
        let append = known.line.append(vec![EventBody::TranscriptCompacted(Box::new(compaction))]);
        known.says(Role::Summary, &summary, covers, None);
        self.log().append(append).await.unwrap();
    }

    async fn fork(&mut self, index: usize, entries: usize) {
        let parent = &self.sessions[index];
        let entries = parent.whole(entries);
        let transcript = parent.transcript[..entries].to_vec();
        let segments = slice(&parent.segments(), 0..entries as u64);
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
        let parent = Parent { session: from, entries: entries as u64 };
        self.sessions.push(Known::new(line, Some(parent), transcript));
    }

    async fn insert(&mut self, index: usize, from: usize, range: Range<usize>, at: usize) {
        let entries = range.start as u64..range.end as u64;
        let other = &self.sessions[from];
        let brought: Vec<_> = kept(&slice(&other.segments(), entries.clone())).collect();
        let said = other.transcript[range].to_vec();
        let from = other.line.id;
        let known = &mut self.sessions[index];
        let mut transcript = known.line.session.clone().unwrap().transcript;
        transcript.insert(known.line.id, known.own.len() as u64, at as u64, &brought);
        let entries = std::iter::once(entries).collect();
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
            let stored = self.log().session(known.line.id).await.unwrap().unwrap();
            assert_eq!(stored.forked_from, known.parent);
            let mut said: Vec<TranscriptEntry> = Vec::new();
            for segment in stored.transcript.segments(known.line.id, known.own.len() as u64) {
                let limit = usize::try_from(segment.len()).unwrap();
                said.extend(self.log().own_entries(segment.session, segment.from, limit).await.unwrap());
            }
            assert_eq!(said.len(), known.transcript.len());
            for (placed, known) in said.iter().zip(&known.transcript) {
                assert_eq!((placed.session, placed.number), (known.session, known.number));
                assert_eq!((placed.entry.role, placed.origin), (known.role, known.origin));
                assert_eq!(placed.entry.covers(), known.covers);
                let beginning = placed.entry.content.beginning();
                assert!(known.text.starts_with(beginning), "{} says {beginning}", known.text);
            }
            let shown: Vec<_> =
                context(&said).into_iter().map(|placed| (placed.session, placed.number)).collect();
            assert_eq!(shown, shown_of(&known.transcript));
            self.assert_its_lineage_ends(known).await;
        }
    }

    /// Each session begins with another that was there before it, whether or not that was deleted since.
    async fn assert_its_lineage_ends(&self, known: &Known) {
        let mut session = self.log().session(known.line.id).await.unwrap().unwrap();
        let mut ancestors = vec![session.id];
        while let Some(Parent { session: parent, .. }) = session.forked_from {
            assert!(!ancestors.contains(&parent), "{parent} is its own ancestor");
            ancestors.push(parent);
            session = self.log().session(parent).await.unwrap().expect("its parent is known");
        }
    }

    /// Exactly what someone can read is there: what a session that was not deleted says, and of one that was as much as the
    /// transcript of another has.
    async fn assert_nothing_else_is_there(&self) {
        let there = || self.sessions.iter().filter(|known| !known.is_deleted);
        let has = |of: &Known, number: u64| {
            let is_it = |said: &SentMessage| said.session == of.line.id && said.number == number;
            !of.is_deleted || there().any(|known| known.transcript.iter().any(is_it))
        };
        let (mut places, mut entries) = (0, BTreeSet::new());
        for known in &self.sessions {
            let mut last = None;
            for said in known.own.iter().filter(|said| has(known, said.number)) {
                places += 1;
                // A summary of something else is another entry, whatever it says.
                entries.insert((said.text.clone(), serde_json::to_string(&said.covers).unwrap()));
                last = Some(said.number);
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
        let objects = entries.iter().filter(|(said, _)| said.len() > 10_000).count();
        let files =
            entries.iter().map(|(said, _)| said.len()).filter(|bytes| *bytes > 64 * 1024).sum::<usize>();
        let distinct = entries.len() as u64;
        assert_eq!((stored.places, stored.entries, stored.objects), (places, distinct, objects as u64));
        assert_eq!(stored.file_bytes, files as u64);
        assert_eq!(files_of(&self.folder.join("objects")), files as u64);
    }
}

/// What an agent is to be shown: the newest summary, then what it does not stand for, without older summaries. It stands for entries in front of
/// it, the first of those that stand there more than once.
fn shown_of(transcript: &[SentMessage]) -> Vec<(SessionId, u64)> {
    let Some(newest) = transcript.iter().rposition(|said| said.role == Role::Summary) else {
        return transcript.iter().map(|said| (said.session, said.number)).collect();
    };
    let mut covered: Vec<(SessionId, u64)> = transcript[newest]
        .covers
        .iter()
        .flat_map(|segment| (segment.from..segment.to).map(|number| (segment.session, number)))
        .collect();
    let mut shown = vec![(transcript[newest].session, transcript[newest].number)];
    for (index, said) in transcript.iter().enumerate() {
        let place = (said.session, said.number);
        if index < newest
            && let Some(at) = covered.iter().position(|covered| *covered == place)
        {
            covered.remove(at);
        } else if said.role != Role::Summary {
            shown.push(place);
        }
    }
    shown
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
                known.sessions.push(Known::new(line, None, Vec::new()));
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

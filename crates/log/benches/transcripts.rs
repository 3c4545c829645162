//! What transcripts cost: a cell in a long session beside one in a short session, making entries, the first page, search.
//!
//! `cargo bench -p mainstay-log --bench transcripts`, up to 100,000 entries; `MAINSTAY_BENCH_ENTRIES=1000000` goes on to a
//! million, which takes minutes and some GB. Everything is in one folder under the target folder: `/tmp` may not be a disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_log::{
    Append, EntryFilter, EntryIndex, EventLog, Maintenance, SessionFilter, SqliteLog, SqliteOptions,
};
use mainstay_model::search::Words;
use mainstay_model::store::{Collected, Collection};
use mainstay_model::{Access, EventBody, NamePattern, Principal, Rights, Role};
use rusqlite::{Connection, OpenFlags};
use support::Line;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "../tests/support/mod.rs"]
mod support;

/// The entries of the short session.
const FEW: u64 = 1000;
/// How many cells are timed in each of the two sessions.
const CELLS: usize = 1024;
/// How many cells of a fill are one append.
const FILL: u64 = 5000;
/// A page of a transcript, and of what is found.
const PAGE: usize = 50;
const HITS: usize = 20;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let most = std::env::var("MAINSTAY_BENCH_ENTRIES").map_or(100_000, |most| most.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut store = Store::new(&runtime, 1);
    for entries in [FEW, 10_000, 100_000, 1_000_000].into_iter().filter(|entries| *entries <= most) {
        println!("\n{entries} entries");
        let made = store.fill_to(entries);
        if entries > FEW {
            made.tell();
        }
        store.pages();
        store.searches();
        let mut short = Store::new(&runtime, 2);
        short.fill_to(FEW);
        cells(&mut short, &mut store);
        store.sizes();
    }
    store.collect();
}

/// A store with one session.
struct Store<'r> {
    runtime: &'r Runtime,
    folder: TempDir,
    log: SqliteLog,
    line: Line,
    prose: Prose,
}

impl<'r> Store<'r> {
    fn new(runtime: &'r Runtime, seed: u64) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let mut line = Line::new(seed.into());
        runtime.block_on(log.append(line.create())).unwrap();
        Self { runtime, folder, log, line, prose: Prose { state: seed, said: 0 } }
    }

    /// Appends cells until there are so many entries, and tells how fast they were made.
    fn fill_to(&mut self, entries: u64) -> Made {
        let mut made = Made::default();
        let mut there = self.count();
        while there < entries {
            let cells = ((entries - there) / 2).min(FILL);
            let events: Vec<Append> = (0..cells).flat_map(|_| self.cell()).collect();
            self.append(as_one(events));
            // An append has some made by itself.
            let before = entries_made(self.folder.path());
            let (took, after) = time(|| self.count());
            made.add(after - before, took);
            there = after;
        }
        made
    }

    /// The two appends of one cell.
    fn cell(&mut self) -> [Append; 2] {
        let (code, display) = (self.prose.say(), self.prose.say());
        [self.line.request(&code), self.line.finish(&display)]
    }

    fn append(&self, append: Append) {
        self.runtime.block_on(self.log.append(append)).unwrap();
    }

    /// How many entries the session has, once all are made.
    fn count(&self) -> u64 {
        self.runtime.block_on(self.log.count_own_entries(self.line.id)).unwrap()
    }

    fn pages(&self) {
        let entries = self.count();
        let page = |from| {
            let found = self.runtime.block_on(self.log.own_entries(self.line.id, from, PAGE)).unwrap();
            assert_eq!(found.len(), PAGE);
        };
        tell("counting the entries", &repeat(200, || assert!(black_box(self.count()) == entries)));
        tell("the first 50", &repeat(200, || page(0)));
        tell("the last 50", &repeat(200, || page(entries - PAGE as u64)));
    }

    fn searches(&self) {
        for (what, words) in [("a rare word", RARE), ("a word in 1 %", SOME), ("a word in 50 %", COMMON)] {
            let all = filter(words);
            let inputs = EntryFilter { roles: vec![Role::Input], ..all.clone() };
            let seen = EntryFilter { sessions: seen_by_guest(), ..all.clone() };
            self.search(what, all);
            self.search(&format!("{what}, inputs"), inputs);
            self.search(&format!("{what}, of what a guest sees"), seen);
        }
    }

    fn search(&self, what: &str, filter: EntryFilter) {
        let search = || drop(black_box(self.runtime.block_on(self.log.search(filter.clone())).unwrap()));
        tell(&format!("search: {what}"), &repeat(15, search));
    }

    /// Deletes the session and collects it.
    fn collect(&mut self) {
        let deletion = self.line.append(vec![EventBody::SessionDeleted]);
        self.append(deletion);
        let (mut all, mut next) = (Collected::default(), Some(Collection::default()));
        let mut times = Vec::new();
        while let Some(from) = next {
            let is_rows = matches!(from, Collection::Sessions { .. });
            let (took, part) = time(|| self.runtime.block_on(self.log.collect(from)).unwrap());
            all += part.0;
            next = part.1;
            if is_rows {
                times.push(took);
            }
        }
        let took: Duration = times.iter().sum();
        let rate = (all.entries + all.events) as f64 / took.as_secs_f64();
        println!(
            "\ncollected {} entries and {} events in {took:.1?}: {rate:.0} a second",
            all.entries, all.events
        );
        tell("a step of a collection", &times);
    }

    fn sizes(&self) {
        let database = std::fs::metadata(self.folder.path().join("mainstay.db")).unwrap().len();
        println!("the database: {:.0} MB", database as f64 / 1e6);
    }
}

/// How long it took to make entries, some thousand at a time.
#[derive(Default)]
struct Made {
    entries: u64,
    took: Duration,
    each: Vec<Duration>,
}

impl Made {
    fn add(&mut self, entries: u64, took: Duration) {
        self.entries += entries;
        self.took += took;
        self.each.push(took.div_f64(entries.max(1) as f64));
    }

    /// Now and then the full-text index merges much at once: a median does not see that, and all of them together do.
    fn tell(&self) {
        let rate = self.entries as f64 / self.took.as_secs_f64();
        let [median, longest] =
            [self.each.len() / 2, self.each.len() - 1].map(|rank| of_rank(&self.each, rank));
        println!(
            "making entries: {rate:.0} a second over all; each, by fills: median {median:.1?}, longest {longest:.1?}"
        );
    }
}

/// The cells of two stores in turns, so that a busy machine spoils both alike. Means have the making of entries in them,
/// which the median does not see.
fn cells<'r>(short: &mut Store<'r>, long: &mut Store<'r>) {
    let [mut of_short, mut of_long] = [const { Vec::new() }; 2];
    for _ in 0..CELLS {
        for (store, times) in [(&mut *short, &mut of_short), (&mut *long, &mut of_long)] {
            let appends = store.cell();
            times.push(time(|| appends.into_iter().for_each(|append| store.append(append))).0);
        }
    }
    tell("a cell, in a short session", &of_short);
    tell("a cell, in this session", &of_long);
    let ratio = |of: fn(&[Duration]) -> Duration| of(&of_long).as_secs_f64() / of(&of_short).as_secs_f64();
    println!(
        "a cell, this session beside the short one: median {:.2} x, mean {:.2} x",
        ratio(median),
        ratio(mean)
    );
}

/// Appends of one line, one after the other, as one.
fn as_one(appends: Vec<Append>) -> Append {
    appends
        .into_iter()
        .reduce(|mut all, next| {
            all.events.extend(next.events);
            Append { events: all.events, version: next.version, projection: next.projection, ..all }
        })
        .unwrap()
}

/// How many entries a store has by now.
fn entries_made(folder: &Path) -> u64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(folder.join("mainstay.db"), flags).unwrap();
    let made: i64 = connection
        .query_row("SELECT coalesce(max(number) + 1, 0) FROM place WHERE session = 1", (), |row| row.get(0))
        .unwrap();
    made.unsigned_abs()
}

fn filter(words: &str) -> EntryFilter {
    EntryFilter {
        words: Words::parse(words).unwrap(),
        roles: Vec::new(),
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: HITS,
    }
}

/// The sessions that one sees who may see these, by name.
fn seen_by_guest() -> SessionFilter {
    let see = vec!["session-*".parse::<NamePattern>().unwrap()];
    let rights = Rights::Some { see, drive: Vec::new() };
    let guest = Access { principal: Principal::new("guest").unwrap(), rights };
    SessionFilter { seen_by: Some(guest), ..SessionFilter::default() }
}

const RARE: &str = "rareword";
const SOME: &str = "someword";
const COMMON: &str = "commonword";

/// Texts of about 520 bytes, no two alike.
struct Prose {
    state: u64,
    said: u64,
}

impl Prose {
    fn say(&mut self) -> String {
        self.said += 1;
        let mut text = format!("let value_{} =\n    ", self.said);
        if self.below(20_000) == 0 {
            text.push_str(RARE);
        }
        if self.below(100) == 0 {
            text.push_str(&format!(" {SOME}"));
        }
        if self.below(2) == 0 {
            text.push_str(&format!(" {COMMON}"));
        }
        while text.len() < 515 {
            // Some of 10,000 words are far more frequent than others.
            let word = self.below(100) * self.below(100) * self.below(10_000) / 10_000;
            text.push_str(&format!(" w{word:x}"));
        }
        text
    }

    /// A number below this one (`SplitMix64`).
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn repeat(times: usize, mut work: impl FnMut()) -> Vec<Duration> {
    (0..times).map(|_| time(&mut work).0).collect()
}

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn tell(what: &str, times: &[Duration]) {
    let [median, mean, p99] = [median(times), mean(times), of_rank(times, times.len() * 99 / 100)];
    let longest = of_rank(times, times.len() - 1);
    println!("{what:<45} median {median:>9.2?}  mean {mean:>9.2?}  p99 {p99:>9.2?}  longest {longest:>9.2?}");
}

fn median(times: &[Duration]) -> Duration {
    of_rank(times, times.len() / 2)
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap()
}

fn of_rank(times: &[Duration], rank: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(rank).copied().unwrap_or_default()
}

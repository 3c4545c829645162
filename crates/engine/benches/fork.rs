//! What a fork costs, however long the transcript of the session is: the time until it is answered, and the bytes that the
//! store takes for it.
//!
//! `cargo bench -p mainstay-engine --bench fork`, with up to 100,000 entries; `MAINSTAY_BENCH_ENTRIES=1000000` goes on to a
//! million.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mainstay_engine::{Client, Engine};
use mainstay_log::{Append, EntryIndex, EventLog, NewEvent, SqliteLog, SqliteOptions};
use mainstay_model::{
    Access, Capabilities, Command, CommandFingerprint, CommandId, CreateSession, Error, EvalResult, Event,
    EventBody, ForkSession, JobId, Limits, Metadata, Outcome, Position, Response, Seq, SessionCommand,
    SessionId, SessionKind, Source, Timestamp,
};
use mainstay_runner::{RunnerFactory, RunnerSpec, StartObserver, StartedRunner};
use rusqlite::Connection;
use tempfile::TempDir;
use tracing::Span;
use uuid::Uuid;

const FORKS: usize = 50;
/// How many before them are not timed: the first ones find nothing in memory, and a disk that still writes the fill.
const UNTIMED: usize = 10;
/// How many cells of a fill are one append.
const FILL: u64 = 5000;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let most = std::env::var("MAINSTAY_BENCH_ENTRIES").map_or(100_000, |most| most.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("| what | median | p99 | longest | bytes each |\n|---|---|---|---|---|");
    println!("{}", runtime.block_on(measure(0)));
    for entries in [1000, 100_000, 1_000_000].into_iter().filter(|entries| *entries <= most) {
        println!("{}", runtime.block_on(measure(entries)));
    }
}

/// One row: forks of a session with so many entries, or, where it has none, creations.
async fn measure(entries: u64) -> String {
    let daemon = Daemon::start().await;
    let parent = daemon.create("long").await.0;
    daemon.fill(parent, entries).await;
    let mut before = 0;
    let mut times = Vec::new();
    for number in 0..UNTIMED + FORKS {
        if number == UNTIMED {
            times.clear();
            before = daemon.bytes_used();
        }
        let name = format!("fork-{number}");
        let (session, took) =
            if entries == 0 { daemon.create(&name).await } else { daemon.fork(parent, name, entries).await };
        daemon.stop(session).await;
        times.push(took);
    }
    times.sort();
    let bytes = (daemon.bytes_used() - before) / FORKS as u64;
    let [median, p99, longest] = [FORKS / 2, FORKS * 99 / 100, FORKS - 1].map(|rank| times[rank]);
    let what = if entries == 0 { "a creation".to_owned() } else { format!("a fork of {entries} entries") };
    format!("| {what} | {median:.2?} | {p99:.2?} | {longest:.2?} | {bytes} |")
}

/// An engine over a store of its own, and a client.
struct Daemon {
    client: Client,
    log: Arc<SqliteLog>,
    folder: TempDir,
}

impl Daemon {
    async fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let log = Arc::new(SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap());
        let engine =
            Engine::open(Arc::clone(&log) as _, vec![Arc::new(Never)], Limits::default()).await.unwrap();
        Self { client: engine.attach(Access::local(), "bench"), log, folder }
    }

    /// A session, and how long it took to create it.
    async fn create(&self, name: &str) -> (SessionId, Duration) {
        let create = CreateSession {
            kind: SessionKind::fsharp(),
            working_directory: "/".to_owned(),
            project: Default::default(),
            arguments: Vec::new(),
            name: Some(name.to_owned()),
            alias: None,
        };
        let start = Instant::now();
        let created = self.client.create(id(), create).await.unwrap();
        let took = start.elapsed();
        match created {
            Outcome::Done { response: Response::Created { session } } => (session, took),
            other => panic!("{other:?}"),
        }
    }

    async fn fork(&self, from: SessionId, name: String, all: u64) -> (SessionId, Duration) {
        let start = Instant::now();
        let forked = self
            .client
            .fork(id(), ForkSession { from, entries: None, name: Some(name), before_reset: false })
            .await
            .unwrap();
        let took = start.elapsed();
        match forked {
            Outcome::Done { response: Response::Forked { session, entries, .. } } if entries == all => {
                (session, took)
            }
            other => panic!("{other:?}"),
        }
    }

    async fn stop(&self, session: SessionId) {
        self.client.submit(session, Command::new(id(), Source::System, SessionCommand::Stop)).await.unwrap();
    }

    /// Puts cells into the log of a session, which is idle then, and has its entries made.
    async fn fill(&self, session: SessionId, entries: u64) {
        self.stop(session).await;
        let epoch = self.log.claim(session).await.unwrap();
        let mut projection = self.log.session(session).await.unwrap().unwrap();
        let mut number = 0;
        while number < entries / 2 {
            let first = projection.last_seq.next();
            let cells = number..(number + FILL).min(entries / 2);
            number = cells.end;
            let mut events: Vec<NewEvent> = cells.flat_map(cell).collect();
            for (seq, event) in (first.0..).zip(&mut events) {
                // An end knows what it is the end of, the event before it.
                event.metadata.causation = event.body.job_end().map(|_| Seq(seq - 1));
                let NewEvent { at, metadata, body } = event.clone();
                let (seq, position) = (Seq(seq), Position::ZERO);
                projection.evolve(&Event { session, seq, position, at, metadata, body });
            }
            let (outcomes, version, projection) = (Vec::new(), projection.version, projection.clone());
            let (taken, trace) = (None, Span::none());
            let append =
                Append { session, epoch, first, events, outcomes, version, projection, taken, trace };
            self.log.append(append).await.unwrap();
        }
        assert_eq!(self.log.count_own_entries(session).await, Ok(entries));
    }

    /// How many bytes of the database are in use.
    fn bytes_used(&self) -> u64 {
        let database = Connection::open(self.folder.path().join("mainstay.db")).unwrap();
        let pages = |name| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        (pages("page_count") - pages("freelist_count")).unsigned_abs() * 4096
    }
}

/// A kernel whose workers never come up: what a fork's worker does after the answer is not measured here.
struct Never;

#[async_trait]
impl RunnerFactory for Never {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        std::future::pending().await
    }
}

/// The events of a cell whose two entries are of about 520 bytes.
fn cell(number: u64) -> [NewEvent; 2] {
    let job = JobId::from_uuid(Uuid::from_u128(number.into()));
    let text = |what: &str| format!("{what} {number} {}", "word ".repeat(101));
    let requested = EventBody::EvalRequested {
        job,
        command: id(),
        fingerprint: CommandFingerprint::from_stored("f".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        code: text("code"),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    };
    let result = EvalResult { display: text("display"), ..EvalResult::default() };
    let completed = EventBody::EvalCompleted { job, result, changes_state: false, duration_ms: 1 };
    [requested, completed].map(|body| {
        let metadata =
            Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
        NewEvent { at: Timestamp::UNIX_EPOCH, metadata, body }
    })
}

fn id() -> CommandId {
    CommandId::new(Uuid::now_v7().to_string()).unwrap()
}

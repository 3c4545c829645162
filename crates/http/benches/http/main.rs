//! Streams over HTTP at scale: many subscribers of one session that prints 200 times a second, over real sockets, and whether each was
//! told everything exactly once; what the daemon pays for it in time, computing and memory.
//!
//! `cargo bench -p mainstay-gateway --bench http`, or with `-- --scenario /eval 1000 identity` one row. Each row is a process of its own, and its
//! subscribers are another, so that what is measured of the daemon is the daemon's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

mod clients;
mod printer;
mod sizes;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mainstay_engine::{Client, Cursor, Engine};
use mainstay_gateway::Daemon;
use mainstay_gateway::port;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::Tokens;
use mainstay_http::Http;
use mainstay_log::SessionFilter;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::command;
use mainstay_model::{
    Access, Admission, Command, CommandId, CreateSession, EventBody, EventFilter, Limits, Seq,
    SessionCommand, SessionId, SessionKind, Timestamp,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use printer::Printers;

/// The secret of this bench's daemon.
const TOKEN: &str = "secret";
/// Events that the session prints.
const EVENTS: u64 = 2_000;
/// How long lies between two of them.
const PAUSE: Duration = Duration::from_millis(5);

/// Which stream, how many subscribers, and how they take it.
const ROWS: [(&str, usize, &str); 9] = [
    ("/eval", 1, "identity"),
    ("/eval", 1, "gzip"),
    ("/events", 1, "gzip"),
    ("/eval", 1_000, "identity"),
    ("/events", 1_000, "identity"),
    ("/eval", 1_000, "gzip"),
    ("/eval", 1_000, "unread"),
    ("/eval", 5_000, "identity"),
    ("/events", 5_000, "identity"),
];

fn main() {
    allow_connections();
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words.as_slice() {
        // `cargo test --benches` only wants to know that it builds.
        words if words.contains(&"--test") => {}
        ["--scenario", path, subscribers, coding, ..] => {
            runtime().block_on(scenario(&arguments[0], path, subscribers.parse().unwrap(), coding));
        }
        ["--clients", port, path, subscribers, coding] => {
            let (port, subscribers) = (port.parse().unwrap(), subscribers.parse().unwrap());
            runtime().block_on(clients::run(port, path, subscribers, coding));
        }
        ["--sizes", ..] => runtime().block_on(sizes::run()),
        _ => {
            table(&arguments[0]);
            runtime().block_on(sizes::run());
        }
    }
}

/// As many sockets as this process may have at all.
fn allow_connections() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn table(program: &str) {
    println!(
        "| stream | coding | subscribers | events a second | told | median | p99 | longest | the daemon's computing, of one core | resident, each subscriber | at the end | bytes an event |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for (path, subscribers, coding) in ROWS {
        let row = process::Command::new(program)
            .args(["--scenario", path, &subscribers.to_string(), coding])
            .output()
            .unwrap();
        assert!(row.status.success(), "{}", String::from_utf8_lossy(&row.stderr));
        print!("{}", String::from_utf8_lossy(&row.stdout));
    }
}

/// Measures one scenario and prints its row.
async fn scenario(program: &str, path: &str, subscribers: usize, coding: &str) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (daemon, port) = start(folder.path()).await;
    let client = daemon.engine.attach(Access::local(), "bench");
    let session = create(&client).await;
    // What every run needs once is no subscriber's.
    print_events(&client, session, "warm", 50).await;
    let before = resident_bytes();
    let after = client.status(session).await.unwrap().session.last_seq;
    let mut subscribed =
        Subscribers::start(program, port, &format!("{path}?after={after}"), subscribers, coding);
    subscribed.line();
    let waiting = resident_bytes().saturating_sub(before);
    let watch = watch(daemon.engine.clone(), session, after);
    let (computed, began) = (computed(), SystemTime::now());
    print_events(&client, session, "run", EVENTS).await;
    let took = began.elapsed().unwrap();
    let published = watch.await.unwrap();
    subscribed.tell(&published);
    let told = subscribed.line();
    let (span, used) = (began.elapsed().unwrap(), self::computed() - computed);
    let each = |bytes: u64| bytes as f64 / subscribers as f64 / 1024.0;
    println!(
        "| `{path}` | {coding} | {subscribers} | {:.0} | {told} | {:.0} % | {:.1} KB | {:.1} MB |",
        EVENTS as f64 / took.as_secs_f64(),
        used.as_secs_f64() / span.as_secs_f64() * 100.0,
        each(waiting),
        resident_bytes() as f64 / 1024.0 / 1024.0,
    );
    subscribed.end();
}

/// The process of the subscribers.
struct Subscribers {
    process: Child,
    says: BufReader<process::ChildStdout>,
}

impl Subscribers {
    fn start(program: &str, port: u16, path: &str, subscribers: usize, coding: &str) -> Self {
        let mut process = process::Command::new(program)
            .args(["--clients", &port.to_string(), path, &subscribers.to_string(), coding])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(process.stdout.take().unwrap());
        Self { process, says }
    }

    /// What it says next.
    fn line(&mut self) -> String {
        let says = &mut self.says;
        let mut line = String::new();
        tokio::task::block_in_place(|| says.read_line(&mut line)).unwrap();
        assert!(!line.is_empty(), "the subscribers have ended");
        line.trim_end().to_owned()
    }

    /// Tells which events there were, and when each was published.
    fn tell(&mut self, published: &BTreeMap<u64, u64>) {
        let mut text = String::new();
        for (seq, at) in published {
            text.push_str(&format!("{seq} {at}\n"));
        }
        let mut input = self.process.stdin.take().unwrap();
        tokio::task::block_in_place(|| input.write_all(text.as_bytes())).unwrap();
    }

    fn end(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

async fn start(folder: &Path) -> (Daemon, u16) {
    let (listener, port) = port::listen(0).await.unwrap();
    let log = SqliteLog::open(folder, &SqliteOptions::default()).unwrap();
    let limits = Limits { output_bytes_per_job: 64 << 20, compressed_streams: 10_000, ..Limits::default() };
    let engine = Engine::open(Arc::new(log), vec![Arc::new(Printers)], limits.clone()).await.unwrap();
    let daemon = Daemon {
        engine,
        tokens: Arc::new(Tokens::new(TOKEN, [])),
        version: "0.0.0",
        fingerprint: "sha256:0".into(),
        port,
        remote: None,
        own_ports: Arc::default(),
        links: Arc::default(),
        started_at: Timestamp::now(),
        kind_resolver: Default::default(),
        kinds: Default::default(),
        home: folder.into(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        answering: TaskTracker::new(),
        begins_anew: Arc::default(),
    };
    tokio::spawn(port::serve(listener, daemon.clone(), Protocols::from(Http::new(&limits))));
    (daemon, port)
}

/// A session that prints.
async fn create(client: &Client) -> SessionId {
    let create = CreateSession {
        kind: SessionKind::fsharp(),
        working_directory: "/".to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: None,
        alias: None,
    };
    client.create(id("create"), create).await.unwrap();
    client.sessions(SessionFilter::default()).await.unwrap()[0].id
}

/// Has the session print so many times; until it is done.
async fn print_events(client: &Client, session: SessionId, name: &str, events: u64) {
    let code = format!("{events} {}", PAUSE.as_micros());
    let eval = SessionCommand::Eval(command::Eval {
        code,
        file: None,
        command_line: None,
        origin: None,
        withheld: false,
    });
    let eval = Command { admission: Admission::Queue, ..Command::new(id(name), client.source(), eval) };
    client.submit(session, eval).await.unwrap();
}

/// When each event was published, up to the end of the eval. It has a thread of its own, so that it does not wait for the streams.
fn watch(engine: Engine, session: SessionId, after: Seq) -> tokio::task::JoinHandle<BTreeMap<u64, u64>> {
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = engine.attach(Access::local(), "watch");
            let cursor = Cursor::Session { session, after };
            let mut followed = client.follow(cursor, EventFilter::default()).await.unwrap();
            let mut published = BTreeMap::new();
            loop {
                let event = followed.next().await.unwrap();
                published.insert(event.seq.0, micros());
                if let EventBody::EvalCompleted { .. } = event.body {
                    return published;
                }
            }
        })
    })
}

fn id(name: &str) -> CommandId {
    CommandId::new(name).unwrap()
}

/// Now, in a way that two processes can compare.
fn micros() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

/// What this process has computed.
fn computed() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, behind_name) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = behind_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    // A tick is a hundredth of a second on every Linux there is.
    Duration::from_millis(ticks * 10)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

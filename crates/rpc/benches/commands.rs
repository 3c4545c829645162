//! What a command costs over the daemon's socket, from one client to many: a durable change, a read, a replay; each beside the
//! bare disk, in the same run. And what a hundred thousand stored sessions cost a daemon that starts.
//!
//! `cargo bench -p mainstay-rpc --bench commands`. Clients and daemon share one process and its two cores.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use mainstay_client::Client;
use mainstay_engine::Engine;
use mainstay_gateway::Daemon;
use mainstay_gateway::local_socket::{listen, serve};
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::Tokens;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_log::{Append, Epoch, EventLog, NewEvent};
use mainstay_model::{
    Access, Capabilities, CommandId, CreateSession as Create, Error, Event, EventBody, Limits, Metadata,
    Position, Seq, Session, SessionId, SessionKind, Source, Timestamp, Version,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, GetSession, ListSessions, RenameSession};
use mainstay_rpc::Rpc;
use mainstay_runner::{RunnerFactory, RunnerSpec, StartObserver, StartedRunner};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Span;
use uuid::Uuid;

const CLIENTS: [usize; 3] = [1, 16, 256];
/// Calls of each kind at each number of clients, all clients together.
const CALLS: usize = 20_000;
/// Calls of one client alone, which waits for the disk each time.
const CALLS_ALONE: usize = 2_000;
const STORED: usize = 100_000;
/// Appends on their way at once while the store is filled.
const FILLING: usize = 1_000;
const BLOCK: u64 = 4096;

/// Sessions that warm up for ever: what is measured needs no worker.
struct NoWorkers;

#[async_trait]
impl RunnerFactory for NoWorkers {
    fn serves(&self, _kind: &SessionKind) -> bool {
        true
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        std::future::pending().await
    }
}

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("| what | clients | median | p99 | a second |\n|---|---|---|---|---|");
    disk(&folder.path().join("disk"));
    runtime.block_on(commands(&folder.path().join("few"), "durable change (`session/rename`)"));
    // A store in memory: all is done as on the disk, and no flush waits for anything.
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        runtime.block_on(commands(&memory.path().join("few"), "the same change, not durable"));
    }
    println!("\n| with {STORED} stored sessions | |\n|---|---|");
    runtime.block_on(stored(&folder.path().join("many")));
}

fn disk(path: &Path) {
    let file = File::create(path).unwrap();
    file.write_all_at(&vec![0; 500 * BLOCK as usize], 0).unwrap();
    file.sync_all().unwrap();
    let mut took = Vec::new();
    for block in 0..500 {
        took.push(time(|| {
            file.write_all_at(&[7; BLOCK as usize], block * BLOCK).unwrap();
            file.sync_data().unwrap();
        }));
    }
    row("bare 4 KB write + fdatasync", 1, took, None);
}

async fn open(folder: &Path) -> Engine {
    let log = SqliteLog::open(folder, &SqliteOptions::default()).unwrap();
    let limits = Limits { live_sessions: 1_000, connections: 1_000, ..Limits::default() };
    Engine::open(Arc::new(log), vec![Arc::new(NoWorkers)], limits).await.unwrap()
}

/// A daemon in this process, with so many clients.
async fn connect(folder: &Path, engine: Engine, clients: usize) -> Vec<Arc<Client>> {
    let socket = folder.join("socket");
    let daemon = Daemon {
        engine,
        tokens: Arc::new(Tokens::new("secret", [])),
        version: "0.0.0",
        fingerprint: "sha256:0".into(),
        port: 0,
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
    tokio::spawn(serve(listen(&socket).unwrap(), daemon, Protocols::from(Rpc)));
    let mut connected = Vec::new();
    for _ in 0..clients {
        let (client, _events) = Client::connect(&socket, "secret".to_owned(), "bench").await.unwrap();
        connected.push(Arc::new(client));
    }
    connected
}

fn create(command: &str) -> CreateSession {
    CreateSession {
        command: Some(CommandId::new(command).unwrap()),
        kind: SessionKind::fsharp(),
        working_directory: "/".to_owned(),
        project: None,
        no_project: false,
        fsi_args: None,
        name: None,
    }
}

async fn commands(folder: &Path, change: &str) {
    let engine = open(folder).await;
    let local = engine.attach(Access::local(), "bench");
    let most = CLIENTS[CLIENTS.len() - 1];
    for number in 0..most {
        let command = CommandId::new(format!("create-{number}")).unwrap();
        let (kind, working_directory) = (SessionKind::fsharp(), "/".to_owned());
        let create = Create {
            kind,
            working_directory,
            project: Default::default(),
            arguments: Vec::new(),
            name: None,
            alias: None,
        };
        local.create(command, create).await.unwrap();
    }
    let sessions: Vec<String> = local
        .sessions(Default::default())
        .await
        .unwrap()
        .iter()
        .map(|session| session.id.to_string())
        .collect();
    let clients = connect(folder, engine, most).await;
    for count in CLIENTS {
        let each = if count == 1 { CALLS_ALONE } else { CALLS / count };
        measure(change, &clients[..count], each, async |client, number, turn| {
            let (session, name) = (sessions[number].clone(), format!("name-{number}-{turn}"));
            client.call(RenameSession { session, name, sent: Sent::default() }).await.unwrap();
        })
        .await;
        if change.starts_with("the same") {
            continue;
        }
        measure("read (`session/get`)", &clients[..count], each, async |client, number, _| {
            client.call(GetSession { session: sessions[number].clone() }).await.unwrap();
        })
        .await;
        measure(
            "replay (`session/create`, the same id)",
            &clients[..count],
            each,
            async |client, number, _| {
                client.call(create(&format!("create-{number}"))).await.unwrap();
            },
        )
        .await;
    }
}

/// Has all clients do the same at once, each one call after the other.
async fn measure(
    what: &str,
    clients: &[Arc<Client>],
    each: usize,
    call: impl AsyncFn(&Client, usize, usize) + Copy,
) {
    let began = Instant::now();
    let series = clients.iter().enumerate().map(async |(number, client)| {
        let mut took = Vec::with_capacity(each);
        for turn in 0..each {
            let began = Instant::now();
            call(client, number, turn).await;
            took.push(began.elapsed());
        }
        took
    });
    let took: Vec<Duration> = join_all(series).await.into_iter().flatten().collect();
    let rate = took.len() as f64 / began.elapsed().as_secs_f64();
    row(what, clients.len(), took, Some(rate));
}

async fn stored(folder: &Path) {
    fill(folder).await;
    let before = resident_bytes();
    let began = Instant::now();
    let engine = open(folder).await;
    println!("| opening the store | {:.0} ms |", began.elapsed().as_secs_f64() * 1000.0);
    let client = connect(folder, engine, 1).await.remove(0);
    for (what, limit) in [("listing the newest 50", Some(50)), ("listing all", None)] {
        let list = ListSessions { limit, ..ListSessions::default() };
        let began = Instant::now();
        let count = client.call(list).await.unwrap().len();
        println!("| {what} ({count}) | {:.1} ms |", began.elapsed().as_secs_f64() * 1000.0);
        let grown = resident_bytes().saturating_sub(before) as f64 / (1024.0 * 1024.0);
        println!("| resident memory after that, more than before | {grown:.1} MB |");
    }
}

async fn fill(folder: &Path) {
    let log = SqliteLog::open(folder, &SqliteOptions::default()).unwrap();
    for first in (0..STORED).step_by(FILLING) {
        let appends = (first..first + FILLING).map(|number| log.append(creation(number)));
        for appended in join_all(appends).await {
            appended.unwrap();
        }
    }
}

fn creation(number: usize) -> Append {
    let session = SessionId::from_uuid(Uuid::now_v7());
    let body = EventBody::SessionCreated {
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        kind: SessionKind::fsharp(),
        name: format!("session-{number}"),
        working_directory: format!("/work/{}", number % 100),
        project: None,
        capabilities: None,
    };
    let metadata = Metadata { source: Source::System, correlation: None, causation: None, environment: None };
    let at = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap();
    let event = Event {
        session,
        seq: Seq(1),
        position: Position::ZERO,
        at,
        metadata: metadata.clone(),
        body: body.clone(),
    };
    Append {
        session,
        epoch: Epoch::FIRST,
        first: Seq(1),
        events: vec![NewEvent { at, metadata, body }],
        outcomes: Vec::new(),
        version: Version::ZERO,
        projection: Session::begin(&event).unwrap(),
        taken: None,
        trace: Span::none(),
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn row(what: &str, clients: usize, mut took: Vec<Duration>, rate: Option<f64>) {
    took.sort_unstable();
    let ms = |place: usize| took[place].as_secs_f64() * 1000.0;
    let (median, p99) = (ms(took.len() / 2), ms(took.len() * 99 / 100));
    let rate = rate.map_or_else(String::new, |rate| format!("{rate:.0}"));
    println!("| {what} | {clients} | {median:.2} ms | {p99:.2} ms | {rate} |");
}

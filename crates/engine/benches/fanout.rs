//! What subscriptions cost: 1,000 subscribers, 1,000 durable events, each delivered to each; time, and memory.
//!
//! `cargo bench -p mainstay-engine --bench fanout`, or with `-- --scenario 'one session' 10000` one row of so many. Each row is a process of its own, so that none has the memory of another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]
#![allow(dead_code, reason = "the support of the tests, of which this needs a part")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_engine::{ClientSubscription, Cursor};
use mainstay_model::command;
use mainstay_model::{Admission, EventFilter, Position, SessionCommand};
use support::{Client, Daemon, command, next_id};
use tokio::sync::{Semaphore, mpsc, watch};

#[path = "../tests/sessions/scripted.rs"]
mod scripted;
#[path = "../tests/sessions/store_double.rs"]
mod store_double;
#[path = "../tests/sessions/support.rs"]
mod support;

const SUBSCRIBERS: usize = 1000;
const EVENTS: usize = 1000;
const RUNS: usize = 5;

const SCENARIOS: [&str; 5] =
    ["nobody", "one session", "all sessions", "one session, slow", "all sessions, slow"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only wants to know that it builds.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    if let [_, one, scenario, count, ..] = arguments.as_slice()
        && one == "--scenario"
    {
        let count = count.parse().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return println!("{}", runtime.block_on(measure(scenario, count)));
    }
    println!(
        "| {SUBSCRIBERS} subscribers of | {EVENTS} events durable and answered | all delivered | deliveries a second | KB a subscriber, waiting | with what it has read |\n|---|---|---|---|---|---|"
    );
    for scenario in SCENARIOS {
        for _ in 0..RUNS {
            let run = Command::new(&arguments[0])
                .args(["--scenario", scenario, &SUBSCRIBERS.to_string()])
                .output()
                .unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            print!("{}", String::from_utf8_lossy(&run.stdout));
        }
    }
}

/// Measures one scenario and returns its row of the table.
async fn measure(scenario: &str, subscribers: usize) -> String {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    // What every run needs once is no subscriber's.
    publish(&session, EVENTS).await;
    let subscribers = if scenario == "nobody" { 0 } else { subscribers };
    let is_slow = scenario.ends_with("slow");
    let before = resident_bytes();
    let begin = if scenario.starts_with("all") {
        let events = daemon.local.all_events(Position::ZERO, usize::MAX).await.unwrap();
        Cursor::Log { after: events.last().unwrap().position }
    } else {
        Cursor::Session { session: session.id, after: session.now().await }
    };
    let (told, mut hears) = mpsc::channel(1024);
    let (go, goes) = watch::channel(false);
    for _ in 0..subscribers {
        let subscription = daemon.local.follow(begin, EventFilter::default()).await.unwrap();
        tokio::spawn(receive(subscription, is_slow, told.clone(), goes.clone()));
    }
    let mut all_told = async || {
        for _ in 0..subscribers {
            hears.recv().await.unwrap();
        }
    };
    publish(&session, 1).await;
    all_told().await;
    let waiting = resident_bytes().saturating_sub(before);

    let mut start = Instant::now();
    publish(&session, EVENTS).await;
    let published = start.elapsed();
    if is_slow {
        // Each takes one event of what it has read from the log, and then no more.
        go.send_replace(true);
        all_told().await;
    }
    let read = resident_bytes().saturating_sub(before);
    if is_slow {
        start = Instant::now();
        go.send_replace(false);
    }
    all_told().await;
    row(scenario, subscribers, published, start.elapsed(), waiting, read)
}

/// Tells when the first event has come, and when all have. A slow one waits after the first until it may take another, and then
/// until it may take the rest.
async fn receive(
    mut subscription: ClientSubscription,
    is_slow: bool,
    told: mpsc::Sender<()>,
    mut goes: watch::Receiver<bool>,
) {
    subscription.next().await.unwrap();
    told.send(()).await.unwrap();
    for number in 0..EVENTS {
        if is_slow && number < 2 {
            goes.wait_for(|goes| *goes == (number == 0)).await.unwrap();
        }
        subscription.next().await.unwrap();
        if is_slow && number == 0 {
            told.send(()).await.unwrap();
        }
    }
    told.send(()).await.unwrap();
}

/// So many durable events, 64 commands at a time.
async fn publish(session: &Client, events: usize) {
    let places = Arc::new(Semaphore::new(64));
    let mut sent = Vec::new();
    for number in 0..events {
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let rename = SessionCommand::Rename(command::Rename { name: format!("name {number}") });
        let sending = session.send(command(next_id(), Admission::Now, rename));
        sent.push(tokio::spawn(async move {
            sending.await.unwrap().unwrap();
            drop(place);
        }));
    }
    for sent in sent {
        sent.await.unwrap();
    }
}

fn row(
    scenario: &str,
    subscribers: usize,
    published: Duration,
    delivered: Duration,
    waiting: u64,
    read: u64,
) -> String {
    let published = published.as_secs_f64() * 1e3;
    if subscribers == 0 {
        return format!("| {scenario} | {published:.0} ms | | | | |");
    }
    let rate = (subscribers * EVENTS) as f64 / delivered.as_secs_f64();
    let each = |bytes: u64| bytes as f64 / subscribers as f64 / 1024.0;
    format!(
        "| {scenario} | {published:.0} ms | {:.0} ms | {rate:.0} | {:.1} | {:.1} |",
        delivered.as_secs_f64() * 1e3,
        each(waiting),
        each(read)
    )
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

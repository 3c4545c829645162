//! The two figures the writer is tuned for, each taken so that a busy machine spoils both sides alike: what one durable
//! append costs beside a bare write and flush, measured in turns; and how much more 64 appenders get done than one.
//!
//! `cargo bench -p mainstay-log --bench ratios`. Everything is in one folder under the target folder: `/tmp` may not be
//! a disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_log::{Append, EventLog, OwnerId, Sharing, SqliteLog, SqliteOptions};
use mainstay_model::{CommandId, Principal};
use support::{Line, answer, command_id, output};
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "../tests/support/mod.rs"]
mod support;

const BLOCK: u64 = 4096;
const TURNS: u64 = 1000;
const ROUNDS: usize = 15;
const EACH: usize = 50;

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let log = Arc::new(SqliteLog::open(&folder.path().join("store"), &SqliteOptions::default()).unwrap());
    latency(&folder, &runtime, &log);
    rate(&runtime, &log);
}

fn latency(folder: &TempDir, runtime: &Runtime, log: &SqliteLog) {
    let growing = File::create(folder.path().join("growing")).unwrap();
    let in_place = File::create(folder.path().join("in-place")).unwrap();
    in_place.write_all_at(&vec![0; usize::try_from(TURNS * BLOCK).unwrap()], 0).unwrap();
    in_place.sync_all().unwrap();
    let mut line = Line::new(1);
    runtime.block_on(log.append(line.create())).unwrap();
    // Nothing is known of what others store: each command is looked up in the database.
    let sharing = Sharing::by(OwnerId::new("bench"));
    let options = SqliteOptions { sharing, ..SqliteOptions::default() };
    let shared = SqliteLog::open(&folder.path().join("shared"), &options).unwrap();
    let mut there = Line::new(1);
    runtime.block_on(shared.append(there.create())).unwrap();
    let [mut grown, mut placed, mut plain, mut answered, mut changed, mut read] = [const { Vec::new() }; 6];
    for turn in 0..TURNS {
        grown.push(time(|| flush(&growing, turn)));
        placed.push(time(|| flush(&in_place, turn)));
        let append = line.append(vec![output("what a job printed, of a usual length\n")]);
        plain.push(time(|| drop(runtime.block_on(log.append(append)).unwrap())));
        let mut append = line.append(vec![output("what a job printed, of a usual length\n")]);
        append.outcomes.push(answer(&format!("command-{turn}"), line.last_seq()));
        answered.push(time(|| drop(runtime.block_on(log.append(append)).unwrap())));
        let command = command_id(&format!("change-{turn}"));
        let mut append = line.append(vec![output("what a job printed, of a usual length\n")]);
        append.outcomes.push(answer(command.as_str(), line.last_seq()));
        changed.push(time(|| runtime.block_on(change(log, &command, append))));
        let mut append = there.append(vec![output("what a job printed, of a usual length\n")]);
        append.outcomes.push(answer(command.as_str(), there.last_seq()));
        read.push(time(|| runtime.block_on(change(&shared, &command, append))));
    }
    let [grown, placed, plain, answered, changed, read] =
        [grown, placed, plain, answered, changed, read].map(median);
    println!("write and flush of 4 KB, growing file    {grown:>12.1?}");
    println!("write and flush of 4 KB, in place        {placed:>12.1?}");
    for (name, took) in [
        ("append of one event", plain),
        ("append of one event and one outcome", answered),
        ("the same, known to be new", changed),
        ("the same, looked up in the database", read),
    ] {
        let (of_growing, of_placed) = (ratio(took, grown), ratio(took, placed));
        println!("{name:<40} {took:>12.1?}  {of_growing:.2} x growing, {of_placed:.2} x in place");
    }
}

/// A durable change as a session makes it: the command is looked up, then it is stored with its outcome.
async fn change(log: &SqliteLog, command: &CommandId, append: Append) {
    assert_eq!(log.outcome(&Principal::local(), command).await, Ok(None));
    log.append(append).await.unwrap();
}

fn rate(runtime: &Runtime, log: &Arc<SqliteLog>) {
    let [mut one, mut many, mut most] = [const { Vec::new() }; 3];
    let mut lines: Vec<_> = (100..356).map(Line::new).collect();
    for line in &mut lines {
        runtime.block_on(log.append(line.create())).unwrap();
    }
    for _ in 0..ROUNDS {
        one.push(appenders(runtime, log, &mut lines[..1]));
        many.push(appenders(runtime, log, &mut lines[..64]));
        most.push(appenders(runtime, log, &mut lines));
    }
    let (one, many, most) = (median(one), median(many) / 64, median(most) / 256);
    let per_second = |took: Duration| EACH as f64 / took.as_secs_f64();
    println!("appends a second, one appender           {:>12.0}", per_second(one));
    println!(
        "appends a second, 64 appenders           {:>12.0}  {:.1} x one",
        per_second(many),
        ratio(one, many)
    );
    println!(
        "appends a second, 256 appenders          {:>12.0}  {:.1} x one",
        per_second(most),
        ratio(one, most)
    );
}

/// How long it takes until each line, beside the others, has appended one event after the other.
fn appenders(runtime: &Runtime, log: &Arc<SqliteLog>, lines: &mut [Line]) -> Duration {
    let work: Vec<Vec<_>> = lines
        .iter_mut()
        .map(|line| {
            (0..EACH).map(|_| line.append(vec![output("what a job printed, of a usual length\n")])).collect()
        })
        .collect();
    time(|| {
        runtime.block_on(async {
            let appender = |appends: Vec<_>| {
                let log = Arc::clone(log);
                tokio::spawn(async move {
                    for append in appends {
                        log.append(append).await.unwrap();
                    }
                })
            };
            for task in work.into_iter().map(appender).collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
    })
}

fn flush(file: &File, block: u64) {
    file.write_all_at(&[7; BLOCK as usize], block * BLOCK).unwrap();
    file.sync_data().unwrap();
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

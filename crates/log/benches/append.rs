//! Durable appends, beside the least a disk can do: a write of 4 KB, and its flush.
//!
//! `cargo bench -p mainstay-log`. Everything is in one folder under the target folder: `/tmp` may not be a disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a bench")]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use mainstay_log::{Append, EventLog, SqliteLog, SqliteOptions};
use mainstay_model::{EventBody, Seq};
use support::{Line, answer, output};
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    divan::main();
}

/// A file of 4 MB that is written in place, and one that grows with every write.
#[divan::bench(args = ["in place", "growing"])]
fn bare_write_and_flush(bencher: Bencher<'_, '_>, how: &str) {
    const BLOCK: u64 = 4096;
    let folder = folder();
    let file = file_of_zeros(&folder, if how == "growing" { 0 } else { 1024 * BLOCK });
    let mut block = 0;
    bencher.bench_local(|| {
        let offset = if how == "growing" { block * BLOCK } else { block % 1024 * BLOCK };
        file.write_all_at(&[7; BLOCK as usize], offset).unwrap();
        file.sync_data().unwrap();
        block += 1;
    });
}

/// One append at a time, of so many events.
#[divan::bench(args = [1, 10, 100, 1000])]
fn append_of_events(bencher: Bencher<'_, '_>, events: usize) {
    let (_folder, log, runtime) = store();
    let mut line = begun(&log, &runtime, 1);
    bencher
        .counter(ItemsCount::new(events))
        .with_inputs(|| line.append(outputs(events)))
        .bench_local_values(|append| runtime.block_on(log.append(append)).unwrap());
}

/// One append at a time, of one event with one outcome.
#[divan::bench]
fn append_with_outcome(bencher: Bencher<'_, '_>) {
    let (_folder, log, runtime) = store();
    let mut line = begun(&log, &runtime, 1);
    let mut number = 0;
    bencher
        .with_inputs(|| {
            number += 1;
            let mut append = line.append(outputs(1));
            append.outcomes.push(answer(&format!("command-{number}"), line.last_seq()));
            append
        })
        .bench_local_values(|append| runtime.block_on(log.append(append)).unwrap());
}

/// So many sessions at once, each of which appends one event after the other: the rate is appends a second.
#[divan::bench(args = [1, 4, 16, 64, 256], sample_count = 20)]
fn concurrent_appenders(bencher: Bencher<'_, '_>, appenders: usize) {
    const EACH: usize = 64;
    let (_folder, log, runtime) = store();
    let mut lines: Vec<_> = (0..appenders).map(|number| begun(&log, &runtime, number as u128)).collect();
    bencher
        .counter(ItemsCount::new(appenders * EACH))
        .with_inputs(|| {
            let lines = lines.iter_mut();
            lines
                .map(|line| (0..EACH).map(|_| line.append(outputs(1))).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        })
        .bench_local_values(|appends: Vec<Vec<Append>>| {
            runtime.block_on(async {
                let tasks: Vec<_> = appends
                    .into_iter()
                    .map(|appends| {
                        let log = Arc::clone(&log);
                        tokio::spawn(async move {
                            for append in appends {
                                log.append(append).await.unwrap();
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
}

/// Opening a store that is there, and closing it.
#[divan::bench(sample_count = 20)]
fn open_and_close(bencher: Bencher<'_, '_>) {
    let folder = folder();
    bencher.bench_local(|| drop(SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap()));
}

/// The newest of a thousand events, and a session.
#[divan::bench(args = ["event", "session"])]
fn read_of(bencher: Bencher<'_, '_>, what: &str) {
    let (_folder, log, runtime) = store();
    let mut line = begun(&log, &runtime, 1);
    runtime.block_on(log.append(line.append(outputs(1000)))).unwrap();
    let last = line.last_seq();
    bencher.bench_local(|| match what {
        "event" => drop(black_box(runtime.block_on(log.events(line.id, Seq(last.0 - 1), 1)).unwrap())),
        _ => drop(black_box(runtime.block_on(log.session(line.id)).unwrap())),
    });
}

fn store() -> (TempDir, Arc<SqliteLog>, Runtime) {
    let folder = folder();
    let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    (folder, Arc::new(log), runtime)
}

fn begun(log: &SqliteLog, runtime: &Runtime, number: u128) -> Line {
    let mut line = Line::new(number);
    runtime.block_on(log.append(line.create())).unwrap();
    line
}

fn outputs(count: usize) -> Vec<EventBody> {
    (0..count)
        .map(|number| output(format!("line {number} of what a job printed, of a usual length\n")))
        .collect()
}

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn file_of_zeros(folder: &TempDir, bytes: u64) -> File {
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).open(folder.path().join("bare")).unwrap();
    file.write_all_at(&vec![0; usize::try_from(bytes).unwrap()], 0).unwrap();
    file.sync_all().unwrap();
    file
}

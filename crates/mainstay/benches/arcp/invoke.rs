//! A job there and back: from `job.submit` until `job.result` is received, in a session that is warm, beside other roads to the same kernel.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Arcp;
use crate::daemon::eval;
use crate::direct::Direct;
use crate::disk::Disk;
use crate::kernel;
use crate::python_sdk::{self, PythonRuntime};
use crate::sizes::Sizes;
use crate::spread::{Spread, spread};
use crate::world::World;

/// How often each road is taken before that counts.
const WARM_UP: usize = 50;
const CODE: &str = "nothing";

/// The roads, in the order of the table.
const ROADS: [&str; 6] = [
    "bare 4 KB write + fdatasync",
    "the kernel itself, over ZeroMQ",
    "over the local socket (JSON-RPC `eval`)",
    "ARCP, `session` in the input",
    "ARCP, `working_directory` in the input",
    "the Python SDK's runtime, in memory",
];

/// Measures all roads, by turns, so that what else the machine does is the same for all.
pub(crate) async fn measure(world: &World, sizes: &Sizes) {
    let mut disk = Disk::at(&world.folder().join("disk")).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.arg(kernel::COMMAND);
    let folder = world.sub_folder("direct");
    // It has a runtime of its own, which blocks its thread.
    let mut direct = tokio::task::spawn_blocking(move || Direct::start(&folder, program)).await.unwrap();
    let local = world.daemon.connect().await.unwrap();
    let of_local = world.create(&local, "local").await;
    let by_session = json!({ "code": CODE, "session": world.create(&local, "by session").await });
    world.create(&local, "by folder").await;
    let by_folder = json!({ "code": CODE, "working_directory": world.sub_folder("by folder") });
    let mut arcp = Arcp::open(&world.address()).await;
    let python = PythonRuntime::start();
    let mut theirs = match &python {
        Some(python) => Some(Arcp::open(&python.address).await),
        None => None,
    };
    let mut took: [Vec<Duration>; ROADS.len()] = Default::default();
    for round in 0..WARM_UP + sizes.invokes {
        let flushed = disk.flush().unwrap();
        let executed;
        (direct, executed) = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            direct.execute(CODE);
            (direct, began.elapsed())
        })
        .await
        .unwrap();
        let began = Instant::now();
        assert!(local.call(eval(&of_local, CODE)).await.unwrap().success);
        let evaluated = began.elapsed();
        let in_session = invoke(&mut arcp, kernel::KIND, &by_session).await;
        let in_folder = invoke(&mut arcp, kernel::KIND, &by_folder).await;
        let echoed = match &mut theirs {
            Some(theirs) => Some(invoke(theirs, python_sdk::AGENT, &by_session).await),
            None => None,
        };
        if round < WARM_UP {
            continue;
        }
        let all = [Some(flushed), Some(executed), Some(evaluated), Some(in_session), Some(in_folder), echoed];
        took.iter_mut().zip(all).for_each(|(series, took)| series.extend(took));
    }
    // It has a runtime, which may not be dropped within another.
    tokio::task::spawn_blocking(move || drop(direct)).await.unwrap();
    tell(took.map(|series| (!series.is_empty()).then(|| spread(series))));
}

/// From the submission until the result is received.
async fn invoke(client: &mut Arcp, agent: &str, input: &Value) -> Duration {
    let began = Instant::now();
    client.submit(agent, input).await;
    client.until("job.result").await;
    began.elapsed()
}

fn tell(spreads: [Option<Spread>; ROADS.len()]) {
    println!("\n| a job that does nothing, there and back | median | p99 | of `eval` |\n|---|---|---|---|");
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let [Some(disk), Some(bare), Some(evaluated), Some(ours), ..] = spreads else { return };
    for (road, spread) in ROADS.iter().zip(&spreads) {
        let Some(Spread { median, p99 }) = spread else { continue };
        let ratio = median.as_secs_f64() / evaluated.median.as_secs_f64();
        println!("| {road} | {:.2} ms | {:.2} ms | {ratio:.2} × |", ms(*median), ms(*p99));
    }
    println!(
        "\nARCP's median is {:.2} ms, {:.2} ms more than the kernel's; the aim is 1 ms and a flush, {:.2} ms",
        ms(ours.median),
        ms(ours.median) - ms(bare.median),
        1.0 + ms(disk.median)
    );
}

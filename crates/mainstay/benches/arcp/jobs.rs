//! Many jobs at once: all are accepted while their sessions are busy with another, then all run. Each ends once, and no number is missing.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};

use crate::client::{Address, Arcp};
use crate::daemon::eval;
use crate::kernel;
use crate::python_sdk::{self, PythonRuntime};
use crate::sizes::Sizes;
use crate::world::World;

/// Over how many connections the jobs are submitted.
const CONNECTIONS: [usize; 2] = [1, 16];
const CODE: &str = "nothing";

/// What came of a run.
struct Run {
    accepted: Option<Duration>,
    /// From the first submission to the last terminal message.
    all: Duration,
}

/// Measures the jobs over ARCP, the same evals over the local socket, and the Python SDK's runtime.
pub(crate) async fn measure(sizes: &Sizes) {
    let (jobs, sessions) = (sizes.jobs, sizes.sessions);
    println!(
        "\n| {jobs} jobs at once in {sessions} sessions | all accepted | all ended | jobs a second | resident before | own | resident, all accepted | own | resident at the end | own |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    for connections in CONNECTIONS {
        over_arcp(sizes, connections).await;
    }
    over_local_socket(sizes).await;
    if let Some(python) = PythonRuntime::start() {
        for connections in CONNECTIONS {
            let inputs = shares(sizes.jobs, connections, &[Value::Null]);
            let run = run(&python.address, python_sdk::AGENT, inputs, None).await;
            row(&format!("the Python SDK's runtime, in memory, {connections} connections"), jobs, &run, "");
        }
    }
}

async fn over_arcp(sizes: &Sizes, connections: usize) {
    let (world, sessions, gate) = busy_sessions(sizes).await;
    let inputs: Vec<Value> =
        sessions.iter().map(|session| json!({ "code": CODE, "session": session })).collect();
    let shares = shares(sizes.jobs, connections, &inputs);
    let before = world.memory();
    let mut waiting = before;
    let open = || {
        waiting = world.memory();
        std::fs::write(&gate, "").unwrap();
    };
    let run = run(&world.address(), kernel::KIND, shares, Some(Box::new(open))).await;
    let memory = format!("{before} | {waiting} | {}", world.memory());
    row(&format!("ARCP, {connections} connections"), sizes.jobs, &run, &memory);
}

/// Evals over the local socket, all under way at once; they are not held up, since nothing says when all are accepted.
async fn over_local_socket(sizes: &Sizes) {
    let (world, sessions, gate) = busy_sessions(sizes).await;
    let client = world.daemon.connect().await.unwrap();
    let before = world.memory();
    std::fs::write(&gate, "").unwrap();
    let began = Instant::now();
    let all: FuturesUnordered<_> =
        (0..sizes.jobs).map(|job| client.call(eval(&sessions[job % sessions.len()], CODE))).collect();
    all.for_each(async |answer| assert!(answer.unwrap().success)).await;
    let run = Run { accepted: None, all: began.elapsed() };
    row(
        "the local socket (JSON-RPC `eval`)",
        sizes.jobs,
        &run,
        &format!("{before} | | | {}", world.memory()),
    );
}

/// A daemon with sessions that all run something until there is a file.
async fn busy_sessions(sizes: &Sizes) -> (World, Vec<String>, std::path::PathBuf) {
    let world = World::new();
    let gate = world.folder().join("gate");
    let client = world.daemon.connect().await.unwrap();
    let mut sessions = Vec::new();
    for number in 0..sizes.sessions {
        sessions.push(world.create(&client, &number.to_string()).await);
    }
    let mut holder = Arcp::open(&world.address()).await;
    for session in &sessions {
        let code = format!("wait {}", gate.display());
        holder.submit(kernel::KIND, &json!({ "code": code, "session": session })).await;
    }
    for _ in &sessions {
        holder.until("job.accepted").await;
    }
    (world, sessions, gate)
}

/// The inputs of the jobs, by connection: each session's are of all connections.
fn shares(jobs: usize, connections: usize, inputs: &[Value]) -> Vec<Vec<Value>> {
    let mut shares = vec![Vec::new(); connections];
    for job in 0..jobs {
        shares[job / inputs.len() % connections].push(inputs[job % inputs.len()].clone());
    }
    shares
}

/// Submits all jobs, a connection for each share, calls what lets them run once all are accepted, and waits until all have ended.
async fn run(
    address: &Address,
    agent: &str,
    shares: Vec<Vec<Value>>,
    accepted: Option<Box<dyn FnOnce() + '_>>,
) -> Run {
    let mut clients = join_all(shares.iter().map(|_| Arcp::open(address))).await;
    let began = Instant::now();
    let submitted = clients.iter_mut().zip(&shares).map(|(client, share)| submit(client, agent, share));
    let mut progress = join_all(submitted).await;
    let mut took = None;
    if let Some(accepted) = accepted {
        took = Some(began.elapsed());
        accepted();
    }
    join_all(clients.iter_mut().zip(&mut progress).zip(&shares).map(|((client, progress), share)| async {
        while progress.ended.len() < share.len() {
            progress.note(&client.next().await);
        }
    }))
    .await;
    let all = began.elapsed();
    let jobs: usize = shares.iter().map(Vec::len).sum();
    let ended: HashSet<_> = progress.iter().flat_map(|progress| &progress.ended).collect();
    assert_eq!(ended.len(), jobs, "each job ended, and no two are the same");
    Run { accepted: took, all }
}

/// What a connection was told.
#[derive(Default)]
struct Progress {
    accepted: usize,
    ended: HashSet<String>,
}

impl Progress {
    fn note(&mut self, message: &Value) {
        match message["type"].as_str().unwrap() {
            "job.accepted" => self.accepted += 1,
            "job.result" => {
                let job = message["job_id"].as_str().unwrap().to_owned();
                assert!(self.ended.insert(job), "it ended twice: {message}");
            }
            "job.event" => {}
            _ => panic!("{message}"),
        }
    }
}

/// Submits jobs without waiting for each, and returns once all are accepted.
async fn submit(client: &mut Arcp, agent: &str, share: &[Value]) -> Progress {
    let mut progress = Progress::default();
    let (sender, receiver) = client.split();
    let send = async {
        for input in share {
            sender.submit(agent, input).await;
        }
    };
    let receive = async {
        while progress.accepted < share.len() {
            progress.note(&receiver.next().await);
        }
    };
    tokio::join!(send, receive);
    progress
}

fn row(what: &str, jobs: usize, run: &Run, memory: &str) {
    let accepted = run.accepted.map_or_else(String::new, |took| format!("{:.2} s", took.as_secs_f64()));
    let all = run.all.as_secs_f64();
    println!("| {what} | {accepted} | {all:.2} s | {:.0} | {memory} |", jobs as f64 / all);
}

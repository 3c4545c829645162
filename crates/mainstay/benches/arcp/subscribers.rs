//! Many connections of one principal that subscribe to the same job: how long it takes from a line's printing until all were told it.

use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::client::{Address, Arcp};
use crate::kernel::{self, now};
use crate::sizes::Sizes;
use crate::spread::{Spread, spread};
use crate::world::World;

/// How many lines, or displays, the job has.
const LINES: usize = 100;
/// How many connections are made at once.
const AT_ONCE: usize = 50;

/// What the job does: what the table calls it, the code before the path of its gate, and how often it is done.
const JOBS: [(&str, &str, usize); 3] = [
    ("lines at once, which become one message", "print 100 0", 5),
    ("displays at once, a message each", "show 100", 5),
    ("lines 100 ms apart, a message each", "print 100 100", 1),
];

/// Measures each job with one subscriber and with many.
pub(crate) async fn measure(world: &World, sizes: &Sizes) {
    let local = world.daemon.connect().await.unwrap();
    let session = world.create(&local, "printer").await;
    println!(
        "\n| subscribers | of a job with {LINES} | a line told to all, median | p99 | all told, from the first line | messages each | resident | own |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for (name, code, rounds) in JOBS {
        let mut alone = None;
        for subscribers in [1, sizes.subscribers] {
            let mut all_told = Vec::new();
            for round in 0..rounds {
                let gate =
                    world.folder().join(format!("gate-{round}-{subscribers}-{}", code.replace(' ', "-")));
                all_told.push(told(&world.address(), &session, subscribers, code, &gate).await);
            }
            let lines = spread(all_told.iter().flat_map(|told| told.lines.clone()).collect());
            let all = spread(all_told.iter().map(|told| told.all).collect()).median;
            let Spread { median, p99 } = lines;
            println!(
                "| {subscribers} | {name} | {:.2} ms | {:.2} ms | {:.1} ms | {} | {} |",
                ms(median),
                ms(p99),
                ms(all),
                all_told[0].messages,
                world.memory()
            );
            let Some((line, first)) = alone.replace((median, all)) else { continue };
            let ratio = |ours: Duration, one: Duration| ours.as_secs_f64() / one.as_secs_f64();
            println!(
                "| of that for 1 | | {:.1} × | | {:.1} × | | | |",
                ratio(median, line),
                ratio(all, first)
            );
        }
    }
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// What all subscribers were told.
struct Told {
    /// Of each line, from its printing until the last subscriber had it.
    lines: Vec<Duration>,
    /// From the printing of the first line until all had all.
    all: Duration,
    /// How many messages with lines the first subscriber got.
    messages: usize,
}

async fn told(address: &Address, session: &str, subscribers: usize, code: &str, gate: &Path) -> Told {
    let mut submitter = Arcp::open(address).await;
    let code = format!("{code} {}", gate.display());
    submitter.submit(kernel::KIND, &json!({ "code": code, "session": session })).await;
    let accepted = submitter.until("job.accepted").await;
    let job = accepted["payload"]["job_id"].as_str().unwrap().to_owned();
    let mut clients = Vec::new();
    while clients.len() < subscribers {
        let more = AT_ONCE.min(subscribers - clients.len());
        clients.extend(join_all((0..more).map(|_| subscribed(address, &job))).await);
    }
    let open = async { std::fs::write(gate, "").unwrap() };
    let (heard, ()) = tokio::join!(join_all(clients.iter_mut().map(hear)), open);
    submitter.until("job.result").await;
    let messages = heard[0].messages;
    let mut lines = vec![Duration::ZERO; LINES];
    let (mut first, mut last) = (Duration::MAX, Duration::ZERO);
    for subscriber in &heard {
        assert_eq!(subscriber.lines.len(), LINES);
        for (line, (printed, received)) in subscriber.lines.iter().enumerate() {
            first = first.min(*printed);
            last = last.max(*received);
            lines[line] = lines[line].max(received.saturating_sub(*printed));
        }
    }
    Told { lines, all: last - first, messages }
}

async fn subscribed(address: &Address, job: &str) -> Arcp {
    let mut client = Arcp::open(address).await;
    client.send("job.subscribe", json!({ "job_id": job })).await;
    client.until("job.subscribed").await;
    client
}

/// What one subscriber was told: of each line, when it was printed and when it was received.
struct Heard {
    lines: Vec<(Duration, Duration)>,
    messages: usize,
}

/// Reads until the job has ended. The lines come in their order, none twice.
async fn hear(client: &mut Arcp) -> Heard {
    let mut heard = Heard { lines: Vec::new(), messages: 0 };
    loop {
        let message = client.next().await;
        match message["type"].as_str().unwrap() {
            "job.result" => return heard,
            "job.event" => {
                let received = now();
                let body = &message["payload"]["body"];
                let text = match message["payload"]["kind"].as_str().unwrap() {
                    "log" => &body["message"],
                    "x-mainstay.display" => &body["data"]["text/plain"],
                    _ => continue,
                };
                heard.messages += 1;
                for line in text.as_str().unwrap().lines() {
                    let (number, printed) = line.split_once(' ').unwrap();
                    assert_eq!(number.parse::<usize>().unwrap(), heard.lines.len() + 1);
                    heard.lines.push((Duration::from_nanos(printed.parse().unwrap()), received));
                }
            }
            _ => panic!("{message}"),
        }
    }
}

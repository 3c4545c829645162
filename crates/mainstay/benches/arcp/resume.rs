//! A session that was told very many messages, and is resumed: from the connection until the last of them is received. Beside it the same events,
//! read with the store's own interface.

use std::time::{Duration, Instant};

use mainstay_log::EventLog;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::Position;
use serde_json::json;

use crate::client::{Address, Arcp};
use crate::kernel;
use crate::sizes::Sizes;
use crate::world::World;

/// How many displays one job shows; each is a message.
const DISPLAYS: u64 = 1_000;
/// How often a session is resumed at each place.
const RESUMES: usize = 3;
/// Events that are read at once, as the daemon reads them.
const PAGE: usize = 1_000;

/// Measures resumes from the first message and from the last hundredth, and the store alone.
pub(crate) async fn measure(world: World, sizes: &Sizes) {
    let address = world.address();
    let local = world.daemon.connect().await.unwrap();
    let session = world.create(&local, "shows").await;
    let mut client = Arcp::open(&address).await;
    let began = Instant::now();
    while client.last_seq() < sizes.messages {
        let code = format!("show {} /", DISPLAYS.min(sizes.messages));
        client.submit(kernel::KIND, &json!({ "code": code, "session": session })).await;
        client.until("job.result").await;
    }
    let told = client.last_seq();
    println!("\n{told} messages were told in {:.1} s", began.elapsed().as_secs_f64());
    println!(
        "\n| a session of {told} messages, resumed | until the first | until the last | messages a second | resident | own |\n|---|---|---|---|---|---|"
    );
    let mut known = Known { session: client.session.clone(), token: client.resume_token.clone() };
    drop(client);
    for after in [0, told - told / 100] {
        for _ in 0..RESUMES {
            let (first, last) = known.resume(&address, after, told).await;
            let rate = (told - after) as f64 / last.as_secs_f64();
            let memory = world.memory();
            println!(
                "| behind message {after} | {:.0} ms | {:.0} ms | {rate:.0} | {memory} |",
                ms(first),
                ms(last)
            );
        }
    }
    drop(local);
    let (home, _folder) = world.stop();
    let log = SqliteLog::open(&home.join("store"), &SqliteOptions::default()).unwrap();
    for _ in 0..RESUMES {
        let began = Instant::now();
        let (mut position, mut events) = (Position(0), 0);
        loop {
            let page = log.all_events(position, PAGE).await.unwrap();
            let Some(last) = page.last() else { break };
            position = last.position;
            events += page.len();
        }
        let took = began.elapsed();
        let rate = events as f64 / took.as_secs_f64();
        println!("| the store alone, {events} events | | {:.0} ms | {rate:.0} | | |", ms(took));
    }
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// What a client knows of its session.
struct Known {
    session: String,
    token: String,
}

impl Known {
    /// Resumes behind a number, and reads up to another; says when the first and the last were received.
    async fn resume(&mut self, address: &Address, after: u64, last: u64) -> (Duration, Duration) {
        let began = Instant::now();
        let mut client = Arcp::resume(address, &self.session, &self.token, after).await;
        self.token.clone_from(&client.resume_token);
        client.next().await;
        let first = began.elapsed();
        while client.last_seq() < last {
            client.next().await;
        }
        (first, began.elapsed())
    }
}

//! Jobs over a daemon that is killed again and again: each runs once, has one terminal message, and no number is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::Connection;
use super::port;
use crate::support::World;

/// Jobs that are under way at once.
const UNDER_WAY: usize = 16;
/// Sessions that share the work.
const FOLDERS: usize = 3;

/// Kills the daemon of a world again and again while a client does this. Each daemon lives a little longer than the one before: on a machine that
/// is too slow for the first ones to get anything done, later ones do.
pub(super) fn while_the_daemon_is_killed(world: &World, first: Duration, client: impl FnOnce() + Send) {
    let port = port(world).to_string();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut life = first;
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(life);
                life += life / 16;
                world.kill_daemon();
                assert_eq!(world.run(["-d", "--port", &port]).code, 0);
            }
        });
        client();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// A client of dialect B that resumes its session each time it loses its daemon, and submits again what was not answered.
pub(super) struct Client {
    connection: Connection,
    token: String,
    folder: String,
    session: Option<(Value, Value)>,
    seqs: Vec<u64>,
    pub(super) losses: usize,
    /// The jobs that were submitted and have no terminal message, by their keys.
    open: BTreeSet<String>,
    /// The keys of the jobs that were accepted.
    keys: BTreeMap<String, String>,
    ends: BTreeMap<String, Vec<String>>,
}

impl Client {
    fn send(&mut self, kind: &str, payload: &Value) -> Option<()> {
        let id = payload["idempotency_key"].as_str().unwrap_or("m");
        let envelope = json!({ "arcp": "1.1", "id": id, "type": kind, "payload": payload });
        self.connection.send(&envelope)
    }

    /// Connects, and opens or resumes the session; the daemon may be lost at any moment of that.
    fn connect(&mut self) -> Option<()> {
        self.connection.open()?;
        let mut hello = json!({
            "client": { "name": "kills", "version": "1" },
            "auth": { "scheme": "bearer", "token": self.token },
            "capabilities": { "features": [] },
        });
        if let Some((session, token)) = &self.session {
            let last = self.seqs.last().copied().unwrap_or_default();
            hello["resume"] = json!({ "session_id": session, "resume_token": token, "last_event_seq": last });
        }
        self.send("session.hello", &hello)?;
        let welcome = self.connection.read()?;
        assert_eq!(welcome["type"], "session.welcome", "{welcome}");
        let payload = &welcome["payload"];
        self.session = Some((payload["session_id"].clone(), payload["resume_token"].clone()));
        Some(())
    }

    fn submit(&mut self, key: &str) -> Option<()> {
        let number: usize = key.parse().unwrap();
        let folder = format!("{}/{}", self.folder, number % FOLDERS);
        let input = json!({ "code": format!("printfn \"{key}\""), "working_directory": folder });
        self.send("job.submit", &json!({ "agent": "fsharp", "input": input, "idempotency_key": key }))
    }

    /// Submits so many jobs, and reads until all have ended.
    fn run(&mut self, jobs: usize) {
        let mut next = 0;
        while next < jobs || !self.open.is_empty() {
            if self.step(&mut next, jobs).is_none() {
                self.losses += 1;
                while self.reconnected().is_none() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    fn step(&mut self, next: &mut usize, jobs: usize) -> Option<()> {
        while *next < jobs && self.open.len() < UNDER_WAY {
            let key = next.to_string();
            *next += 1;
            self.open.insert(key.clone());
            self.submit(&key)?;
        }
        let told = self.connection.read()?;
        self.seqs.extend(told["event_seq"].as_u64());
        match told["type"].as_str().unwrap() {
            "job.accepted" => {
                let key = told["payload"]["request_id"].as_str().unwrap().to_owned();
                self.keys.insert(told["payload"]["job_id"].as_str().unwrap().to_owned(), key);
            }
            "job.result" | "job.error" => {
                let job = told["job_id"].as_str().unwrap().to_owned();
                if let Some(key) = self.keys.get(&job) {
                    self.open.remove(key);
                }
                self.ends.entry(job).or_default().push(told["id"].as_str().unwrap().to_owned());
            }
            "job.event" => {}
            _ => panic!("{told}"),
        }
        Some(())
    }

    /// Goes on with the session, and submits again what has not ended: what was accepted is not run again.
    fn reconnected(&mut self) -> Option<()> {
        self.connect()?;
        for key in self.open.clone() {
            self.submit(&key)?;
        }
        Some(())
    }
}

impl Client {
    /// A client of the daemon of a world, whose jobs run in this folder's folders.
    pub(super) fn of(world: &World, folder: &str) -> Self {
        for number in 0..FOLDERS {
            std::fs::create_dir_all(world.work().join(folder).join(number.to_string())).unwrap();
        }
        Self {
            connection: Connection::to(world),
            token: token(world),
            folder: world.work().join(folder).display().to_string(),
            session: None,
            seqs: Vec::new(),
            losses: 0,
            open: BTreeSet::new(),
            keys: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    /// Connects, and runs so many jobs.
    pub(super) fn connect_and_run(&mut self, jobs: usize) {
        self.connect().unwrap();
        self.run(jobs);
    }

    /// So many jobs were told of without a gap, and each has one end.
    pub(super) fn has_all(&self, jobs: usize) {
        let last = self.seqs.len() as u64;
        assert_eq!(self.seqs, (1..=last).collect::<Vec<_>>());
        assert_eq!((self.keys.len(), self.ends.len()), (jobs, jobs));
        // A terminal message that is told again, since its job was submitted again, is the same.
        for (job, ends) in &self.ends {
            assert!(ends.iter().all(|end| *end == ends[0]), "{job}: {ends:?}");
        }
    }
}

pub(super) fn token(world: &World) -> String {
    std::fs::read_to_string(world.home().join("token")).unwrap().trim().to_owned()
}

fn over_kills(jobs: usize, between: Duration) {
    let world = World::scripted();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut client = Client::of(&world, "jobs");
    while_the_daemon_is_killed(&world, between, || client.connect_and_run(jobs));
    assert!(client.losses > 0, "no daemon was lost under it");
    client.has_all(jobs);
    assert_eq!(printed(&world), (0..jobs).collect::<Vec<_>>(), "each ran once");
}

/// The numbers that all jobs in a world have printed, the least first.
pub(super) fn printed(world: &World) -> Vec<usize> {
    let sessions = world.run(["session", "list", "--json"]).json();
    let mut printed: Vec<String> = Vec::new();
    for session in sessions.as_array().unwrap() {
        let events =
            world.run(["events", "--json", "--session", session["session"].as_str().unwrap()]).stdout;
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        printed.extend(
            events
                .filter(|event| event["kind"] == "outputProduced")
                .map(|event| event["body"]["text"].as_str().unwrap().trim().to_owned()),
        );
    }
    let mut printed: Vec<usize> =
        printed.iter().flat_map(|text| text.lines()).map(|line| line.parse().unwrap()).collect();
    printed.sort_unstable();
    printed
}

#[test]
fn jobs_over_daemons_that_are_killed_run_once_and_end_once() {
    over_kills(150, Duration::from_millis(300));
}

/// By hand: `cargo xtask test -- -p mainstay --test cli -E 'test(ten_thousand_jobs)' --run-ignored all`.
#[test]
#[ignore = "it takes 40 seconds, and the test of 150 jobs tries the same; run by hand"]
fn ten_thousand_jobs_over_a_daemon_that_is_killed_every_second_end_once() {
    over_kills(10_000, Duration::from_secs(1));
}

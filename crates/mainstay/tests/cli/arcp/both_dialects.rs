//! Clients of both dialects in the same live sessions, over a daemon that is killed again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::Connection;
use super::kills::{Client, printed, token, while_the_daemon_is_killed};
use crate::support::World;

/// Jobs of each client.
const JOBS: usize = 60;
/// Jobs that are under way at once.
const UNDER_WAY: usize = 8;
/// Sessions that both clients share.
const FOLDERS: usize = 3;

/// A client of dialect A that comes back to its session each time it loses its daemon.
struct ClientOfA {
    connection: Connection,
    token: String,
    folder: String,
    session: Option<Value>,
    /// The ids of the messages about jobs, each as it came first.
    told: Vec<String>,
    losses: usize,
    open: BTreeSet<String>,
    ends: BTreeMap<String, BTreeSet<String>>,
}

impl ClientOfA {
    fn send(&mut self, id: &str, kind: &str, payload: &Value) -> Option<()> {
        let envelope = json!({
            "arcp": "1.0", "id": id, "type": kind, "timestamp": "2026-05-09T13:00:00Z",
            "session_id": self.session, "idempotency_key": id, "payload": payload,
        });
        self.connection.send(&envelope)
    }

    /// Connects, and opens the session or comes back to it; the daemon may be lost at any moment of that.
    fn connect(&mut self) -> Option<()> {
        self.connection.open()?;
        let capabilities = json!({ "streaming": true, "durable_jobs": true });
        let auth = json!({ "scheme": "bearer", "token": self.token });
        let client = json!({ "kind": "kills", "version": "1" });
        let open = json!({ "auth": auth, "client": client, "capabilities": capabilities });
        self.send("open", "session.open", &open)?;
        let accepted = self.connection.read()?;
        assert_eq!(accepted["type"], "session.accepted", "{accepted}");
        let session = accepted["payload"]["session_id"].clone();
        assert!(self.session.as_ref().is_none_or(|known| *known == session), "it is another session");
        self.session = Some(session);
        if let Some(last) = self.told.last().cloned() {
            self.send("resume", "resume", &json!({ "after_message_id": last }))?;
        }
        for key in self.open.clone() {
            self.invoke(&key)?;
        }
        Some(())
    }

    fn invoke(&mut self, key: &str) -> Option<()> {
        let number: usize = key.parse().unwrap();
        let folder = format!("{}/{}", self.folder, number % FOLDERS);
        let arguments = json!({ "code": format!("printfn \"{number}\""), "working_directory": folder });
        self.send(key, "tool.invoke", &json!({ "tool": "fsharp", "arguments": arguments }))
    }

    fn run(&mut self, keys: std::ops::Range<usize>) {
        let mut left = keys;
        while !left.is_empty() || !self.open.is_empty() {
            if self.step(&mut left).is_none() {
                self.losses += 1;
                while self.connect().is_none() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    fn step(&mut self, left: &mut std::ops::Range<usize>) -> Option<()> {
        while self.open.len() < UNDER_WAY
            && let Some(number) = left.next()
        {
            self.open.insert(number.to_string());
            self.invoke(&number.to_string())?;
        }
        let message = self.connection.read()?;
        let kind = message["type"].as_str().unwrap();
        assert!(kind != "nack", "{message}");
        let id = message["id"].as_str().unwrap().to_owned();
        if !id.starts_with("evt_") || self.told.contains(&id) {
            return Some(());
        }
        if kind == "job.completed" {
            let key = message["correlation_id"].as_str().unwrap().to_owned();
            self.open.remove(&key);
            self.ends.entry(key).or_default().insert(id.clone());
        }
        self.told.push(id);
        Some(())
    }
}

#[test]
fn clients_of_both_dialects_go_on_without_a_gap_over_daemons_that_are_killed() {
    let world = World::scripted();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut b = Client::of(&world, "shared");
    let mut a = ClientOfA {
        connection: Connection::to(&world),
        token: token(&world),
        folder: world.work().join("shared").display().to_string(),
        session: None,
        told: Vec::new(),
        losses: 0,
        open: BTreeSet::new(),
        ends: BTreeMap::new(),
    };
    while_the_daemon_is_killed(&world, Duration::from_millis(300), || {
        std::thread::scope(|scope| {
            scope.spawn(|| b.connect_and_run(JOBS));
            scope.spawn(|| {
                a.connect().unwrap();
                a.run(JOBS..2 * JOBS);
            });
        });
    });
    assert!(a.losses > 0 && b.losses > 0, "no daemon was lost under them");
    b.has_all(JOBS);
    assert_eq!(a.ends.len(), JOBS);
    assert!(a.ends.values().all(|ends| ends.len() == 1), "{:?}", a.ends);
    // All that its session was told, as the log has it.
    let session = a.session.as_ref().unwrap().as_str().unwrap();
    let replayed = world.run(["arcp", "replay", session]);
    let ids = replayed.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone());
    let mut ids: Vec<String> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
    // What was told twice, since it was submitted again, came once.
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    assert_eq!(a.told, ids);
    assert_eq!(
        printed(&world),
        (0..2 * JOBS).collect::<Vec<_>>(),
        "each ran once, in sessions that both share"
    );
    let sessions = world.run(["session", "list", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), FOLDERS);
}

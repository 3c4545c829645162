//! Who follows events: one all sessions, by position, others one session after another, each from where it was. They drop their connections
//! in the middle, lose them with the daemon, and go on at their cursors.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::gate::held;
use super::history::{Cursor, Cursors};
use super::random::Random;
use super::rpc::{Connection, Trouble};
use super::stage::Stage;

const TICK: Duration = Duration::from_millis(200);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Follows all sessions while the gate lets it. Its cursors can be read from outside.
pub(super) fn follow_all(stage: &Stage, number: u64, cursors: &Mutex<Cursors>) {
    let mut random = Random::stream(stage.seed, number);
    while stage.following.pass() {
        let until = Instant::now() + random.millis(500, 8000);
        let followed = Connection::open(&stage.installation).and_then(|mut connection| {
            let position = held(cursors).position();
            connection.call("session/subscribe", json!({ "afterPosition": position }))?;
            while stage.following.is_open() && Instant::now() < until {
                if let Some(event) = connection.event(TICK)? {
                    let advanced = held(cursors).advance(&event);
                    stage.check(advanced.map_err(|fault| format!("who follows all sessions: {fault}")));
                    stage.see(&event);
                }
            }
            Ok(())
        });
        end(stage, followed);
    }
}

/// Follows one session after another while the gate lets it.
pub(super) fn follow_each(stage: &Stage, number: u64) {
    let mut random = Random::stream(stage.seed, number);
    let mut cursors: HashMap<String, Cursor> = HashMap::new();
    while stage.following.pass() {
        let sessions: Vec<String> = held(&stage.slots).iter().flatten().cloned().collect();
        let Some(session) = random.pick(&sessions) else {
            std::thread::sleep(BETWEEN_LOOKS);
            continue;
        };
        let cursor = cursors.entry(session.clone()).or_default();
        let until = Instant::now() + random.millis(50, 4000);
        let is_slow = random.chance(20);
        let followed = Connection::open(&stage.installation).and_then(|mut connection| {
            connection.call("session/subscribe", json!({ "session": session, "after": cursor.0 }))?;
            while stage.following.is_open() && Instant::now() < until {
                if let Some(event) = connection.event(TICK)? {
                    let advanced = cursor.advance(&event);
                    stage.check(advanced.map_err(|fault| format!("who follows one session: {fault}")));
                    stage.see(&event);
                }
                if is_slow {
                    std::thread::sleep(random.millis(0, 20));
                }
            }
            Ok(())
        });
        end(stage, followed);
    }
}

fn end(stage: &Stage, followed: Result<(), Trouble>) {
    match followed {
        Ok(()) => stage.count("subscriptions dropped"),
        Err(Trouble::Lost | Trouble::Silent) => {
            stage.count("subscriptions lost");
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Err(Trouble::Refused { code, .. }) if code == "daemon_stopping" => std::thread::sleep(BETWEEN_LOOKS),
        Err(Trouble::Refused { code, error }) => {
            stage.fault(format!("events are refused with {code}: {error}"))
        }
    }
}

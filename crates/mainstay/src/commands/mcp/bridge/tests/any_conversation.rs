//! Any conversation at all, with daemons that come and go: every call is answered once, under one command.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::Error;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Delivered::{Client, Daemon};
use super::*;

/// One step of a simulated conversation.
#[derive(Clone, Copy, Debug)]
enum Step {
    Call,
    Cancel(usize),
    Answer(usize),
    Ask,
    Reply(usize),
    Lose,
    Connect,
    GiveUp,
    /// The daemon has been silent for too long.
    Silence,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Call),
        1 => any::<usize>().prop_map(Step::Cancel),
        3 => any::<usize>().prop_map(Step::Answer),
        2 => Just(Step::Ask),
        2 => any::<usize>().prop_map(Step::Reply),
        3 => Just(Step::Lose),
        4 => Just(Step::Connect),
        1 => Just(Step::GiveUp),
        2 => Just(Step::Silence),
    ];
    prop::collection::vec(step, 0..60)
}

/// What there is between the two, as it should be.
#[derive(Default)]
struct Ledger {
    is_connected: bool,
    next: u64,
    /// Calls that the client waits for.
    open: BTreeSet<u64>,
    /// The command of each call that a daemon ever got.
    commands: BTreeMap<u64, Value>,
    /// Calls that the connected daemon has.
    held: Vec<u64>,
    /// Asks that the client was shown and has not answered.
    shown: Vec<u64>,
    ever_shown: BTreeSet<u64>,
    /// The connected daemon's asks that are open, and the number of the last.
    asks: BTreeSet<u64>,
    last_ask: u64,
}

impl Ledger {
    /// Books what was said, and checks that it may be said.
    fn book(&mut self, said: Vec<Delivered>) {
        for heard in said {
            match heard {
                Daemon(said) => {
                    assert!(self.is_connected, "to nobody: {said}");
                    match (said["method"].as_str(), said["id"].as_u64()) {
                        (Some("tools/call"), Some(id)) => {
                            let command = said["params"]["_meta"]["mainstay/command"].clone();
                            let again = said["params"]["_meta"]["mainstay/again"] == json!(true);
                            let first = self.commands.insert(id, command.clone());
                            assert!(command.is_string());
                            assert_eq!(again, first.is_some(), "{said}");
                            assert!(first.is_none_or(|first| first == command), "another command: {said}");
                            assert!(self.open.contains(&id), "it was answered, or cancelled: {said}");
                            self.held.push(id);
                        }
                        (None, Some(id)) => assert!(self.asks.remove(&id), "it never asked: {said}"),
                        _ => {}
                    }
                }
                Client(said) => match (said["method"].as_str(), said["id"].as_u64()) {
                    (Some("elicitation/create"), Some(id)) => {
                        assert!(self.ever_shown.insert(id), "the same id twice: {said}");
                        self.shown.push(id);
                    }
                    (Some("notifications/cancelled"), None) => {
                        let id = said["params"]["requestId"].as_u64().unwrap();
                        assert!(self.ever_shown.contains(&id));
                        self.shown.retain(|shown| *shown != id);
                    }
                    (None, Some(id)) => assert!(self.open.remove(&id), "answered twice: {said}"),
                    _ => {}
                },
            }
        }
    }
}

proptest! {
    #[test]
    fn every_call_is_answered_once_under_one_command(steps in steps()) {
        let mut talk = BridgeTest::new();
        let mut ledger = Ledger::default();
        for step in steps {
            let said = match step {
                Step::Call => {
                    ledger.next += 1;
                    ledger.open.insert(ledger.next);
                    talk.client(call(ledger.next))
                }
                Step::Cancel(at) => {
                    let Some(id) = ledger.open.iter().nth(at % ledger.open.len().max(1)).copied() else { continue };
                    ledger.open.remove(&id);
                    ledger.held.retain(|held| *held != id);
                    talk.client(json!({ "method": "notifications/cancelled", "params": { "requestId": id } }))
                }
                Step::Answer(at) if ledger.is_connected && !ledger.held.is_empty() => {
                    let id = ledger.held.remove(at % ledger.held.len());
                    talk.daemon(answer(id))
                }
                Step::Ask if ledger.is_connected => {
                    ledger.last_ask += 1;
                    ledger.asks.insert(ledger.last_ask);
                    talk.daemon(request(ledger.last_ask, "elicitation/create", json!({})))
                }
                Step::Reply(at) if !ledger.ever_shown.is_empty() => {
                    let id = ledger.ever_shown.iter().nth(at % ledger.ever_shown.len()).copied().unwrap();
                    ledger.shown.retain(|shown| *shown != id);
                    talk.client(answer(id))
                }
                Step::Lose if ledger.is_connected => {
                    ledger.is_connected = false;
                    ledger.held.clear();
                    ledger.asks.clear();
                    ledger.last_ask = 0;
                    let said = talk.lost();
                    ledger.book(said);
                    prop_assert!(ledger.shown.is_empty(), "a question of nobody's: {:?}", ledger.shown);
                    continue;
                }
                Step::Connect if !ledger.is_connected => {
                    ledger.is_connected = true;
                    let said = talk.connected("1");
                    ledger.book(said);
                    let held: BTreeSet<u64> = ledger.held.iter().copied().collect();
                    prop_assert_eq!(&held, &ledger.open, "all that is open is sent, and nothing else");
                    continue;
                }
                Step::Silence if ledger.is_connected => match talk.bridge.heard_nothing() {
                    Silence::Ask(ping) => heard(vec![ping]),
                    Silence::Hang => {
                        ledger.is_connected = false;
                        ledger.held.clear();
                        ledger.asks.clear();
                        ledger.last_ask = 0;
                        let said = heard(talk.bridge.hangs(&Error::DaemonSilent { pid: 1, limit_ms: 1 }));
                        ledger.book(said);
                        prop_assert!(ledger.open.is_empty() && ledger.shown.is_empty());
                        continue;
                    }
                },
                Step::GiveUp if !ledger.is_connected => heard(talk.bridge.unavailable(&Error::DaemonNotRunning)),
                _ => continue,
            };
            ledger.book(said);
        }
        prop_assert_eq!(talk.bridge.wants_daemon(), !ledger.open.is_empty());
    }
}

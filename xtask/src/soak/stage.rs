//! What everyone who takes part in a soak shares: the program, who may go on, what was sent and seen, and what went wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use super::book::Book;
use super::gate::{Gate, held};
use super::history::EventHistory;
use super::installation::Installation;

/// How many sessions are used side by side.
pub(super) const SLOTS: usize = 4;
/// How many faults are kept; a defect that shows all the time would fill the memory.
const KEPT_FAULTS: usize = 200;

/// What all parts of a soak share.
pub(super) struct Stage {
    pub(super) installation: Installation,
    pub(super) seed: u64,
    /// Of those who send commands.
    pub(super) load: Gate,
    /// Of those who follow events.
    pub(super) following: Gate,
    pub(super) book: Mutex<Book>,
    pub(super) story: Mutex<EventHistory>,
    /// The sessions in use, by their ids.
    pub(super) slots: Mutex<[Option<String>; SLOTS]>,
    tally: Mutex<BTreeMap<&'static str, u64>>,
    faults: Mutex<Vec<String>>,
    /// What each client does at the moment.
    doing: Mutex<BTreeMap<u64, &'static str>>,
}

impl Stage {
    /// With both gates closed.
    pub(super) fn new(installation: Installation, seed: u64, clients: usize, followers: usize) -> Self {
        Self {
            installation,
            seed,
            load: Gate::closed_for(clients),
            following: Gate::closed_for(followers),
            book: Mutex::default(),
            story: Mutex::default(),
            slots: Mutex::default(),
            tally: Mutex::default(),
            faults: Mutex::default(),
            doing: Mutex::default(),
        }
    }

    /// Counts something that was done.
    pub(super) fn count(&self, what: &'static str) {
        *held(&self.tally).entry(what).or_default() += 1;
    }

    /// How often each thing was done.
    pub(super) fn tally(&self) -> BTreeMap<&'static str, u64> {
        held(&self.tally).clone()
    }

    /// Keeps what went wrong, if it did, and shows it at once.
    pub(super) fn check(&self, checked: Result<(), String>) {
        if let Err(fault) = checked {
            self.fault(fault);
        }
    }

    /// Keeps what went wrong, and shows it at once.
    pub(super) fn fault(&self, fault: String) {
        let mut faults = held(&self.faults);
        if faults.len() < KEPT_FAULTS && !faults.contains(&fault) {
            eprintln!("\nsoak: {fault}");
            faults.push(fault);
        }
    }

    /// Everything that went wrong.
    pub(super) fn faults(&self) -> Vec<String> {
        held(&self.faults).clone()
    }

    /// Notes what a client does.
    pub(super) fn note(&self, client: u64, doing: &'static str) {
        held(&self.doing).insert(client, doing);
    }

    /// What the clients do.
    pub(super) fn doing(&self) -> String {
        let doing = held(&self.doing);
        doing.iter().map(|(client, what)| format!("{client}: {what}")).collect::<Vec<_>>().join(", ")
    }

    /// Notes an event that was delivered.
    pub(super) fn see(&self, event: &Value) {
        let seen = held(&self.story).see(event);
        self.check(seen);
    }
}

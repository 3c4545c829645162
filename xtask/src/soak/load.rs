//! The clients: each does one thing after another, chosen at random, and holds what it is answered against what it knows.

mod commands;
mod evals;
mod resends;
mod sessions;

use std::time::Duration;

use serde_json::{Value, json};

use super::gate::held;
use super::random::Random;
use super::rpc::{Connection, Trouble};
use super::stage::{SLOTS, Stage};

/// How long to wait for a daemon that is not there before it is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// How many of its definitions a client remembers.
const REMEMBERED: usize = 40;

/// What a client does.
type Action = fn(&mut Client<'_>) -> Done;

/// Everything that clients do, with how often in a thousand times.
const ACTIONS: &[(usize, &str, Action)] = &[
    (251, "eval: pure", |client| client.eval_pure()),
    (150, "eval: define", |client| client.define()),
    (150, "eval: recall", |client| client.recall()),
    (50, "eval: print a lot", |client| client.print()),
    (40, "eval: throw", |client| client.throw()),
    (5, "eval: loop, cancelled", |client| client.loop_until_cancelled()),
    (7, "eval: too slow for its timeout", |client| client.time_out()),
    (15, "eval: wrong version", |client| client.want_another_version()),
    (30, "eval: after two others", |client| client.depend()),
    (15, "eval: connection dropped", |client| client.drop_connection()),
    (10, "eval: program", |client| client.eval_by_program()),
    (80, "resend: same id", |client| client.resend()),
    (30, "resend: same key", |client| client.resend_key()),
    (30, "resend: conflict", |client| client.conflict()),
    (30, "look at a command", |client| client.look_at_command()),
    (20, "check", |client| client.check()),
    (20, "complete", |client| client.complete()),
    (20, "read", |client| client.read()),
    (15, "rename", |client| client.rename()),
    (4, "reset", |client| client.reset()),
    (2, "hard reset", |client| client.hard_reset()),
    (2, "stop", |client| client.stop()),
    (4, "start", |client| client.start()),
    (2, "new session", |client| client.replace_session()),
    (9, "MCP: socket", |client| client.speak_mcp()),
    (9, "MCP: HTTP", |client| client.speak_mcp_over_http()),
];

/// What comes of an action: trouble that it has not dealt with ends the connection.
pub(super) type Done = Result<(), Trouble>;

/// A definition that ran to its end.
struct Definition {
    session: String,
    command: String,
    name: String,
    value: String,
}

/// One client that loads the daemon.
pub(super) struct Client<'a> {
    pub(super) stage: &'a Stage,
    pub(super) random: Random,
    number: u64,
    sent: u64,
    connection: Option<Connection>,
    definitions: Vec<Definition>,
}

/// Works while the gate of the load lets it.
pub(super) fn work(stage: &Stage, number: u64) {
    let random = Random::stream(stage.seed, number);
    let mut client = Client { stage, random, number, sent: 0, connection: None, definitions: Vec::new() };
    loop {
        stage.note(number, "waits");
        if !stage.load.is_open() {
            client.connection = None;
        }
        if !stage.load.pass() {
            return;
        }
        client.act();
    }
}

impl Client<'_> {
    fn act(&mut self) {
        let total = ACTIONS.iter().map(|(weight, ..)| weight).sum();
        let mut chosen = self.random.below(total);
        for (weight, name, action) in ACTIONS {
            if chosen < *weight {
                self.stage.note(self.number, name);
                match action(self) {
                    Ok(()) => self.stage.count(name),
                    Err(trouble) => self.meet(name, trouble),
                }
                break;
            }
            chosen -= weight;
        }
        std::thread::sleep(self.random.millis(0, 60));
    }

    /// What an action could not deal with.
    fn meet(&mut self, action: &'static str, trouble: Trouble) {
        match trouble {
            Trouble::Lost => {
                if self.connection.take().is_some() {
                    self.stage.count("connections lost");
                }
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Trouble::Silent => {
                self.connection = None;
                self.stage.fault(format!("{action}: no answer came"));
            }
            Trouble::Refused { code, .. } if is_expected(&code) => self.stage.count("refused"),
            Trouble::Refused { code, error } => {
                self.stage.fault(format!("{action}: refused with {code}: {error}"));
            }
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, Trouble> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(&self.stage.installation)?);
        }
        self.connection.as_mut().ok_or(Trouble::Lost)
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.connection()?.call(method, params)
    }

    /// One of the sessions in use; a new one where the place is empty.
    pub(super) fn session(&mut self) -> Result<String, Trouble> {
        let slot = self.random.below(SLOTS);
        let taken = held(&self.stage.slots)[slot].clone();
        match taken {
            Some(session) => Ok(session),
            None => self.fill(slot),
        }
    }

    /// Creates a session, twice under the same id, which is once.
    fn fill(&mut self, slot: usize) -> Result<String, Trouble> {
        let create = json!({
            "command": self.new_id(), "kind": "fsharp", "workingDirectory": self.stage.installation.work(),
        });
        let first = self.call("session/create", create.clone())?["session"].take();
        let again = self.call("session/create", create)?["session"].take();
        if first != again {
            self.stage.fault(format!("a session was created twice under one id: {first} and {again}"));
        }
        let session = first.as_str().ok_or(Trouble::Lost)?.to_owned();
        held(&self.stage.slots)[slot] = Some(session.clone());
        Ok(session)
    }

    fn new_id(&mut self) -> String {
        self.sent += 1;
        format!("soak-{}-{}", self.number, self.sent)
    }
}

/// Errors that belong to a load like this: others change the sessions at the same time, and the daemon comes and goes.
fn is_expected(code: &str) -> bool {
    [
        "not_offered",
        "not_running",
        "lane_full",
        "cancelled",
        "session_stopped",
        "timed_out",
        "timeout",
        "version_mismatch",
        "dependency_failed",
        "dependency_unknown",
        "dependency_pending",
        "dependency_in_lane",
        "dependency_cycle",
        "worker_failed",
        "daemon_stopping",
    ]
    .contains(&code)
}

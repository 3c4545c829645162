//! What goes on while daemons are killed. A story is played by clients that know nothing of that.

use std::thread;

use serde_json::{Value, json};

use super::clients::Clients;
use super::language::Language;
use super::verdict::{Expected, Prints};

/// How many numbers a story prints that counts, and one that floods.
const COUNTS: u64 = 30;
const FLOODS: u64 = 4_000;
/// How many times a front end says something.
const COMMS: u64 = 5;

/// Something that goes on in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Story {
    /// Code prints a number now and then.
    Counts,
    /// Code prints as much as it can.
    Floods,
    /// Code reads a line, which somebody types.
    Asks,
    /// An eval waits behind another.
    Waits,
    /// Front ends speak with the kernel.
    Comms,
    /// Code is cancelled, and stops some time later.
    StopsLate,
    /// Code is cancelled, and does not stop.
    NeverStops,
    /// The session is reset.
    IsReset,
    /// The same, with a new worker.
    IsResetHard,
    /// The session is stopped and started again.
    WarmsUp,
}

use Story::{Asks, Comms, Counts, Floods, IsReset, IsResetHard, NeverStops, StopsLate, Waits, WarmsUp};

/// Where a story is played.
pub(super) struct Scene<'a> {
    pub(super) clients: &'a Clients<'a>,
    pub(super) language: Language,
    pub(super) session: &'a str,
    /// The session's last event before the story.
    pub(super) after: u64,
    /// The last number that was printed before.
    pub(super) total: u64,
    /// What the ids of the story's commands begin with.
    pub(super) name: String,
}

/// What is to be found in the events of the session.
#[derive(Default)]
pub(super) struct Played {
    pub(super) expected: Vec<Expected>,
    /// How many numbers more were printed.
    pub(super) counted: u64,
}

impl Story {
    /// The stories of a language.
    pub(super) fn all(language: Language) -> Vec<Self> {
        let all = [Counts, Floods, Asks, Waits, Comms, StopsLate, NeverStops, IsReset, IsResetHard, WarmsUp];
        let is_told = |story: &Self| match story {
            Floods => language.floods(),
            Comms => language == Language::Python,
            StopsLate => language.yields(),
            _ => true,
        };
        all.into_iter().filter(is_told).collect()
    }

    /// Whether the story is played in a session whose worker may be ended.
    pub(super) const fn has_worker_ended(self) -> bool {
        matches!(self, NeverStops | IsReset | IsResetHard | WarmsUp)
    }

    /// Plays the story to its end.
    pub(super) fn play(self, scene: &Scene<'_>) -> Result<Played, String> {
        match self {
            Counts => scene.runs(&scene.language.counts(COUNTS, 8), COUNTS),
            Floods => scene.runs(&scene.language.flood(FLOODS), FLOODS),
            Asks => scene.asks(),
            Waits => scene.waits(),
            Comms => scene.comms(),
            StopsLate => scene.is_cancelled(scene.language.stops_late()),
            NeverStops => {
                scene.is_cancelled(scene.language.never_stops()).and_then(|played| scene.has_kept(played))
            }
            IsReset => scene.is_reset(false),
            IsResetHard => scene.is_reset(true),
            WarmsUp => scene.warms_up(),
        }
    }
}

impl Scene<'_> {
    fn id(&self, of: &str) -> String {
        format!("{}-{of}", self.name)
    }

    /// Numbers, each on a line, that follow upon what was printed before and `skip` others.
    fn numbers(&self, skip: u64, count: u64) -> String {
        let first = self.total + skip + 1;
        (first..first + count).map(|number| format!("{number}\n")).collect()
    }

    fn runs(&self, code: &str, count: u64) -> Result<Played, String> {
        let id = self.id("runs");
        completed(&self.clients.eval(self.session, &id, code)?)?;
        let expected = vec![Expected::completed(id, self.numbers(0, count))];
        Ok(Played { expected, counted: count })
    }

    fn asks(&self) -> Result<Played, String> {
        let (id, answer) = (self.id("asks"), self.id("answer"));
        thread::scope(|scope| {
            let running = scope.spawn(|| self.clients.eval(self.session, &id, self.language.asks()));
            let ask = self.clients.wait_for(|clients| {
                let asks = clients.done("ask/list", &json!({ "session": self.session }))?;
                Ok(asks[0]["ask"].as_str().map(str::to_owned))
            })?;
            let params = json!({ "ask": ask, "command": answer, "value": "Ada" });
            self.clients.done("ask/answer", &params)?;
            completed(&joined(running)?)
        })?;
        let printed = format!("{}Ada {}\n", self.numbers(0, 1), self.total + 2);
        Ok(Played { expected: vec![Expected::completed(id, printed)], counted: 2 })
    }

    fn waits(&self) -> Result<Played, String> {
        let (first, second, code) =
            (self.id("first"), self.id("second"), self.language.counts(COUNTS / 2, 8));
        thread::scope(|scope| {
            let running = scope.spawn(|| self.clients.eval(self.session, &first, &code));
            self.is_accepted(&first)?;
            completed(&self.clients.eval(self.session, &second, &code)?)?;
            completed(&joined(running)?)
        })?;
        let half = COUNTS / 2;
        let expected = vec![
            Expected::completed(first, self.numbers(0, half)),
            Expected::completed(second, self.numbers(half, half)),
        ];
        Ok(Played { expected, counted: 2 * half })
    }

    /// Waits until a daemon has accepted a command.
    fn is_accepted(&self, id: &str) -> Result<(), String> {
        self.clients
            .wait_for(|clients| Ok(clients.call("command/get", &json!({ "command": id })).ok().map(drop)))
    }

    fn comms(&self) -> Result<Played, String> {
        let comm = self.id("comm");
        let open = json!({ "step": "open", "target": "count" });
        let says = std::iter::repeat_n(json!({ "step": "say" }), usize::try_from(COMMS).unwrap());
        let mut expected = Vec::new();
        for (number, step) in (0..).zip(std::iter::once(open).chain(says)) {
            let id = self.id(&format!("comm-{number}"));
            let mut params =
                json!({ "session": self.session, "command": id, "work": "comm", "comm": comm, "data": {} });
            params.as_object_mut().unwrap().extend(step.as_object().unwrap().clone());
            let view = self.clients.done("session/work", &params)?;
            if view["ending"] != "done" {
                return Err(format!("a front end was answered {view}"));
            }
            let printed = if number == 0 { String::new() } else { self.numbers(number - 1, 1) };
            expected.push(Expected { command: id, end: "jobEnded", prints: Prints::Exactly(printed) });
        }
        Ok(Played { expected, counted: COMMS })
    }

    fn is_cancelled(&self, code: &str) -> Result<Played, String> {
        let (id, cancel) = (self.id("runs"), self.id("cancel"));
        thread::scope(|scope| {
            let running = scope.spawn(|| self.clients.eval(self.session, &id, code));
            self.clients.wait_for(|clients| {
                let events = clients.events(self.session, self.after)?;
                Ok(events.iter().any(|event| event["kind"] == "outputProduced").then_some(()))
            })?;
            let params = json!({ "session": self.session, "target": id, "command": cancel });
            self.clients.done("session/cancel", &params)?;
            let view = joined(running)?;
            if view["ending"] == "cancelled" {
                Ok(())
            } else {
                Err(format!("it was cancelled, and is {view}"))
            }
        })?;
        Ok(Played { expected: vec![Expected::cancelled(id)], counted: 0 })
    }

    /// What the session had defined is there.
    fn has_kept(&self, mut played: Played) -> Result<Played, String> {
        let id = self.id("kept");
        let value = self.clients.value(self.session, &id, "kept + 1")?;
        if value != "42" {
            return Err(format!("kept + 1 is {value}"));
        }
        played.expected.push(Expected::completed(id, ""));
        Ok(played)
    }

    fn is_reset(&self, hard: bool) -> Result<Played, String> {
        let (reset, define) = (self.id("reset"), self.id("define"));
        self.clients
            .done("session/reset", &json!({ "session": self.session, "command": reset, "hard": hard }))?;
        completed(&self.clients.eval(self.session, &define, self.language.definitions())?)?;
        let events = self.clients.events(self.session, self.after)?;
        let kind = if hard { "sessionHardReset" } else { "sessionReset" };
        let resets = events.iter().filter(|event| event["kind"] == kind).count();
        if resets != 1 {
            return Err(format!("it was reset {resets} times"));
        }
        self.has_kept(Played { expected: vec![Expected::completed(define, "")], counted: 0 })
    }

    fn warms_up(&self) -> Result<Played, String> {
        for change in ["stop", "start"] {
            let params = json!({ "session": self.session, "command": self.id(change) });
            self.clients.done(&format!("session/{change}"), &params)?;
        }
        self.has_kept(Played::default())
    }
}

fn completed(view: &Value) -> Result<(), String> {
    if view["ending"] == "completed" {
        Ok(())
    } else {
        Err(format!("it should have completed, and is {view}"))
    }
}

fn joined(running: thread::ScopedJoinHandle<'_, Result<Value, String>>) -> Result<Value, String> {
    running.join().unwrap_or_else(|_| Err("a client gave up".to_owned()))
}

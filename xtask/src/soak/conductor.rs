//! The course of a soak: slices of load with kills, each followed by a rest point, and at the end the reckoning.
//!
//! In the first and the last quarter the daemon is killed every few seconds, and now and then it begins anew or is stopped in order; in the
//! half between only workers are killed, so that one daemon lives long enough to tell whether it grows. Every slice has the same load.
//! Workers live on in their shims where a daemon is killed or begins anew: no job is interrupted by that.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::book::Answer;
use super::gate::held;
use super::history::{Cursors, Transcript};
use super::installation::kill;
use super::processes::{self, Family, Process, family};
use super::random::Random;
use super::rpc::{Connection, Trouble};
use super::stage::Stage;
use super::verdict::Rest;

/// How long the clients may take to come to rest: longer than any of them waits for an answer.
const COMES_TO_REST: Duration = Duration::from_secs(180);
/// How long what they left under way may take to end.
const ENDS: Duration = Duration::from_secs(90);
/// How long followers may take to have every event.
const CATCHES_UP: Duration = Duration::from_secs(30);
/// How long threads and files of a load may outlive it. An idle thread of the daemon's pool ends after ten seconds.
const SETTLES: Duration = Duration::from_secs(15);
/// How long a killed daemon may take to be back. Its supervisor waits half a minute at most.
const COMES_BACK: Duration = Duration::from_secs(60);
/// How long workers and shims may outlive a daemon that was stopped in order.
const WORKERS_END: Duration = Duration::from_secs(10);
/// How often a start is tried.
const STARTS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const SUPERVISED: [&str; 2] = ["-d", "--supervised"];
const UNSUPERVISED: [&str; 1] = ["-d"];

/// Who leads through a soak.
pub(super) struct Conductor<'a> {
    pub(super) stage: &'a Stage,
    pub(super) cursors: &'a Mutex<Cursors>,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) length: Duration,
    random: Random,
    began: Instant,
    rests: Vec<Rest>,
}

/// What a soak came to, beside the faults.
pub(super) struct Reckoning {
    pub(super) rests: Vec<Rest>,
    pub(super) commands: usize,
    /// Commands that were sent and never reached a daemon.
    pub(super) never_arrived: usize,
    pub(super) recalls: u64,
    pub(super) events: u64,
}

/// Which part of a soak it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Daemons come and go.
    Endings,
    /// One daemon stays up all the time.
    Steady,
}

impl Part {
    fn at(elapsed: Duration, length: Duration) -> Self {
        if (length / 4..length * 3 / 4).contains(&elapsed) { Self::Steady } else { Self::Endings }
    }

    /// How long the load goes on between two rest points.
    fn slice(self, length: Duration) -> Duration {
        let steady = (length / 24).clamp(Duration::from_secs(6), Duration::from_secs(45));
        match self {
            Self::Endings => steady * 3 / 2,
            Self::Steady => steady,
        }
    }
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        stage: &'a Stage,
        cursors: &'a Mutex<Cursors>,
        interrupted: &'a AtomicBool,
        length: Duration,
    ) -> Self {
        let random = Random::stream(stage.seed, 0);
        Self { stage, cursors, interrupted, length, random, began: Instant::now(), rests: Vec::new() }
    }

    /// Leads from the first daemon's start to the last one's end.
    pub(super) fn lead(mut self) -> Reckoning {
        if let Err(fault) = self.go_through() {
            self.stage.fault(fault);
        }
        let reckoning = self.reckon();
        self.stop();
        self.stage.check(self.stage.installation.require(["doctor"]).map(drop));
        for line in self.stage.installation.logged_errors() {
            self.stage.fault(format!("the daemon has logged an error: {line}"));
        }
        reckoning
    }

    /// All slices of load. An error ends the soak early: the daemon does not come up.
    fn go_through(&mut self) -> Result<(), String> {
        self.start()?;
        self.began = Instant::now();
        while self.began.elapsed() < self.length && !self.is_interrupted() {
            let part = Part::at(self.began.elapsed(), self.length);
            self.stage.following.open();
            self.stage.load.open();
            self.disturb(part)?;
            self.rest();
        }
        // What was acknowledged must be there in a daemon that never saw it happen.
        self.kill_daemon()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Starts a daemon under a supervisor. A client on the command line may have been quicker, and have started one without.
    fn start(&self) -> Result<(), String> {
        for _ in 1..STARTS {
            if self.stage.installation.require(SUPERVISED).is_ok() {
                return Ok(());
            }
            self.stage.count("unsupervised daemons in the way");
            // It fails where that one has just ended.
            self.stage.installation.run(["stop"]).ok();
        }
        self.stage.installation.require(SUPERVISED).map(drop)
    }

    /// Kills at random moments, for one slice of load.
    fn disturb(&mut self, part: Part) -> Result<(), String> {
        let until = Instant::now() + part.slice(self.length);
        let mut worker_dies = Instant::now() + self.random.millis(1000, 10_000);
        let mut daemon_ends = Instant::now() + self.random.millis(500, 4000);
        while Instant::now() < until && !self.is_interrupted() {
            std::thread::sleep(BETWEEN_LOOKS);
            if Instant::now() >= worker_dies {
                self.kill_worker();
                worker_dies = Instant::now() + self.random.millis(3000, 15_000);
            }
            if part == Part::Endings && Instant::now() >= daemon_ends {
                match self.random.below(10) {
                    0 => {
                        self.stop();
                        self.start()?;
                    }
                    1 => self.restart(),
                    _ => self.kill_daemon()?,
                }
                daemon_ends = Instant::now() + self.random.millis(500, 4000);
            }
        }
        Ok(())
    }

    fn kill_worker(&mut self) {
        let workers = self.family().workers;
        if let Some(worker) = self.random.pick(&workers) {
            kill(worker.pid);
            self.stage.count("kills: worker");
        }
    }

    fn family(&self) -> Family {
        family(&self.stage.installation.home())
    }

    /// Kills the daemon. Its supervisor must bring another, which adopts what goes on in shims; mostly a client is quicker than that.
    fn kill_daemon(&mut self) -> Result<(), String> {
        let Some(daemon) = self.stage.installation.daemon() else { return self.start() };
        kill(daemon.pid);
        self.stage.count("kills: daemon");
        if self.random.chance(90) {
            // The supervisor may be quicker, and a client too.
            self.stage.installation.run(UNSUPERVISED).ok();
        }
        let is_back = || {
            let is_another = self.stage.installation.daemon().is_some_and(|now| now.pid != daemon.pid);
            is_another && Connection::open(&self.stage.installation).is_ok()
        };
        if within(COMES_BACK, is_back) {
            return Ok(());
        }
        self.stage.fault(format!("the daemon was killed, and is not back after {COMES_BACK:?}"));
        self.start()
    }

    /// Has the daemon begin anew. What runs goes on.
    fn restart(&self) {
        self.stage.check(self.stage.installation.require(["restart"]).map(drop));
        self.stage.count("restarts");
    }

    /// Stops the daemon and its supervisor in order. Nothing of theirs is left.
    fn stop(&self) {
        let Family { workers, shims, .. } = self.family();
        self.stage.check(self.stage.installation.require(["stop"]).map(drop));
        self.stage.count("stops in order");
        self.expect_end(&workers, "a worker outlives its daemon, which was stopped");
        self.expect_end(&shims, "a shim outlives its daemon, which was stopped");
        // A client on the command line may have started another meanwhile, whose they are.
        let installation = &self.stage.installation;
        let is_clean = || installation.sockets().is_empty() || installation.daemon().is_some();
        if !within(COMES_BACK, is_clean) {
            let left = installation.sockets();
            self.stage.fault(format!("after an orderly stop these sockets are left: {}", left.join(", ")));
        }
    }

    fn expect_end(&self, processes: &[Process], fault: &str) {
        let live = || processes.iter().filter(|process| process.lives());
        if !within(WORKERS_END, || live().next().is_none()) {
            let left: Vec<String> = live().map(|process| process.pid.to_string()).collect();
            self.stage.fault(format!("{fault}: {}", left.join(", ")));
            live().for_each(|process| kill(process.pid));
        }
    }

    /// Brings everything to rest, looks round, and notes what the daemon uses.
    fn rest(&mut self) {
        if !self.stage.load.close(COMES_TO_REST) {
            self.stage.fault(format!("clients do not come to rest: {}", self.stage.doing()));
        }
        match self.lay_down() {
            Ok(()) => {}
            Err(trouble) => self.stage.fault(format!("the sessions cannot be laid to rest: {trouble:?}")),
        }
        if !self.stage.following.close(COMES_TO_REST) {
            self.stage.fault("followers do not come to rest".to_owned());
        }
        let Some(daemon) = self.stage.installation.daemon() else {
            self.stage.fault("no daemon runs at a rest point".to_owned());
            return;
        };
        self.settle(daemon.pid);
        let Some(usage) = processes::usage(daemon.pid) else {
            self.stage.fault(format!("the daemon {} is gone at a rest point", daemon.pid));
            return;
        };
        self.rests.push(Rest { at: self.began.elapsed().as_secs(), daemon: daemon.pid, usage });
        self.look_round();
    }

    /// Waits for what the clients left under way, ends what does not end by itself, puts the sessions to rest, and lets the followers
    /// catch up.
    fn lay_down(&self) -> Result<(), Trouble> {
        let mut connection = Connection::open(&self.stage.installation)?;
        let until = Instant::now() + ENDS;
        loop {
            let status = connection.call("daemon/status", json!({}))?;
            let under_way = status["commands"].as_u64().unwrap_or_default();
            if under_way == 0 {
                break;
            }
            if Instant::now() > until {
                self.stage.fault(format!("{under_way} commands are still under way: {}", status["live"]));
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        for session in sessions(&connection.call("session/list", json!({ "live": true }))?) {
            connection.call("session/stop", json!({ "session": session }))?;
        }
        let ends = connection.call("session/list", json!({}))?;
        let behind = || {
            ends.as_array().into_iter().flatten().find(|view| {
                let session = view["session"].as_str().unwrap_or_default();
                held(self.cursors).of(session).0 < view["lastSeq"].as_u64().unwrap_or_default()
            })
        };
        if !within(CATCHES_UP, || behind().is_none()) {
            self.stage.fault(format!("who follows all sessions has not all events: {:?}", behind()));
        }
        Ok(())
    }

    /// Waits until what the load needed is given back: to the level of this daemon's first rest, or as long as that may take.
    fn settle(&self, daemon: u32) {
        within(SETTLES, || {
            let Family { workers, shims, .. } = self.family();
            self.is_interrupted() || workers.is_empty() && shims.is_empty()
        });
        let first = self.rests.iter().find(|rest| rest.daemon == daemon).map(|rest| rest.usage);
        within(SETTLES, || {
            let is_level = |now: processes::Usage| {
                first.is_some_and(|first| {
                    now.files <= first.files && now.threads <= first.threads && now.children == 0
                })
            };
            self.is_interrupted() || processes::usage(daemon).is_none_or(is_level)
        });
    }

    /// At rest no session has a worker, so nothing of one may be left.
    fn look_round(&self) {
        let Family { workers, shims, others } = self.family();
        for shim in shims {
            self.stage.fault(format!("the shim {} outlives its session", shim.pid));
            kill(shim.pid);
        }
        for worker in workers {
            self.stage.fault(format!("the worker {} outlives its session", worker.pid));
            kill(worker.pid);
        }
        for (process, command) in others {
            self.stage.fault(format!("the process {} (`{command}`) outlives what started it", process.pid));
            kill(process.pid);
        }
        let sockets = self.stage.installation.sockets();
        if sockets != ["daemon.sock"] {
            self.stage.fault(format!("at rest the folder of sockets holds {}", sockets.join(", ")));
        }
        let temporary = self.stage.installation.temporary_files();
        if !temporary.is_empty() {
            self.stage.fault(format!("at rest the temporary folder holds {}", temporary.join(", ")));
        }
    }

    /// Asks for everything that was acknowledged, and reads the whole log.
    fn reckon(&mut self) -> Reckoning {
        let mut never_arrived = 0;
        let mut transcript = Transcript::default();
        let asked = Connection::open(&self.stage.installation).and_then(|mut connection| {
            never_arrived = self.ask_again(&mut connection)?;
            self.read_all(&mut connection, &mut transcript)
        });
        if let Err(trouble) = asked {
            self.stage.fault(format!("the reckoning was cut off: {trouble:?}"));
        }
        let lost = transcript.lost(&held(&self.stage.story));
        let book = held(&self.stage.book);
        let (recalls, wrong) = transcript.recalled(&book);
        let commands = book.count();
        drop(book);
        lost.into_iter().chain(wrong).for_each(|fault| self.stage.fault(fault));
        let (rests, events) = (std::mem::take(&mut self.rests), transcript.events());
        Reckoning { rests, commands, never_arrived, recalls, events }
    }

    /// Sends every command again. Gives how many the daemon does not know: they never reached it.
    fn ask_again(&self, connection: &mut Connection) -> Result<usize, Trouble> {
        let ids = held(&self.stage.book).ids();
        let mut never_arrived = 0;
        for id in ids {
            let Some(sent) = held(&self.stage.book).get(&id).cloned() else { continue };
            let view = match connection.call("command/get", json!({ "command": id })) {
                Ok(view) => view,
                Err(Trouble::Refused { code, .. }) if code == "command_not_found" => {
                    if sent.answer.is_some() {
                        self.stage.fault(format!("`{id}` was answered, and is not known any more"));
                    }
                    never_arrived += 1;
                    continue;
                }
                Err(trouble) => return Err(trouble),
            };
            if view["state"] != "ended" {
                self.stage.fault(format!("`{id}` has no outcome at the end: {view}"));
                continue;
            }
            let stored = held(&self.stage.book).outcome(&id, &view["outcome"]);
            self.stage.check(stored);
            let again = match connection.call("session/eval", sent.params) {
                Ok(view) => held(&self.stage.book).answer(&id, Answer::of_eval(&view), Some(&view)),
                Err(Trouble::Refused { code, error }) => {
                    held(&self.stage.book).answer(&id, Answer::of_error(&code, &error), None)
                }
                Err(trouble) => return Err(trouble),
            };
            self.stage.check(again);
            self.stage.count("replays checked");
        }
        Ok(never_arrived)
    }

    fn read_all(&self, connection: &mut Connection, transcript: &mut Transcript) -> Result<(), Trouble> {
        loop {
            let after = transcript.position();
            let page = connection.call("log/events", json!({ "afterPosition": after, "limit": 1000 }))?;
            let Some(events) = page.as_array().filter(|events| !events.is_empty()) else { break };
            for event in events {
                let read = transcript.read(event, &mut held(&self.stage.story));
                self.stage.check(read);
            }
        }
        for command in transcript.accepted() {
            let view = connection.call("command/get", json!({ "command": command }))?;
            if view["state"] != "ended" {
                self.stage.fault(format!("`{command}` was accepted and has no outcome: {view}"));
            }
        }
        Ok(())
    }
}

fn sessions(list: &Value) -> Vec<String> {
    let views = list.as_array().into_iter().flatten();
    views.filter_map(|view| Some(view["session"].as_str()?.to_owned())).collect()
}

/// Whether something that nothing announces comes true in time.
fn within(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_in_the_middle_leaves_the_daemon_alone() {
        let length = Duration::from_secs(400);
        let parts = [0, 99, 100, 299, 300, 399].map(|second| Part::at(Duration::from_secs(second), length));
        use Part::{Endings, Steady};
        assert_eq!(parts, [Endings, Endings, Steady, Steady, Endings, Endings]);
    }
}

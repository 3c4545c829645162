//! Turns of the real pi with a scripted model, while daemons are killed: the model is asked once, and its answer is stored once.

use std::thread;
use std::time::{Duration, Instant};

use mainstay_test_support::model::{Step, call, say};
use serde_json::{Value, json};

use super::clients::Clients;
use super::daemons::Daemons;
use super::plan::{Plan, Random};
use crate::support::agents::Agents;

/// How many pieces an answer has, and how long the model waits after each.
const PIECES: u32 = 30;
const PAUSE: Duration = Duration::from_millis(8);
/// What a tool does: it counts in a file.
const TOOL: &str = "for n in $(seq 20); do echo $n >> counted; sleep 0.01; done";

/// A conversation with an agent.
pub(super) struct Conversation {
    daemons: Daemons,
    agents: Agents,
    session: String,
    pi: Value,
    last_seq: u64,
    turns: u64,
    lengths: [Option<Duration>; 2],
}

impl Conversation {
    pub(super) fn begin() -> Self {
        let agents = Agents::new();
        let mut daemons = Daemons::default();
        daemons.start(&agents.world, 1);
        let clients = Clients { world: &agents.world };
        let params = json!({ "command": "create", "kind": "pi", "name": "main", "workingDirectory": agents.world.work() });
        let session =
            clients.done("session/create", &params).unwrap()["session"].as_str().unwrap().to_owned();
        agents.model.will(say(&["Good day."]));
        let params = json!({ "session": session, "command": "greeting", "work": "turn", "prompt": { "text": "good day" } });
        let greeted = clients.done("session/work", &params).unwrap();
        assert_eq!(greeted["text"], "Good day.", "{greeted}");
        let view = clients.done("session/get", &json!({ "session": session })).unwrap();
        let (pi, last_seq) = (view["worker"]["pid"].clone(), view["lastSeq"].as_u64().unwrap());
        Self { daemons, agents, session, pi, last_seq, turns: 0, lengths: [None; 2] }
    }

    /// Has the agent answer while daemons are killed, and says what was done.
    pub(super) fn play(&mut self, seed: u64, random: &mut Random) -> Result<String, String> {
        let acts = random.below(3) == 0;
        let length = match self.lengths[usize::from(acts)] {
            Some(length) => length,
            None => {
                let began = Instant::now();
                self.turn(acts, &Plan::quiet()).map_err(|fault| format!("without a kill: {fault}"))?;
                *self.lengths[usize::from(acts)].insert(began.elapsed())
            }
        };
        let plan = Plan::of(random, length);
        self.turn(acts, &plan)
            .map(|()| format!("a turn, with a tool: {acts}, {plan:?}"))
            .map_err(|fault| format!("a turn with seed {seed}, with a tool: {acts}, {plan:?}: {fault}"))
    }

    fn turn(&mut self, acts: bool, plan: &Plan) -> Result<(), String> {
        self.turns += 1;
        let (asked, name) = (self.agents.model.asked(), format!("turn-{}", self.turns));
        let counted = self.agents.world.work().join("counted");
        std::fs::remove_file(&counted).ok();
        if acts {
            self.agents.model.will(call("act", "bash", &json!({ "command": TOOL })));
        }
        let pieces = (1..=PIECES).flat_map(|number| [Step::Text(format!("{number} ")), Step::Pause(PAUSE)]);
        self.agents.model.will(pieces.chain([Step::Finish("stop", 100)]).collect());
        let clients = Clients { world: &self.agents.world };
        let params = json!({ "session": self.session, "command": name, "work": "turn", "prompt": { "text": "count" } });
        let told = thread::scope(|scope| {
            let running = scope.spawn(|| clients.done("session/work", &params));
            self.daemons.suffer(&self.agents.world, plan);
            running.join().unwrap_or_else(|_| Err("the turn came to no end".to_owned()))
        });
        let events = clients.events(&self.session, self.last_seq)?;
        let checked = told.and_then(|view| {
            check(&view, &events, &name)?;
            match self.agents.model.asked() - asked {
                requests if requests == 1 + usize::from(acts) => {}
                requests => return Err(format!("the model was asked {requests} times")),
            }
            let counted = std::fs::read_to_string(&counted).unwrap_or_default();
            let should: String = (1..=20).filter(|_| acts).map(|number| format!("{number}\n")).collect();
            if counted == should { Ok(()) } else { Err(format!("its tool has counted {counted:?}")) }
        });
        let told = || events.iter().map(|event| format!("{event}\n")).collect::<String>();
        checked.map_err(|fault| format!("{fault}\n{}", told()))?;
        self.daemons.settle(&self.agents.world)?;
        let view = clients.done("session/get", &json!({ "session": self.session }))?;
        self.last_seq = view["lastSeq"].as_u64().unwrap();
        match view["worker"]["pid"] == self.pi {
            true => Ok(()),
            false => Err(format!("its process was {}, and is {}", self.pi, view["worker"]["pid"])),
        }
    }
}

/// Says what is wrong with the answer to a turn, or with its events.
fn check(view: &Value, events: &[Value], command: &str) -> Result<(), String> {
    let should: String = (1..=PIECES).map(|number| format!("{number} ")).collect();
    if view["ending"] != "done" || view["text"] != should.trim_end() && view["text"] != should {
        return Err(format!("the turn was answered {view}"));
    }
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["kind"] == kind);
    let begun = of_kind("jobRequested").filter(|event| event["body"]["command"] == command).count();
    let ended = of_kind("jobEnded").count();
    if (begun, ended) != (1, 1) {
        return Err(format!("it was begun {begun} times, and has ended {ended} times"));
    }
    let answers = of_kind("messageAdded").filter(|event| event.to_string().contains(&should)).count();
    if answers != 1 {
        return Err(format!("its answer is stored {answers} times"));
    }
    // Pieces that were not stored when the message came are not: the message has them.
    let last = of_kind("messageStreamed").next_back().map(|event| event["body"]["message"].clone());
    let mut streamed = String::new();
    for event in of_kind("messageStreamed").filter(|event| Some(&event["body"]["message"]) == last.as_ref()) {
        if event["body"]["offset"] != streamed.len() {
            return Err(format!("a piece of its answer does not follow upon {streamed:?}: {event}"));
        }
        streamed.push_str(event["body"]["text"].as_str().unwrap_or_default());
    }
    if should.starts_with(&streamed) {
        Ok(())
    } else {
        Err(format!("what it said piece by piece is {streamed:?}"))
    }
}

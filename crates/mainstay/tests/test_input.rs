//! Code that reads its input asks, and whoever is attached answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::process::Child;

use serde_json::Value;
use support::{Finished, Follower, World};

const READS_A_NAME: &str = "printf \"Name? \"\nlet name = stdin.ReadLine()";

/// Code that was begun, and the events since.
struct Begun {
    child: Child,
    events: Follower,
}

impl Begun {
    fn new(world: &World, code: &str) -> Self {
        let before = world.eval("let kept = 41");
        let child = world.start_eval(code);
        Self { child, events: world.follow(before["seq"].as_u64().unwrap()) }
    }

    /// What came of it.
    fn end(self) -> Value {
        serde_json::from_slice(&self.child.wait_with_output().unwrap().stdout).unwrap()
    }
}

/// The only ask that waits.
fn the_ask(world: &World) -> Value {
    let asks = world.run(["ask", "list", "--json"]).json();
    let [ask] = asks.as_array().unwrap().as_slice() else { panic!("{asks}") };
    ask.clone()
}

fn answer(world: &World, text: &str) -> Finished {
    let ask = the_ask(world);
    world.run(["ask", "answer", ask["shortId"].as_str().unwrap(), text])
}

#[test]
fn code_that_reads_a_line_waits_for_it() {
    let world = World::new();
    let mut begun = Begun::new(&world, READS_A_NAME);
    begun.events.wait_for("askRaised");
    let ask = the_ask(&world);
    assert_eq!(ask["prompt"], "Name?");
    let listed = world.run(["ask", "list", "--session", "work"]).stdout;
    assert_eq!(listed.lines().next(), Some(format!("{} Name?", ask["shortId"].as_str().unwrap()).as_str()));
    let answered = answer(&world, "Ada");
    assert_eq!((answered.code, answered.stderr.as_str()), (0, ""));
    let eval = begun.end();
    assert_eq!((&eval["ending"], &eval["stdout"]), (&"completed".into(), &"Name? ".into()), "{eval}");
    assert_eq!(world.eval("name")["value"], "\"Ada\"");
    assert_eq!(world.run(["ask", "list"]).stdout, "nothing waits for an answer\n");
}

#[test]
fn code_may_ask_again() {
    let world = World::new();
    let mut begun = Begun::new(&world, "(stdin.ReadLine(), System.Console.ReadLine())");
    for text in ["Ada", "36"] {
        begun.events.wait_for("askRaised");
        assert_eq!(answer(&world, text).code, 0);
    }
    assert_eq!(begun.end()["value"], "(\"Ada\", \"36\")");
}

#[test]
fn cancelling_code_that_waits_for_a_line_keeps_its_worker() {
    let world = World::new();
    // However slow the machine, the code has the time to yield.
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    let mut begun = Begun::new(&world, READS_A_NAME);
    let worker = world.worker_pid();
    begun.events.wait_for("askRaised");
    assert_eq!(world.run(["cancel"]).code, 0);
    assert_eq!(begun.events.wait_for("askEnded")["body"]["ending"], "cancelled");
    assert_eq!(begun.events.wait_for("evalCancelled")["body"]["ending"], "yielded");
    assert_eq!(begun.end()["ending"], "cancelled");
    assert_eq!(world.worker_pid(), worker);
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_eq!(world.eval("name")["ending"], "rejected");
}

#[test]
fn a_rebuilt_session_has_what_it_was_answered_and_does_not_ask_again() {
    let world = World::new();
    let mut begun = Begun::new(&world, READS_A_NAME);
    begun.events.wait_for("askRaised");
    answer(&world, "Ada");
    begun.end();
    world.kill_daemon();
    assert_eq!(world.eval("name")["value"], "\"Ada\"");
    let events = world.events();
    assert_eq!(events.iter().filter(|event| event["kind"] == "askRaised").count(), 1);
    let rebuilt = events.iter().rfind(|event| event["kind"] == "warmUpCompleted").unwrap();
    assert_eq!(rebuilt["body"]["replayed"], 2, "{rebuilt}");
    assert!(rebuilt["body"]["diverged"].is_null(), "{rebuilt}");
}

#[test]
fn where_nobody_answers_in_time_the_code_reads_the_end_of_its_input() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\nask-ms = 50\n").unwrap();
    assert_eq!(world.eval("isNull (stdin.ReadLine())")["value"], "true");
}

//! Kill what you like: what was acknowledged is there, and the session is as it was.

use crate::support;
use crate::support::{World, kill};
use serde_json::Value;

/// A session with two submissions that define, and with two that only looked, of which the last gave the present `it`.
fn defined(world: &World) {
    assert_eq!(world.eval("let mutable count = 0\nlet bump () = count <- count + 1")["success"], true);
    assert_eq!(world.eval("bump ()")["success"], true);
    assert_eq!(world.eval("count * 100")["value"], "100");
    assert_eq!(world.eval("1 + 1")["value"], "2");
}

fn is_gapless(events: &[Value]) -> bool {
    events.iter().enumerate().all(|(index, event)| event["seq"] == index as u64 + 1)
}

fn last_warm_up(events: &[Value]) -> &Value {
    events.iter().rev().find(|event| event["kind"] == "warmUpCompleted").unwrap()
}

#[test]
fn the_worker_killed_between_evals_is_replaced() {
    let world = World::new();
    defined(&world);
    let since = world.session()["lastSeq"].as_u64().unwrap();
    kill(world.worker_pid());
    world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(world.eval("count")["value"], "1");
    let events = world.events();
    assert!(is_gapless(&events));
    assert_eq!(last_warm_up(&events)["body"]["replayed"], 3);
}

#[test]
fn code_that_ends_its_worker_later_is_left_out_and_everyone_is_told() {
    let world = World::new();
    world.eval("let kept = 41");
    world.eval("let now = System.DateTime.UtcNow.Ticks");
    let haunts = world.eval(
        "let thread = System.Threading.Thread(fun () -> failwith \"too late\")\nlet start = System.Threading.Thread(fun () -> System.Threading.Thread.Sleep 100; thread.Start())\nstart.Start()",
    );
    assert_eq!(haunts["success"], true, "{haunts}");
    let mut events = world.follow(haunts["seq"].as_u64().unwrap());
    let lost = events.wait_for("workerExited");
    assert_eq!(lost["body"]["reason"], "System.Exception: too late");
    let rebuilt = events.wait_for("warmUpCompleted");
    assert_eq!(rebuilt["body"]["replayed"], 2, "{rebuilt}");
    let evals: Vec<u64> = world
        .events()
        .iter()
        .filter(|event| event["kind"] == "evalRequested")
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    let now = rebuilt["body"]["diverged"][1]["now"]["now"].as_str().unwrap();
    let told = format!(
        "the session was rebuilt and is not quite what it was: #{} was left out: it had ended a worker; #{} gave another `now` (now {now})\n",
        evals[2], evals[1]
    );
    let next = world.run(["eval", "kept + 1"]);
    assert_eq!((next.stdout.as_str(), next.stderr), ("val it: int = 42\n", told.clone()));
    assert_eq!(world.run(["eval", "kept + 2"]).stderr, "", "it is told once");
    assert!(world.run(["session", "show"]).stdout.contains(told.trim_end()));
}

#[test]
fn of_cancelled_code_what_had_run_survives_the_worker() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    let before = world.eval("let kept = 41");
    let running = world
        .start_eval("let part = 1;;\nprintfn \"begun\"\nSystem.Threading.Thread.Sleep -1;;\nlet never = 1");
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    events.wait_for("outputProduced");
    assert_eq!(world.run(["cancel"]).code, 0);
    running.wait_with_output().unwrap();
    assert_eq!(world.eval("kept + part")["value"], "42");
    support::kill(world.worker_pid());
    events.wait_for("warmUpCompleted");
    assert_eq!(world.eval("kept + part")["value"], "42");
    assert_eq!(world.eval("never")["ending"], "rejected");
}

#[test]
fn the_worker_killed_in_the_middle_of_an_eval_leaves_it_interrupted() {
    let world = World::new();
    defined(&world);
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let child = world.start_eval("printfn \"begun\"; System.Threading.Thread.Sleep -1");
    world.follow(since).wait_for("outputProduced");
    kill(world.worker_pid());
    let output = child.wait_with_output().unwrap();
    let eval: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&eval["ending"], &eval["stdout"]), (&"interrupted".into(), &"begun\n".into()));
    assert_eq!(world.eval("count")["value"], "1");
}

#[test]
fn a_machine_that_restarts_in_the_middle_of_an_eval_comes_back_with_everything() {
    let world = World::new();
    defined(&world);
    let before = world.events();
    let child = world.start_eval("printfn \"begun\"; System.Threading.Thread.Sleep -1");
    world.follow(before.len() as u64).wait_for("outputProduced");
    world.kill_everything();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));

    assert_eq!(world.eval("count")["value"], "1");
    let events = world.events();
    assert!(is_gapless(&events));
    assert_eq!(events[..before.len()], before, "what was acknowledged is there");
    assert!(events.iter().any(|event| event["kind"] == "evalInterrupted"));
    assert_eq!(last_warm_up(&events)["body"]["replayed"], 3);
    let story = world.run(["session", "show"]).stdout;
    assert!(story.contains("interrupted") && story.contains("the daemon was lost"), "{story}");
}

#[test]
fn daemon_and_worker_killed_together_come_back() {
    let world = World::new();
    defined(&world);
    let worker = world.worker_pid();
    let daemon = world.daemon_pid().unwrap();
    kill(worker);
    kill(daemon);
    let session = world.session()["session"].as_str().unwrap().to_owned();
    let eval = world.run(["eval", "--json", "--session", &session, "count"]).json();
    assert_eq!(eval["value"], "1");
}

#[test]
fn a_session_stopped_in_order_has_its_definitions_when_it_is_used_again() {
    let world = World::new();
    defined(&world);
    assert_eq!(world.run(["stop"]).code, 0);
    assert!(world.daemon_pid().is_none());
    assert_eq!(world.eval("count")["value"], "1");
}

#[test]
fn a_stream_of_evals_cut_by_restarts_of_the_machine_loses_nothing_acknowledged() {
    let world = World::new();
    cut_by(&world, World::kill_everything);
}

#[test]
fn a_stream_of_evals_under_which_daemons_are_killed_is_whole_in_one_worker() {
    let world = World::new();
    world.eval("0");
    let worker = world.worker_pid();
    cut_by(&world, World::kill_daemon);
    assert_eq!(world.worker_pid(), worker);
    assert_eq!(world.eval("log.Length")["value"], "12");
}

/// Runs evals that each append to a list, and has this done to the world in the midst of them.
fn cut_by(world: &World, cut: impl Fn(&World)) {
    let before = world.run(["events", "--json"]).stdout.matches("\"evalCompleted\"").count();
    assert_eq!(world.eval("let mutable log : int list = []")["success"], true);
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let mut children: Vec<_> =
            (0..4).map(|n| world.start_eval(&format!("log <- {} :: log", round * 10 + n))).collect();
        let first = children.remove(0).wait_with_output().unwrap();
        acknowledged.push(first);
        cut(world);
        acknowledged.extend(children.into_iter().map(|child| child.wait_with_output().unwrap()));
    }
    let length = world.eval("log.Length")["value"].as_str().unwrap().parse::<usize>().unwrap();
    let events = world.events();
    assert!(is_gapless(&events));
    for output in acknowledged.iter().filter(|output| output.status.success()) {
        let eval: Value = serde_json::from_slice(&output.stdout).unwrap();
        let seq = eval["seq"].as_u64().unwrap() as usize;
        assert_eq!(events[seq - 1]["kind"], "evalCompleted", "{eval}");
    }
    let completed = events.iter().filter(|event| event["kind"] == "evalCompleted").count();
    assert_eq!(length, completed - before - 2, "every completed append and nothing else is in it");
}

#[test]
fn a_definition_that_used_the_last_value_has_it_again() {
    let world = World::new();
    assert_eq!(world.eval("40 + 2")["value"], "42");
    assert_eq!(world.eval("let kept = it")["success"], true);
    assert_eq!(world.eval("1 + 1")["value"], "2");
    let since = world.session()["lastSeq"].as_u64().unwrap();
    kill(world.worker_pid());
    world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(world.eval("it")["value"], "2", "and the last value is the last value again");
    assert_eq!(world.eval("kept")["value"], "42");
}

#[test]
fn what_only_seems_to_look_is_run_again() {
    let world = World::new();
    let definitions = "let said = ResizeArray<string>()\nlet log (m: string) = said.Add m\nlet set k = said.Add k\n\
        type Counter() =\n  let mutable n = 0\n  member _.Next = n <- n + 1; n\nlet c = Counter()\n\
        let (|Counted|) (_: int) = c.Next";
    assert_eq!(world.eval(definitions)["success"], true);
    for code in [
        "log \"hello\"",
        "set \"k\"",
        "c.Next",
        "printfn \"%d\" c.Next",
        "match 3 with Counted n -> n",
        "seq { yield c.Next }",
    ] {
        assert_eq!(world.eval(code)["success"], true, "{code}");
    }
    let look = "said.Count, c.Next";
    let before = world.eval(look)["value"].clone();
    let since = world.session()["lastSeq"].as_u64().unwrap();
    kill(world.worker_pid());
    let rebuilt = world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(rebuilt["body"]["replayed"], 8, "{rebuilt}");
    let next = |text: &serde_json::Value| {
        text.as_str()
            .unwrap()
            .trim_matches(['(', ')'])
            .split(", ")
            .map(|n| n.parse::<u32>().unwrap())
            .collect::<Vec<_>>()
    };
    let (before, after) = (next(&before), next(&world.eval(look)["value"]));
    assert_eq!((after[0], after[1]), (before[0], before[1] + 1));
}

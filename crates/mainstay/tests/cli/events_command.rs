//! Tests of `mainstay events`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support;
use crate::support::World;

/// The story as it is told, from the event after `since`.
fn follow(world: &World, since: u64) -> (std::process::Child, impl Iterator<Item = String> + use<>) {
    let mut child = world
        .command()
        .args(["events", "--follow", "--since", &since.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let rows = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, rows.map(|row| row.unwrap().split_once("Z  ").unwrap().1.to_owned()))
}

#[test]
fn a_line_that_does_not_end_is_told_while_its_code_runs() {
    let world = World::scripted();
    let seq = world.eval("1")["seq"].as_u64().unwrap();
    let (mut following, mut rows) = follow(&world, seq);
    let running = world.start_eval("printf \"working...\"; System.Threading.Thread.Sleep -1");
    assert!(rows.any(|row| row == "worker    printed working..."));
    assert_eq!(world.session()["state"], "Evaluating");
    support::interrupt(&following);
    assert_eq!(following.wait().unwrap().code(), Some(130));
    world.run(["cancel"]);
    running.wait_with_output().unwrap();
}

#[test]
fn events_come_from_a_cursor_and_then_live() {
    let world = World::scripted();
    let first = world.eval("1");
    let seq = first["seq"].as_u64().unwrap();
    let mut follower = world.follow(seq);
    world.eval("printfn \"x\"");
    assert_eq!(follower.wait_until(|_| true)["seq"], seq + 1);
    assert_eq!(follower.wait_for("outputProduced")["body"]["text"], "x\n");
    assert_eq!(follower.wait_for("evalCompleted")["seq"], seq + 3);
    let since = world.run(["events", "--json", "--since", &(seq + 2).to_string()]);
    assert_eq!(since.stdout.lines().count(), 1, "{since:?}");
}

#[test]
fn every_event_of_an_eval_belongs_to_its_command() {
    let world = World::scripted();
    let eval = world.eval("printfn \"x\"");
    let events = world.events();
    let own: Vec<&str> = events
        .iter()
        .filter(|event| event["correlation"] == eval["command"])
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(own, ["evalRequested", "outputProduced", "evalCompleted"]);
    assert_eq!(events.last().unwrap()["causation"], eval["seq"].as_u64().unwrap() - 2);
}

/// What these arguments show, in JSON.
fn chosen(world: &World, arguments: &[&str]) -> Vec<serde_json::Value> {
    let finished = world.run([&["events", "--json"], arguments].concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_chosen_by_kind_source_and_command() {
    let world = World::scripted();
    let first = world.eval("printfn \"x\"");
    let second = world.eval("printfn \"y\"");
    let (first, second) = (first["command"].as_str().unwrap(), second["command"].as_str().unwrap());
    let texts = |events: Vec<serde_json::Value>| -> Vec<String> {
        events.iter().map(|event| event["body"]["text"].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(texts(chosen(&world, &["--kind", "outputProduced"])), ["x\n", "y\n"]);
    assert_eq!(texts(chosen(&world, &["--kind", "outputProduced", "--command", second])), ["y\n"]);
    assert_eq!(chosen(&world, &["--command", first, "--source", "worker"]).len(), 2);
    let failed_or_asked = ["--kind", "evalFailed", "--kind", "evalRequested", "--source", "cli"];
    assert_eq!(chosen(&world, &failed_or_asked).len(), 2);
    assert_eq!(chosen(&world, &["--source", "nobody"]).len(), 0);
    let refused = world.run(["events", "--kind", "evalDone"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("evalCompleted"), "{refused:?}");
}

#[test]
fn all_sessions_are_followed_in_the_order_of_the_log() {
    let world = World::scripted();
    world.eval("1");
    let other = world.run(["session", "new", "--name", "other", "--json"]).json();
    let seen = chosen(&world, &["--all"]);
    let positions: Vec<u64> = seen.iter().map(|event| event["position"].as_u64().unwrap()).collect();
    assert!(positions.is_sorted_by(|before, after| before < after), "{positions:?}");
    let of_other = seen.iter().find(|event| event["session"] == other["session"]).unwrap();
    assert_eq!(of_other["kind"], "sessionCreated");
    let since = of_other["position"].to_string();
    let mut child = world
        .command()
        .args(["events", "--all", "--follow", "--json", "--kind", "evalCompleted", "--since", &since])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    world.run(["eval", "--session", "other", "2"]);
    let first = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["kind"], &first["session"]), (&"evalCompleted".into(), &other["session"]));
    support::interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(world.run(["events", "--all", "--session", "other"]).code, 2);
}

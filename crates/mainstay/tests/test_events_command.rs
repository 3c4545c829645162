//! `mainstay events`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::World;

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
    let world = World::new();
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
    let world = World::new();
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
    let world = World::new();
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

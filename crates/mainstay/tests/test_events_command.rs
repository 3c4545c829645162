//! `mainstay events`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use support::World;

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

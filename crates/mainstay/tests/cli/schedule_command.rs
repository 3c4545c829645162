//! `mainstay schedule`: runs over a daemon that is killed, and what is told of them.

use serde_json::Value;

use crate::support::World;

/// The schedules there are, by their names.
fn listed(world: &World) -> Vec<Value> {
    world.run(["schedule", "list", "--json"]).json().as_array().unwrap().clone()
}

/// How often this code was begun.
fn runs(world: &World, code: &str) -> usize {
    let events = world.events();
    let begins = |event: &&Value| event["kind"] == "evalRequested" && event["body"]["code"] == code;
    events.iter().filter(begins).count()
}

#[test]
fn runs_come_once_each_over_kills_of_the_daemon_and_missed_ones_by_policy() {
    let world = World::scripted();
    std::fs::write(world.home().join("config.toml"), "[limits]\nschedule-interval-ms = 1000\n").unwrap();
    assert_eq!(world.run(["-d"]).code, 0);
    assert_eq!(world.run(["session", "new", "--name", "lab"]).code, 0);
    let often = ["schedule", "add", "lab", "1 + 1", "--every", "FREQ=SECONDLY;COUNT=6", "--name", "often"];
    assert_eq!(world.run([&often[..], &["--missed", "6"]].concat()).code, 0);
    while !listed(&world).iter().all(|schedule| schedule["next"].is_null()) {
        world.kill_daemon();
        assert_eq!(world.run(["-d"]).code, 0);
    }
    while listed(&world).iter().any(|schedule| schedule.get("underWay").is_some()) {}
    let [often] = listed(&world).try_into().unwrap();
    assert_eq!((&often["passed"], &often["leftOut"]), (&Value::from(6), &Value::from(0)));
    assert_eq!(runs(&world, "1 + 1"), 6);
    assert_eq!(world.run(["schedule", "remove", "often"]).code, 0);
    let again = world.run(["schedule", "remove", "often"]);
    assert_ne!(again.code, 0);
    assert!(again.stderr.contains("you have none that is named `often`"), "{}", again.stderr);
    assert_eq!(listed(&world), Vec::<Value>::new());
}

#[test]
fn what_is_no_rule_is_refused_with_what_there_is() {
    let world = World::scripted();
    assert_eq!(world.run(["-d"]).code, 0);
    assert_eq!(world.run(["session", "new", "--name", "lab"]).code, 0);
    let refused = world.run(["schedule", "add", "lab", "1", "--every", "FREQ=MONTHLY"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("SECONDLY, MINUTELY, HOURLY, DAILY or WEEKLY"), "{}", refused.stderr);
}

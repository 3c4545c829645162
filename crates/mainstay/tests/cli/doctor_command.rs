//! The examination of a store, as people and scripts see it.

use crate::support::{Finished, World};
use rusqlite::Connection;

/// A world whose daemon made a session, and has stopped. No kernel is needed for that.
fn stopped() -> World {
    let world = World::scripted();
    let created = world.run(["session", "new", "--name", "kept"]);
    assert_eq!(created.code, 0, "{created:?}");
    assert_eq!(world.run(["stop"]).code, 0);
    world
}

/// What it says, without what differs from run to run.
fn shown(finished: &Finished) -> String {
    let session = finished.stdout.split("session ").nth(1).and_then(|rest| rest.get(..36));
    let text = match session.filter(|id| id.matches('-').count() == 4) {
        Some(id) => finished.stdout.replace(id, "ID"),
        None => finished.stdout.clone(),
    };
    text.lines().filter(|line| !line.contains(" can be read; ")).map(|line| format!("{line}\n")).collect()
}

fn change(world: &World, sql: &str) {
    Connection::open(world.home().join("store/mainstay.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn where_there_is_no_store_it_says_so() {
    let world = World::new();
    let finished = world.run(["doctor"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (0, ""));
    assert!(finished.stderr.starts_with("there is no store in "), "{finished:?}");
    assert_eq!(world.run(["doctor", "--json"]).json()["sound"], true);
}

#[test]
fn a_sound_store_is_sound_also_while_the_daemon_runs() {
    let world = stopped();
    let finished = world.run(["doctor"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(finished.stdout.starts_with("1 session, ") && finished.stdout.ends_with("the store is sound\n"));

    assert_eq!(world.run(["-d"]).code, 0);
    let report = world.run(["doctor", "--json"]).json();
    assert_eq!((&report["sound"], &report["store"]["inUse"]), (&true.into(), &true.into()));
    assert!(world.run(["doctor"]).stdout.contains("A daemon has the store open"));
}

#[test]
fn a_damage_is_named_with_what_is_lost_and_what_to_do() {
    let world = stopped();
    change(&world, "UPDATE event SET body = '{' WHERE seq = 1");
    let finished = world.run(["doctor"]);
    assert_eq!(finished.code, 1);
    insta::assert_snapshot!(shown(&finished), @"
    damage: event 1 of session ID cannot be read: missing field `kind` at line 1 column 34
      lost: what these events say; a session cannot be replayed over them
      next: Keep a copy of the `store` folder, and restore it from a backup; check the disk.
    the store is damaged in 1 place
    ");
    let report = world.run(["doctor", "--json"]);
    assert_eq!(report.code, 1);
    let (report, finding) = (report.json(), report.json()["findings"][0].clone());
    assert_eq!(report["sound"], false);
    assert_eq!(
        (&finding["kind"], &finding["seq"], &finding["weight"]),
        (&"eventUnreadable".into(), &1.into(), &"damage".into())
    );
    assert!(finding["nextStep"].as_str().unwrap().contains("backup"), "{finding}");
}

#[test]
fn a_newer_store_is_refused() {
    let world = stopped();
    change(&world, "PRAGMA user_version = 1000");
    let finished = world.run(["doctor"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("[store_newer]"), "{finished:?}");
}

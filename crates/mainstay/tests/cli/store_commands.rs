//! Deleting sessions, collecting what they left, backups and archives.

use crate::support::{Finished, World};

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

/// Runs code in a session; it must succeed.
fn eval(world: &World, session: &str, code: &str) -> String {
    let evaluated = ok(world.run(["eval", "--json", "--session", session, code]));
    evaluated.json()["value"].as_str().unwrap_or_default().to_owned()
}

/// A session that has said two things.
fn lab(world: &World) {
    ok(world.run(["session", "new", "--name", "lab"]));
    eval(world, "lab", "let kept = 20");
    eval(world, "lab", "let rest = \"a word that nobody else says: xylophone\"");
}

#[test]
fn a_deleted_session_is_gone_and_its_forks_are_whole() {
    let world = World::scripted();
    lab(&world);
    ok(world.run(["session", "fork", "lab", "--at", "2", "--name", "idea"]));
    let refused = world.run(["session", "delete", "lab"]);
    assert_eq!(refused.code, 1, "nobody can be asked: {refused:?}");
    let id = world.run(["session", "show", "lab", "--json"]).json()["session"].as_str().unwrap().to_owned();
    let delete = ["session", "delete", &id, "--yes", "--id", "once"];
    let deleted = ok(world.run(delete));
    assert!(deleted.stdout.ends_with("deleted\n"), "{deleted:?}");
    assert_eq!(ok(world.run(delete)).stdout, deleted.stdout, "sent again it is answered again");
    assert_eq!(world.run(["session", "show", "lab"]).code, 1);
    assert_eq!(world.run(["search", "xylophone"]).code, 1);
    let found = ok(world.run(["search", "kept", "--role", "input", "--json"])).json();
    assert_eq!(found[0]["name"], "idea", "what came to be in it is found where it is still");

    let before = ok(world.run(["session", "stats", "--json"])).json();
    assert_eq!((&before["sessions"], &before["deleted"]), (&1.into(), &1.into()));
    let collected = ok(world.run(["gc", "--json"])).json();
    assert_eq!(collected["entries"], 2, "{collected}");
    assert_eq!(ok(world.run(["gc"])).stdout, "there was nothing to collect\n");
    ok(world.run(["stop"]));
    assert_eq!(eval(&world, "idea", "kept + 1"), "21");
    let lineage = ok(world.run(["session", "lineage", "idea"])).stdout;
    assert!(lineage.contains("lab") && lineage.contains("deleted"), "{lineage}");
    let doctor = world.run(["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let stats = ok(world.run(["session", "stats", "idea"])).stdout;
    assert!(stats.contains("2 of sessions it comes from"), "{stats}");
}

#[test]
fn a_backup_is_made_while_all_goes_on_and_brings_it_all_back() {
    let world = World::scripted();
    lab(&world);
    let made = ok(world.run(["backup", "monday"]));
    assert!(made.stdout.starts_with("1 session and"), "{made:?}");
    assert_eq!(world.run(["backup", "monday"]).code, 1, "it is written over by nobody");
    eval(&world, "lab", "let kept = 0");
    let refused = world.run(["restore", "monday", "--yes"]);
    assert_eq!(refused.code, 1, "the daemon has the store: {refused:?}");
    ok(world.run(["stop"]));
    let restored = ok(world.run(["restore", "monday", "--yes"]));
    assert!(restored.stderr.contains("what was stored is in"), "{restored:?}");
    assert_eq!(eval(&world, "lab", "kept + 1"), "21");
}

#[test]
fn old_sessions_become_files_and_are_deleted() {
    let world = World::scripted();
    lab(&world);
    ok(world.run(["session", "new", "--name", "live"]));
    ok(world.run(["session", "stop", "lab"]));
    assert_eq!(ok(world.run(["prune", "--older-than", "1d"])).stdout, "");
    let dry = ok(world.run(["prune", "--older-than", "0s", "--dry-run"]));
    assert!(dry.stdout.contains("lab") && !dry.stdout.contains("live"), "{dry:?}");
    let pruned = ok(world.run(["prune", "--older-than", "0s", "--archive", "old", "--yes", "--json"])).json();
    let file = pruned["sessions"][0]["file"].as_str().unwrap();
    assert_eq!(pruned["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(pruned["collected"]["entries"], 4, "{pruned}");
    assert_eq!(world.run(["session", "show", "lab"]).code, 1);
    ok(world.run(["import", file]));
    assert_eq!(eval(&world, "lab", "kept + 1"), "21");
}

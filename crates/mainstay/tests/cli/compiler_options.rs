//! Options of the F# compiler that a session is given when it is created, and keeps.

use crate::support::World;
use serde_json::Value;

/// Which of the two symbols are defined where this runs.
const DEFINED: &str = "let defined = [\n#if FIRST\n  1\n#endif\n#if SECOND\n  2\n#endif\n  ];;\ndefined";

fn defined(world: &World, session: &str) -> Value {
    world.run(["eval", "--json", "--session", session, DEFINED]).json()["value"].clone()
}

#[test]
fn options_of_the_settings_and_of_its_creator_outlive_a_sessions_workers_and_go_to_its_forks() {
    let world = World::new();
    let settings = |options: &str| {
        let text = format!("[fsharp]\nfsi-args = \"{options}\"\n");
        std::fs::write(world.home().join("config.toml"), text).unwrap();
    };
    settings("--define:FIRST");
    let created = world.run(["session", "new", "--name", "lab", "--fsi-args=--define:SECOND --nowarn:25"]);
    assert_eq!(created.code, 0, "{created:?}");
    assert_eq!(defined(&world, "lab"), "[1; 2]");
    settings("");
    world.kill_everything();
    assert_eq!(defined(&world, "lab"), "[1; 2]");
    assert_eq!(world.run(["session", "fork", "lab", "--name", "fork"]).code, 0);
    assert_eq!(defined(&world, "fork"), "[1; 2]");
}

#[test]
fn what_is_no_option_of_a_session_is_refused_with_what_is_taken() {
    let world = World::scripted();
    let refused = world.run(["session", "new", "--fsi-args", "--exec"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("`--exec` cannot be given to a session; these can: --define:NAME"),
        "{refused:?}"
    );
}

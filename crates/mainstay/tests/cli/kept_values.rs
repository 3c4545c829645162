//! A Python session whose machine restarts has its values again, and its cells do not run again.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::support::{World, within};

const PATIENCE: Duration = Duration::from_secs(60);

fn eval(world: &World, code: &str) -> Value {
    let eval = world.run(["eval", "--json", "--kind", "python3", code]).json();
    assert_eq!(eval["success"], true, "{eval}");
    eval
}

/// Waits until the values that the last cell gave are kept.
fn kept(world: &World) {
    let id = world.session()["session"].as_str().unwrap().to_owned();
    let events = world.events();
    let last = events.iter().rfind(|event| event["kind"] == "evalRequested").unwrap();
    let job = last["body"]["job"].as_str().unwrap();
    let contents = world.home().join("snapshots").join(id).join("snapshot.json");
    assert!(within(PATIENCE, || fs::read_to_string(&contents).is_ok_and(|text| text.contains(job))));
}

/// A cell that leaves a line in a file each time it runs.
fn with_effect(world: &World, code: &str) -> String {
    let file = world.work().join("ran");
    format!("with open({:?}, 'a') as file: file.write('ran\\n')\n{code}", file.display().to_string())
}

fn times_ran(world: &World) -> usize {
    fs::read_to_string(world.work().join("ran")).unwrap().lines().count()
}

#[test]
fn values_survive_the_machine_and_cells_with_effects_do_not_run_again() {
    let world = World::with_jupyter();
    eval(&world, "import numpy as np\nimport sqlite3");
    eval(&world, &with_effect(&world, "table = np.arange(6.); rows = [table[1:3]]\ndel file"));
    eval(&world, "db = sqlite3.connect(':memory:')");
    kept(&world);
    world.kill_everything();

    assert_eq!(eval(&world, "table[1] = 9; float(rows[0][0])")["value"], "9.0");
    assert_eq!(eval(&world, "type(db).__name__")["value"], "'Connection'");
    assert_eq!(times_ran(&world), 1);
    let events = world.events();
    let rebuilt = events.iter().rfind(|event| event["kind"] == "warmUpCompleted").unwrap();
    assert_eq!(
        (&rebuilt["body"]["replayed"], &rebuilt["body"]["restored"]["submissions"]),
        (&2.into(), &1.into())
    );
    let story = world.run(["session", "show"]).stdout;
    assert!(
        story.contains("2 replayed, 1 restored by the values of 2 names; `db` was not kept: "),
        "{story}"
    );

    // What changed since then is kept too.
    kept(&world);
    world.kill_everything();
    assert_eq!(eval(&world, "float(rows[0][0])")["value"], "9.0");
    assert_eq!(times_ran(&world), 1);
}

#[test]
fn what_is_of_no_use_is_replayed_and_said() {
    let world = World::with_jupyter();
    eval(&world, &with_effect(&world, "value = 41\ndel file"));
    kept(&world);
    for file in fs::read_dir(world.home().join("snapshots")).unwrap().flat_map(|folder| {
        fs::read_dir(folder.unwrap().path()).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>()
    }) {
        if file.file_name().is_some_and(|name| name != "snapshot.json" && name != "lock") {
            fs::write(file, "damaged").unwrap();
        }
    }
    world.kill_everything();
    assert_eq!(eval(&world, "value + 1")["value"], "42");
    assert_eq!(times_ran(&world), 2, "it was replayed");
    let story = world.run(["session", "show"]).stdout;
    assert!(story.contains("since the values that were kept are of no use: "), "{story}");
}

#[test]
fn a_refresh_drops_what_was_kept() {
    let world = World::with_jupyter();
    fs::write(world.work().join("number"), "1").unwrap();
    eval(&world, "value = int(open('number').read())");
    kept(&world);
    fs::write(world.work().join("number"), "2").unwrap();
    assert_eq!(world.run(["session", "refresh", "--all"]).code, 0);
    assert_eq!(eval(&world, "value")["value"], "2");
    world.kill_everything();
    assert_eq!(eval(&world, "value")["value"], "2");
}

#[test]
fn nothing_is_kept_where_that_is_off_and_a_reset_drops_what_was() {
    let world = World::with_jupyter();
    eval(&world, "value = 41");
    kept(&world);
    assert_eq!(world.run(["session", "reset"]).code, 0);
    assert_eq!(fs::read_dir(world.home().join("snapshots")).unwrap().count(), 0);
    let world = World::with_jupyter();
    fs::write(world.home().join("config.toml"), "[limits]\nsnapshot-bytes = 0\n").unwrap();
    eval(&world, &with_effect(&world, "value = 41"));
    world.kill_everything();
    assert_eq!(eval(&world, "value + 1")["value"], "42");
    assert_eq!(times_ran(&world), 2, "it was replayed");
    assert!(!world.home().join("snapshots").exists());
}

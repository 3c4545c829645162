//! Tests of `mainstay agent list` and `install`.

use std::fs;

use crate::support;
use crate::support::{Finished, World};

/// Runs a command where nothing is to be found on the `PATH`.
fn without_path(world: &World, arguments: &[&str]) -> Finished {
    let output = world.command().env("PATH", "/nonexistent").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(world.home().to_str().unwrap(), "HOME");
    Finished { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn the_agent_that_is_there_is_listed_with_its_version_and_where_it_is_from() {
    let world = World::new();
    let pi = support::pi();
    fs::write(world.home().join("config.toml"), format!("[pi]\npath = {pi:?}\n")).unwrap();
    let list = without_path(&world, &["agent", "list"]);
    assert_eq!((list.code, list.stdout), (0, format!("pi  0.73.1  configuration  {}\n", pi.display())));
    let list = world.run(["agent", "list", "--json"]).json();
    assert_eq!((&list[0]["version"], &list[0]["origin"]), (&"0.73.1".into(), &"configuration".into()));
}

#[test]
fn where_none_is_there_the_list_fails_and_says_what_to_do() {
    let world = World::new();
    let list = without_path(&world, &["agent", "list"]);
    assert_eq!((list.code, list.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(list.stderr, @"pi was not found; run `mainstay agent install pi`");
    fs::write(world.home().join("config.toml"), "[pi]\npath = '/nonexistent/pi'\n").unwrap();
    insta::assert_snapshot!(without_path(&world, &["agent", "list"]).stderr, @"the configured pi /nonexistent/pi is not there; correct `path` in `[pi]`, or remove it to have pi found");
}

#[test]
fn installing_asks_first_wants_npm_and_knows_its_agents() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["agent", "install", "pi"]).stderr, @"
    error: --yes is not valid: it must be given where there is no terminal to ask on [invalid_argument]
      Correct it and try again.
    ");
    insta::assert_snapshot!(without_path(&world, &["agent", "install", "pi", "--yes"]).stderr, @"
    error: the kernel cannot be started: npm is not on the PATH; it comes with Node.js (20 or newer), which pi needs [kernel_unavailable]
      `mainstay kernel doctor KIND` says what is missing; `mainstay kernel install fsharp` and `mainstay kernel install python` install what such sessions need.
    ");
    assert!(world.run(["agent", "install", "hal", "--yes"]).stderr.contains("[kernel_unknown]"));
}

//! A session's code finds what the session's creator has in its environment, whoever started the daemon, and nobody else finds it.

use std::os::unix::fs::PermissionsExt;

use crate::support::World;
use crate::support::bridged::Bridged;
use serde_json::Value;

const SECRET: &str = "dont-look-4711";

/// Runs code as a client with this in its environment; gives what `--json` prints.
fn eval_with(world: &World, variables: &[(&str, &str)], code: &str) -> Value {
    let mut command = world.command();
    command.args(["eval", "--json", code]).envs(variables.iter().copied());
    let output = command.output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Code that says something of a variable, and not its value.
const LENGTH: &str = "(string (System.Environment.GetEnvironmentVariable \"PROJECT_SECRET\")).Length";

#[test]
fn a_session_has_its_creators_environment_and_keeps_it() {
    let world = World::scripted();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let created = eval_with(&world, &[("PROJECT_SECRET", SECRET)], LENGTH);
    assert_eq!(created["value"], SECRET.len().to_string(), "{created}");
    let others = eval_with(&world, &[("PROJECT_SECRET", "other")], LENGTH);
    assert_eq!(others["value"], SECRET.len().to_string(), "it is its creator's: {others}");

    world.kill_everything();
    let rebuilt = eval_with(&world, &[], LENGTH);
    assert_eq!(rebuilt["value"], SECRET.len().to_string(), "{rebuilt}");

    let id = world.session()["session"].as_str().unwrap().to_owned();
    let kept = world.home().join(format!("environments/{id}.json"));
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(world.files_with(SECRET), std::slice::from_ref(&kept), "nothing else holds it");
    let exported = world.run(["export", &id]);
    assert!(exported.code == 0 && !exported.stdout.contains(SECRET), "{exported:?}");

    let deleted = world.run(["session", "delete", &id, "--yes"]);
    assert_eq!(deleted.code, 0, "{deleted:?}");
    assert!(!kept.exists());
}

#[test]
fn an_agents_session_has_what_its_bridge_was_started_with() {
    let world = World::scripted();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut command = world.command();
    command.arg("mcp").env("PROJECT_SECRET", SECRET);
    let mut client = Bridged::started(command);
    client.introduce();
    let (is_failure, text) = client.eval(LENGTH);
    assert!(!is_failure && text.contains(&SECRET.len().to_string()), "{text}");
}

#[test]
fn a_kernel_is_found_where_its_sessions_creator_has_it() {
    let world = World::with_jupyter();
    let started = world.command().args(["-d", "--port", "0"]).env_remove("JUPYTER_PATH").output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let made = world.run(["session", "new", "--kind", "python"]);
    assert_eq!(made.code, 0, "{made:?}");
    let code = "import os; len(os.environ['PROJECT_SECRET'])";
    let none = world.eval(code);
    assert_eq!(none["success"], false, "{none}");
    let mut other = world.command();
    other.args(["session", "new", "--kind", "python"]).env("PROJECT_SECRET", SECRET);
    assert!(other.output().unwrap().status.success());
    assert_eq!(world.eval(code)["value"], SECRET.len().to_string());
}

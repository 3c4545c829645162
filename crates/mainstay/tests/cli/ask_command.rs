//! Asking whoever is attached, and answering: from other programs, across a lost daemon, and as a principal of one's own.

use std::process::{Child, Stdio};

use crate::support::{Finished, World};
use serde_json::Value;

/// A world with a session.
fn world() -> World {
    let world = World::scripted();
    assert_eq!(world.run(["session", "new", "--name", "asked"]).code, 0);
    world
}

/// Raises an ask in the background; comes back once it waits.
fn raise(world: &World, arguments: &[&str]) -> Child {
    let child = world
        .command()
        .args(["ask", "raise"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    world.follow(0).wait_for("askRaised");
    child
}

/// The asks that wait.
fn waiting(world: &World) -> Vec<Value> {
    let listed = world.run(["ask", "list", "--json"]);
    serde_json::from_str(&listed.stdout).unwrap()
}

fn short(ask: &Value) -> String {
    ask["shortId"].as_str().unwrap().to_owned()
}

fn printed(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_ask_waits_until_someone_answers_what_it_wants() {
    let world = world();
    let asking = raise(&world, &["--choice", "blue", "--choice", "green", "Which one?"]);
    let asks = waiting(&world);
    assert_eq!((asks.len(), &asks[0]["prompt"]), (1, &Value::from("Which one?")));
    let ask = short(&asks[0]);
    let listed = world.run(["ask", "list"]).stdout;
    assert!(listed.starts_with(&format!("{ask} Which one? (blue, green)\n")), "{listed}");
    let refused = world.run(["ask", "answer", &ask, "red"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[answer_invalid]"), "{}", refused.stderr);
    assert_eq!(world.run(["ask", "answer", &ask, "green"]).code, 0);
    assert_eq!(printed(asking), (0, "green\n".to_owned()));
    let late = world.run(["ask", "answer", &ask, "blue"]);
    assert!(late.stderr.contains("[ask_not_pending]"), "{}", late.stderr);
    insta::assert_snapshot!(world.run(["ask", "list"]).stdout, @"nothing waits for an answer");
}

#[test]
fn an_ask_outlives_who_asked_and_the_daemon() {
    let world = world();
    let mut asking = raise(&world, &["--yes-no", "--id", "deploy", "Deploy?"]);
    asking.kill().unwrap();
    asking.wait().unwrap();
    world.kill_daemon();
    assert_eq!(world.run(["-d"]).code, 0);
    let ask = short(&waiting(&world)[0]);
    let status = world.run(["status"]).stdout;
    assert!(status.contains("1 asks wait for an answer"), "{status}");
    assert_eq!(world.run(["ask", "answer", &ask, "yes"]).code, 0);
    let again = world.run(["ask", "raise", "--yes-no", "--id", "deploy", "Deploy?"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "true\n"));
}

#[test]
fn who_waits_for_an_answer_gets_it_from_the_next_daemon() {
    let world = world();
    let asking = raise(&world, &["Name?"]);
    world.kill_daemon();
    assert_eq!(world.run(["-d"]).code, 0);
    let ask = short(&waiting(&world)[0]);
    assert_eq!(world.run(["ask", "answer", &ask, "Ada"]).code, 0);
    assert_eq!(printed(asking), (0, "Ada\n".to_owned()));
}

#[test]
fn where_nobody_answers_in_time_the_default_is_the_answer() {
    let world = world();
    let defaulted = world.run(["ask", "raise", "--timeout", "50ms", "--default", "blue", "Which one?"]);
    assert_eq!((defaulted.code, defaulted.stdout.as_str()), (0, "blue\n"));
    let unanswered = world.run(["ask", "raise", "--timeout", "50ms", "Which one?"]);
    assert_eq!(unanswered.code, 1);
    assert!(unanswered.stderr.contains("[timed_out]"), "{}", unanswered.stderr);
}

/// Runs the program with a principal's token.
fn run_as(world: &World, token: &str, arguments: &[&str]) -> Finished {
    let output = world.command().env("MAINSTAY_TOKEN", token).args(arguments).output().unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_principal_comes_in_with_its_token_and_sees_what_it_may() {
    let world = World::scripted();
    let made = world.run(["principal", "new", "ci", "--see", "shown*", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let token = made["token"].as_str().unwrap();
    std::fs::write(world.home().join("config.toml"), made["config"].as_str().unwrap()).unwrap();
    for name in ["hidden", "shown"] {
        assert_eq!(world.run(["session", "new", "--name", name]).code, 0);
    }
    let listed: Value =
        serde_json::from_str(&run_as(&world, token, &["session", "list", "--json"]).stdout).unwrap();
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|session| session["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["shown"]);
    for (arguments, code) in [
        (&["session", "show", "hidden"][..], "[session_not_found]"),
        (&["session", "rename", "shown", "mine"], "[not_permitted]"),
        (&["stop"], "[not_permitted]"),
    ] {
        let refused = run_as(&world, token, arguments);
        assert_eq!(refused.code, 1, "{arguments:?}");
        assert!(refused.stderr.contains(code), "{arguments:?}: {}", refused.stderr);
    }
    let unknown = run_as(&world, "guess", &["session", "list"]);
    assert!(unknown.stderr.contains("[unauthorized]"), "{}", unknown.stderr);
    let listed = world.run(["principal", "list"]).stdout;
    insta::assert_snapshot!(listed, @"
    local  sees and drives every session, and the daemon
    ci  drives its own; sees these and shown*
    ");
}

#[test]
fn several_principals_must_give_the_same_answer() {
    let world = World::scripted();
    let made = world.run(["principal", "new", "bob", "--drive", "*", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let token = made["token"].as_str().unwrap();
    std::fs::write(world.home().join("config.toml"), made["config"].as_str().unwrap()).unwrap();
    assert_eq!(world.run(["session", "new", "--name", "asked"]).code, 0);
    let none = world.run(["ask", "raise", "--quorum", "0", "Deploy?"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
    let many = world.run(["ask", "raise", "--quorum", "17", "Deploy?"]);
    assert!(many.stderr.contains("`quorum` allows 16"), "{}", many.stderr);
    let unreachable = world.run(["ask", "raise", "--quorum", "3", "Deploy?"]);
    assert!(unreachable.stderr.contains("there are 2 principals that may answer"), "{}", unreachable.stderr);
    let asking = raise(&world, &["--yes-no", "--quorum", "2", "Deploy?"]);
    let ask = short(&waiting(&world)[0]);
    let counted = world.run(["ask", "answer", &ask, "yes"]);
    assert_eq!((counted.code, counted.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(counted.stderr, @"the answer was counted; 1 more must answer the same");
    let again = world.run(["ask", "answer", &ask, "yes"]);
    insta::assert_snapshot!(again.stderr, @"the answer was counted; 1 more must answer the same");
    let listed = world.run(["ask", "list"]).stdout;
    assert!(listed.ends_with("    2 must give the same answer; local answered true\n"), "{listed}");
    assert_eq!(waiting(&world)[0]["votes"][0]["value"], true);
    let last = run_as(&world, token, &["ask", "answer", &ask, "yes"]);
    assert_eq!((last.code, last.stderr.as_str()), (0, ""));
    assert_eq!(printed(asking), (0, "true\n".to_owned()));
    let told = world.run(["events"]).stdout;
    assert!(told.contains("answered true; 1 more must answer the same"), "{told}");
    assert!(told.contains("bob (cli) answered true [ask "), "{told}");
}

#[test]
fn an_ask_that_is_declined_ends_without_an_answer() {
    let world = world();
    let asking = raise(&world, &["Which one?"]);
    let ask = short(&waiting(&world)[0]);
    let declined = world.run(["ask", "decline", &ask]);
    assert_eq!((declined.code, declined.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(declined.stderr, @"the ask has ended without an answer");
    let (code, answer) = printed(asking);
    assert_eq!((code, answer.as_str()), (1, ""));
    assert!(waiting(&world).is_empty());
    let again = world.run(["ask", "decline", &ask]);
    assert!(again.stderr.contains("[ask_not_pending]"), "{}", again.stderr);
}

#[test]
fn the_status_says_who_is_there_and_what_the_limits_are() {
    let world = world();
    let mut follower = world.follow(0);
    follower.wait_for("warmUpCompleted");
    let status = world.run(["status", "--limits"]).stdout;
    assert!(status.contains("cli of local, "), "{status}");
    assert!(status.contains(", follows asked\n"), "{status}");
    let mut limits = status.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(limits.any(|limit| limit == ["lane-commands", "64"]), "{status}");
    drop(follower);
}

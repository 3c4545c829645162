//! What people see of agents: `mainstay prompt`, with agents that do what a prompt says.
#![cfg(feature = "failpoints")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use std::process::{Child, Stdio};

use support::{Finished, World, interrupt};

/// Says something to the agent of the working folder.
fn prompt(world: &World, arguments: &[&str]) -> Finished {
    world.run(["prompt", "--kind", "agent"].iter().chain(arguments))
}

fn begin(world: &World, text: &str) -> Child {
    let mut command = world.command();
    command.args(["prompt", "--kind", "agent", text]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_the_agent_says_is_the_output_and_what_it_does_stands_beside_it() {
    let world = World::new();
    let said = "think Hm.\nsay Hello there.\ntool bash ls => a.txt\nsay Bye.";
    let done = prompt(&world, &[said]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello there.\nBye.\n"));
    insta::assert_snapshot!(done.stderr, @"
    ✓ bash ls: a.txt
    20 tokens in, 10 out
    ");
    let piped = world.run_with_input(["prompt", "--kind", "agent", "-"], b"say From a pipe.\n");
    assert_eq!(piped.stdout, "From a pipe.\n");
    let transcript = world.run(["session", "transcript"]).stdout;
    assert!(transcript.contains("Hello there.") && transcript.contains("From a pipe."), "{transcript}");
}

#[test]
fn a_turn_has_one_answer_whoever_asks_for_it_again() {
    let world = World::new();
    let first = prompt(&world, &["--id", "one", "say Once."]);
    assert_eq!((first.code, first.stdout.as_str()), (0, "Once.\n"));
    world.kill_daemon();
    let again = prompt(&world, &["--id", "one", "say Once."]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "Once.\n"));
    let json = prompt(&world, &["--id", "one", "--json", "say Once."]).json();
    assert_eq!((&json["replayed"], &json["text"]), (&true.into(), &"Once.".into()));
}

#[test]
fn what_goes_wrong_is_told_and_is_the_exit_code() {
    let world = World::new();
    let failed = prompt(&world, &["fail 529 overloaded"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (1, "failed: 529 overloaded\n"));
    let unknown = prompt(&world, &["--model", "scripted/none", "say hi"]);
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(unknown.stderr, @"
    error: model scripted/none is not valid: Model not found: scripted/none [invalid_argument]
      Correct it and try again.
    ");
    let kernel = world.run(["prompt", "--kind", "fsharp", "hi"]);
    assert!(kernel.code == 1 && kernel.stderr.contains("[not_of_kind]"), "{kernel:?}");
    assert_eq!(prompt(&world, &["--model", "big", "hi"]).code, 2);
}

#[test]
fn settings_last() {
    let world = World::new();
    assert_eq!(prompt(&world, &["--model", "scripted/small", "--thinking", "high", "say hi"]).code, 0);
    let state = &world.session()["agent"]["state"];
    assert_eq!((&state["model"]["id"], &state["thinking"]), (&"small".into(), &"high".into()));
}

#[test]
fn an_agent_that_works_is_steered_from_elsewhere_and_ctrl_c_aborts_it() {
    let world = World::new();
    prompt(&world, &["say hi"]);
    let waiting = begin(&world, "wait");
    world.follow(0).wait_until(|event| {
        event["kind"] == "jobRequested" && event["body"]["work"]["prompt"]["text"] == "wait"
    });
    assert_eq!(prompt(&world, &["--steer", "stop here"]).code, 0);
    let heard = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(heard.stdout).unwrap(), "I hear now: stop here\n");

    let since = world.session()["lastSeq"].as_u64().unwrap();
    let waiting = begin(&world, "wait");
    world.follow(since).wait_for("jobRequested");
    interrupt(&waiting);
    let aborted = waiting.wait_with_output().unwrap();
    assert_eq!(aborted.status.code(), Some(1));
    assert_eq!(String::from_utf8(aborted.stderr).unwrap(), "cancelled\n");
}

#[test]
fn a_new_conversation_is_another_session() {
    let world = World::new();
    prompt(&world, &["say one"]);
    prompt(&world, &["say two"]);
    prompt(&world, &["--new", "say three"]);
    let sessions = world.run(["session", "list", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), 2);
}

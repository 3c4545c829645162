//! Cancel always ends, and the session has its definitions afterwards.

use std::io::{BufRead, BufReader};

use crate::support;
use crate::support::World;

/// Cancels code that would run for ever, once an event of this kind says that it has begun. Says how it ended.
fn cancel(world: &World, code: &str, beginning: &str) -> String {
    let before = world.eval("let kept = 41");
    let child = world.start_eval(code);
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    events.wait_for(beginning);
    let cancelled = world.run(["cancel"]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let ending = events.wait_for("evalCancelled")["body"]["ending"].as_str().unwrap().to_owned();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let eval: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(eval["ending"], "cancelled");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    if ending == "killed" {
        let rebuilt = events.wait_for("warmUpCompleted");
        assert_eq!(rebuilt["body"]["replayed"], 1, "{rebuilt}");
    }
    ending
}

#[test]
fn a_loop_that_never_yields_is_killed_and_the_session_rebuilt() {
    let code = format!("printfn \"runs\"; {}", support::NEVER_YIELDS);
    assert_eq!(cancel(&World::new(), &code, "outputProduced"), "killed");
}

#[test]
fn a_tight_loop_and_an_endless_sleep_yield() {
    let world = World::new();
    // However slow the machine, the code has the time to yield.
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    assert_eq!(cancel(&world, "printfn \"runs\"\nwhile true do ()", "outputProduced"), "yielded");
    assert_eq!(cancel(&world, "System.Threading.Thread.Sleep -1", "evalRequested"), "yielded");
}

#[test]
fn a_tight_printing_loop_ends() {
    cancel(&World::new(), "while true do printfn \"again\"", "evalRequested");
}

#[test]
fn an_infinite_sequence_that_is_printed_ends() {
    cancel(&World::new(), "Seq.initInfinite id |> Seq.iter (printfn \"%d\")", "evalRequested");
}

#[test]
fn ctrl_c_takes_code_back_that_waits_and_leaves_what_runs_alone() {
    let world = World::scripted();
    let before = world.eval("let kept = 41");
    let running = world.start_eval("System.Threading.Thread.Sleep -1");
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    events.wait_for("evalRequested");
    let mut waiting = world.start_eval("let never = 1");
    let mut says = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let note = says.next().unwrap().unwrap();
    assert!(note.starts_with("waits for its turn …; Ctrl-C takes it back, or `mainstay cancel"), "{note}");
    support::interrupt(&waiting);
    let said: Vec<String> = says.map(Result::unwrap).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"{"error":{"code":"cancelled","message":"the command was cancelled; nothing came of it","nextStep":"Send it again under a new id if it should run after all."}}"#);
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    assert_eq!(world.session()["state"], "Evaluating");
    support::interrupt(&running);
    let eval: serde_json::Value =
        serde_json::from_slice(&running.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(eval["ending"], "cancelled");
    assert_eq!(world.eval("never")["ending"], "rejected");
}

#[test]
fn code_that_waits_names_the_command_that_takes_it_back() {
    let world = World::scripted();
    let before = world.eval("let kept = 41");
    let running = world.start_eval("System.Threading.Thread.Sleep -1");
    world.follow(before["seq"].as_u64().unwrap()).wait_for("evalRequested");
    let mut waiting = world.start_eval("let never = 1");
    let mut says = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let note = says.next().unwrap().unwrap();
    let command = note.split('`').nth(1).unwrap();
    let taken_back = world.run(command.split(' ').skip(1));
    insta::assert_snapshot!(taken_back.stderr, @"cancelled before anything came of it");
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    assert_eq!(world.session()["state"], "Evaluating", "what runs is left alone");
    world.run(["cancel"]);
    running.wait_with_output().unwrap();
}

#[test]
fn a_command_that_is_not_there_is_not_cancelled_and_what_runs_goes_on() {
    let world = World::scripted();
    let before = world.eval("let kept = 41");
    let running = world.start_eval("System.Threading.Thread.Sleep -1");
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    let requested = events.wait_for("evalRequested");
    let refused = world.run(["cancel", "--command", "nobody-knows"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: the command `nobody-knows` neither runs nor waits in this session [not_running]
      It has ended, or never came; without a command's id, cancelling ends what runs.
    ");
    let command = requested["body"]["command"].as_str().unwrap();
    let cancelled = world.run(["cancel", "--command", command]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    running.wait_with_output().unwrap();
}

#[test]
fn with_nothing_running_cancel_says_so() {
    let world = World::scripted();
    world.eval("1");
    let refused = world.run(["cancel"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: cannot cancel: the session is Ready [not_offered]
      Nothing runs; there is nothing to cancel.
    ");
}

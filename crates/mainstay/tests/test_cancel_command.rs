//! Cancel always ends, and the session has its definitions afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use support::World;

/// Cancels code that would run for ever, with the grace that the settings give. Says how it ended.
fn cancel(code: &str) -> String {
    cancel_in(World::new(), code)
}

fn cancel_in(world: World, code: &str) -> String {
    let before = world.eval("let kept = 41");
    let child = world.start_eval(code);
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    events.wait_for("evalRequested");
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
    assert_eq!(cancel("while true do ()"), "killed");
}

#[test]
fn an_endless_sleep_yields() {
    let world = World::new();
    // However slow the machine, the code has the time to yield.
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    assert_eq!(cancel_in(world, "System.Threading.Thread.Sleep -1"), "yielded");
}

#[test]
fn a_tight_printing_loop_ends() {
    cancel("while true do printfn \"again\"");
}

#[test]
fn an_infinite_sequence_that_is_printed_ends() {
    cancel("Seq.initInfinite id |> Seq.iter (printfn \"%d\")");
}

#[test]
fn with_nothing_running_cancel_says_so() {
    let world = World::new();
    world.eval("1");
    let refused = world.run(["cancel"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: cannot cancel: the session is Ready [not_offered]
      Nothing runs; there is nothing to cancel.
    ");
}

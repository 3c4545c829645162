//! What a command may say beside its code, and what becomes of it.

use crate::support::{Finished, World};
use serde_json::Value;

fn shown(world: &World, id: &str) -> Value {
    world.run(["command", "show", "--json", id]).json()
}

fn eval(world: &World, arguments: &[&str]) -> Finished {
    world.run(["eval", "--json"].into_iter().chain(arguments.iter().copied()))
}

#[test]
fn a_command_is_shown_with_its_one_answer() {
    let world = World::scripted();
    let first = eval(&world, &["--id", "mine", "printfn \"ran\"\nlet x = 40 + 2"]).json();
    assert_eq!((&first["version"], first.get("replayed")), (&Value::from(1), None));
    let again = eval(&world, &["--id", "mine", "printfn \"ran\"\nlet x = 40 + 2"]).json();
    assert_eq!(
        (&again["seq"], &again["stdout"], &again["replayed"]),
        (&first["seq"], &first["stdout"], &true.into())
    );
    let view = shown(&world, "mine");
    assert_eq!((&view["state"], &view["version"]), (&"ended".into(), &1.into()));
    assert_eq!(view["outcome"]["response"]["ending"], "completed");
    let text = world.run(["command", "show", "mine"]).stdout;
    assert!(text.starts_with("mine has ended\n") && text.contains("val x: int = 42"), "{text}");
    let unknown = world.run(["command", "show", "nobody-knows"]);
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(unknown.stderr, @"
    error: there is no command `nobody-knows` [command_not_found]
      Check the id; `mainstay events --json` has it as `correlation`.
    ");
    let other = eval(&world, &["--id", "mine", "let x = 43"]);
    assert!(other.stderr.contains("{\"error\":{\"code\":\"command_conflict\","), "{other:?}");
    let ours = eval(&world, &["--id", "anon:1", "let x = 43"]);
    assert!(ours.stderr.contains("{\"error\":{\"code\":\"invalid_argument\","), "{ours:?}");
}

#[test]
fn an_eval_has_its_conditions() {
    let world = World::scripted();
    eval(&world, &["--id", "first", "let kept = 41"]);
    let slow = eval(&world, &["--timeout", "700ms", "System.Threading.Thread.Sleep -1"]);
    insta::assert_snapshot!(slow.stderr, @r#"{"error":{"code":"timed_out","message":"the command did not end within 700 ms","nextStep":"What ran is cancelled. Give it more time, under a new id."}}"#);
    assert_eq!(eval(&world, &["--depends-on", "first", "kept + 1"]).json()["value"], "42");
    let unknown = eval(&world, &["--depends-on", "nobody", "kept + 1"]);
    assert!(unknown.stderr.contains("{\"error\":{\"code\":\"dependency_unknown\","), "{unknown:?}");
    let stale = eval(&world, &["--if-version", "0", "kept + 1"]);
    assert!(stale.stderr.contains("{\"error\":{\"code\":\"version_mismatch\","), "{stale:?}");
    let once = || eval(&world, &["--key", "once", "let mutable n = 0"]).json();
    assert_eq!(once()["seq"], once()["seq"]);
    let other = eval(&world, &["--key", "once", "let mutable n = 1"]);
    assert!(other.stderr.contains("{\"error\":{\"code\":\"key_conflict\","), "{other:?}");
}

#[test]
fn what_waited_when_the_daemon_was_killed_runs_when_what_ran_has_ended() {
    let world = World::scripted();
    let worker = queued(&world);
    world.kill_daemon();
    assert_eq!(world.worker_pid(), worker);
    assert_eq!(shown(&world, "waits")["state"], "waits");
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(world.eval("late")["value"], "42");
    assert_eq!(shown(&world, "waits")["outcome"]["response"]["ending"], "completed");
    assert_eq!(shown(&world, "runs")["outcome"]["response"]["ending"], "completed");
    assert_eq!(world.worker_pid(), worker);
}

#[test]
fn what_waited_when_the_machine_restarted_runs_all_the_same() {
    let world = World::scripted();
    queued(&world);
    world.kill_everything();
    assert_eq!(world.eval("late")["value"], "42");
    assert_eq!(shown(&world, "waits")["outcome"]["response"]["ending"], "completed");
    assert_eq!(shown(&world, "runs")["outcome"]["response"]["ending"], "interrupted");
}

/// Has code run until a file is there, and other code wait for its turn; their clients are gone. Gives the worker.
fn queued(world: &World) -> i32 {
    let before = world.eval("let kept = 41");
    let begin = |id: &str, code: &str| {
        let mut command = world.command();
        command.args(["eval", "--id", id, code]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut events = world.follow(before["seq"].as_u64().unwrap());
    let mut running =
        begin("runs", "while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5");
    events.wait_for("evalRequested");
    let mut waiting = begin("waits", "let late = kept + 1");
    events.wait_for("commandQueued");
    let status = world.run(["status"]).stdout;
    assert!(status.contains("2 commands under way") && status.contains("waits: waits"), "{status}");
    assert_eq!(shown(world, "waits")["state"], "waits");
    for client in [&mut running, &mut waiting] {
        client.kill().unwrap();
        client.wait().unwrap();
    }
    world.worker_pid()
}

#[test]
fn arguments_that_are_not_understood_are_told_to_a_script_as_json() {
    let world = World::new();
    let refused = world.run(["events", "--json", "--sesion", "s"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    insta::assert_snapshot!(refused.stderr);
    let told = world.run(["events", "--sesion", "s"]);
    assert!(told.code == 2 && told.stderr.starts_with("error: unexpected argument"), "{told:?}");
}

//! Code that harms its worker harms nothing else.

use crate::support::World;
use serde_json::Value;

/// After the code has done its worst, the session has its definitions and its neighbour has not noticed.
fn session_survives(world: &World, code: &str) -> Value {
    let neighbour = world.run(["session", "show", "neighbour", "--json"]).json();
    let eval = world.eval(code);
    assert_eq!(eval["ending"], "workerExited", "{eval}");
    assert_eq!(world.eval("kept + 1")["value"], "42", "after {code}");
    let after = world.run(["session", "show", "neighbour", "--json"]).json();
    assert!(after["worker"]["pid"].is_u64(), "{after}");
    assert_eq!(after["worker"]["pid"], neighbour["worker"]["pid"], "after {code}");
    eval
}

#[test]
fn whatever_ends_the_worker_is_an_outcome_that_harms_nothing_else() {
    let world = World::new();
    // No worker is waited for longer than the one before it.
    std::fs::write(world.home().join("config.toml"), "[limits]\nrestart-first-ms = 0\n").unwrap();
    assert_eq!(world.run(["session", "new", "--name", "neighbour", "--directory", "/tmp"]).code, 0);
    assert_eq!(world.eval("let kept = 41")["success"], true);

    let exited = session_survives(&world, "printfn \"bye\"\nexit 3");
    assert_eq!(exited["stdout"], "bye\n");
    assert!(exited["error"]["message"].as_str().unwrap().contains("exit code 3"), "{exited}");
    session_survives(&world, "printfn \"x\"\nSystem.Environment.FailFast \"gone\"");
    session_survives(&world, "let rec deep n = 1 + deep (n + 1)\ndeep 0");
    let native = "[<System.Runtime.InteropServices.DllImport(\"libc\")>]\nextern void abort()\nabort ()";
    session_survives(&world, native);
}

#[test]
fn half_a_gigabyte_of_output_keeps_its_beginning_and_its_end() {
    let world = World::new();
    let code = "let line = String.replicate 1_000 \"x\"\nfor _ in 1 .. 500_000 do System.Console.Out.WriteLine line\nstdout.WriteLine \"done\"";
    let eval = world.eval(code);
    assert_eq!((&eval["success"], &eval["outputCut"]), (&true.into(), &true.into()));
    let stdout = eval["stdout"].as_str().unwrap();
    assert!(stdout.len() > 1024 * 1024 && stdout.len() < 1024 * 1024 + 64 * 1024 + 100, "{}", stdout.len());
    let (mark, end) = stdout.rsplit_once("[… ").unwrap().1.split_once('\n').unwrap();
    assert_eq!(mark, format!("{} bytes of stdout left out …]", 500_500_005 - 1024 * 1024 - end.len()));
    assert!(end.starts_with(&("x".repeat(1_000) + "\n")) && end.ends_with("x\ndone\n"), "{end}");
    let status = world.run(["status", "--json"]).json();
    assert!(status["residentBytes"].as_u64().unwrap() < 400_000_000, "{status}");
    assert_eq!(world.eval("line.Length")["value"], "1000");
}

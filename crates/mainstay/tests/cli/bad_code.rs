//! Code that harms its worker harms nothing else.

use crate::support::World;

/// After the code has done its worst, the session has its definitions and its neighbour has not noticed.
fn session_survives(code: &str, ending: &str) -> serde_json::Value {
    let world = World::new();
    let neighbour =
        world.run(["session", "new", "--name", "neighbour", "--directory", "/tmp", "--json"]).json();
    assert_eq!(world.eval("let kept = 41")["success"], true);
    let eval = world.eval(code);
    assert_eq!(eval["ending"], ending, "{eval}");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    let after = world.run(["session", "show", "neighbour", "--json"]).json();
    assert_eq!(after["worker"]["pid"], neighbour["worker"]["pid"]);
    eval
}

#[test]
fn exit_3_is_an_outcome_that_keeps_its_output() {
    let eval = session_survives("printfn \"bye\"\nexit 3", "workerExited");
    assert_eq!(eval["stdout"], "bye\n");
    assert!(eval["error"]["message"].as_str().unwrap().contains("exit code 3"), "{eval}");
}

#[test]
fn failing_fast_is_an_outcome() {
    session_survives("printfn \"x\"\nSystem.Environment.FailFast \"gone\"", "workerExited");
}

#[test]
fn a_stack_overflow_is_an_outcome() {
    session_survives("let rec deep n = 1 + deep (n + 1)\ndeep 0", "workerExited");
}

#[test]
fn a_native_crash_is_an_outcome() {
    let code = "[<System.Runtime.InteropServices.DllImport(\"libc\")>]\nextern void abort()\nabort ()";
    session_survives(code, "workerExited");
}

#[test]
fn a_gigabyte_of_output_keeps_its_beginning_and_its_end() {
    let world = World::new();
    let code = "let line = String.replicate 1_000 \"x\"\nfor _ in 1 .. 1_000_000 do System.Console.Out.WriteLine line\nstdout.WriteLine \"done\"";
    let eval = world.eval(code);
    assert_eq!((&eval["success"], &eval["outputCut"]), (&true.into(), &true.into()));
    let stdout = eval["stdout"].as_str().unwrap();
    assert!(stdout.len() > 1024 * 1024 && stdout.len() < 1024 * 1024 + 64 * 1024 + 100, "{}", stdout.len());
    let (mark, end) = stdout.rsplit_once("[… ").unwrap().1.split_once('\n').unwrap();
    assert_eq!(mark, format!("{} bytes of stdout left out …]", 1_001_000_005 - 1024 * 1024 - end.len()));
    assert!(end.starts_with(&("x".repeat(1_000) + "\n")) && end.ends_with("x\ndone\n"), "{end}");
    let status = world.run(["status", "--json"]).json();
    assert!(status["residentBytes"].as_u64().unwrap() < 400_000_000, "{status}");
    assert_eq!(world.eval("line.Length")["value"], "1000");
}

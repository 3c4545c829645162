//! A session that is given its definitions back, as people see it.

use crate::support::World;
use crate::support::terminal::{CTRL_C, TAB, Terminal};

/// Whether a line of the screen is this one.
fn shows_line(terminal: &Terminal, line: &str) -> bool {
    terminal.screen().lines().any(|shown| shown.trim_end() == line)
}

#[test]
fn a_fork_shows_how_far_it_is_and_is_used_before_it_has_its_values() {
    let world = World::scripted();
    let hold = world.work().join("hold");
    assert_eq!(world.run(["session", "new", "--name", "lab"]).code, 0);
    for code in [
        "let first = 20",
        "while System.IO.File.Exists \"hold\" do System.Threading.Thread.Sleep 10",
        "let last = 21",
    ] {
        assert_eq!(world.eval(code)["success"], true);
    }
    std::fs::write(&hold, "").unwrap();
    let fork = Terminal::run(world.command().args(["session", "fork", "lab", "--name", "idea"]));
    fork.wait_for("idea warms up …");
    fork.wait_for("1 of 3 submissions ran again");

    let listed = world.run(["session", "list", "--live"]);
    assert!(listed.stdout.contains("1 of 3 submissions ran again"), "{listed:?}");
    let status = world.run(["status", "--json"]).json();
    let far: Vec<_> = status["live"].as_array().unwrap().iter().map(|session| &session["warmUp"]).collect();
    assert_eq!(far, [&serde_json::json!({"done": 1, "total": 3}), &serde_json::Value::Null]);
    assert_eq!(world.run(["export", "idea", "--format", "fsx"]).code, 0);

    let prompt = Terminal::run(world.command().args(["--session", "idea"]));
    prompt.wait_for("1 of 3 submissions ran again; code waits until that is done, the rest can be used");
    prompt.wait_for_last_line("idea>");
    prompt.enter(":transcript");
    prompt.wait_for("let last = 21");
    prompt.press("firs");
    prompt.press(TAB);
    prompt.wait_for_last_line("idea> first");
    prompt.press(CTRL_C);
    prompt.wait_for_last_line("idea>");
    prompt.enter("first + last + 1");
    prompt.wait_for("waits for the session to be ready …");
    prompt.wait_for_last_line("1 of 3 submissions ran again");
    let eval = Terminal::run(world.command().args(["eval", "--session", "idea", "last"]));
    eval.wait_for_last_line("1 of 3 submissions ran again");

    std::fs::remove_file(&hold).unwrap();
    prompt.wait_for("val it: int = 42");
    assert!(!shows_line(&prompt, "1 of 3 submissions ran again"), "{}", prompt.screen());
    fork.wait_for("fsharp   idea");
    assert!(!fork.screen().contains("of 3"), "the line is gone:\n{}", fork.screen());
    eval.wait_for("val it: int = 21");
    assert_eq!((fork.wait_for_end(), eval.wait_for_end()), (0, 0));
}

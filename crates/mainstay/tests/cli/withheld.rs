//! Code that is to be stored nowhere is stored nowhere.

use std::path::PathBuf;

use crate::support::World;
use crate::support::terminal::{CTRL_D, Terminal};

/// Told apart from everything else in a home, and nowhere in this file's session under another name.
const SECRET: &str = "hunter-7f3a91";
const GIVEN: &str = "HUNTER-7F3A91";
const PRINTED: &str = "19a3f7-retnuh";
const RAISED: &str = "hunter-7f3a91 is wrong";
/// What is not withheld is there: the search would find it.
const CONTROL: &str = "control-7f3a91";

fn assert_nowhere(world: &World, when: &str) {
    for text in [SECRET, GIVEN, PRINTED] {
        assert_eq!(world.files_with(text), [""; 0].map(PathBuf::from), "{text} {when}");
    }
    assert_ne!(world.files_with(CONTROL), [""; 0].map(PathBuf::from), "{when}");
}

#[test]
fn a_line_that_begins_with_a_blank_is_stored_nowhere_and_told_to_who_typed_it() {
    let world = World::new();
    let watched = |arguments: &[&str]| {
        let mut command = world.command();
        command.env("MAINSTAY_LOG", "trace").args(arguments);
        command
    };
    assert!(watched(&["-d"]).status().unwrap().success());
    let terminal = Terminal::run(&watched(&[]));
    terminal.wait_for_last_line("work>");
    terminal.enter(&format!("let control = \"{CONTROL}\""));
    terminal.wait_for("val control: string");
    terminal.enter(&format!(" let token = \"{SECRET}\""));
    terminal.wait_for("val token: string");
    terminal.enter(" token.ToUpper()");
    terminal.wait_for(GIVEN);
    terminal.enter(" for c in Seq.rev token do printf \"%c\" c");
    terminal.wait_for(PRINTED);
    terminal.enter(&format!(" failwith \"{RAISED}\""));
    terminal.wait_until("what was raised", |screen| screen.matches(RAISED).count() > 1);
    terminal.enter(&format!(" let broken : int = \"{SECRET}\" +"));
    terminal.wait_for("error FS");
    terminal.enter("token.Length");
    terminal.wait_for("val it: int = 13");
    terminal.wait_for_last_line("work>");
    assert_nowhere(&world, "while the daemon runs");

    for line in world.events() {
        assert!(!line.to_string().contains("hunter"), "{line}");
    }
    let transcript = world.run(["session", "transcript", "work"]).stdout;
    assert!(transcript.contains("token.Length") && !transcript.contains("ToUpper"), "{transcript}");
    assert_eq!(world.run(["session", "fork", "work", "--name", "idea"]).code, 0);
    let idea = world.run(["session", "show", "idea"]).stdout;
    assert!(idea.contains("was left out: its code was withheld"), "{idea}");
    assert_eq!(world.run(["eval", "--session", "idea", "token"]).code, 1, "nothing knows it any more");
    assert_eq!(world.run(["eval", "--session", "idea", "control"]).code, 0);
    let exported = world.run(["export", "work", "--format", "markdown"]).stdout;
    assert!(exported.contains("this code was withheld") && !exported.contains("hunter"), "{exported}");
    terminal.press(CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);
    assert_nowhere(&world, "after a fork");
    assert_eq!(world.run(["stop"]).code, 0);
    assert_nowhere(&world, "after the daemon's end");
    assert_eq!(world.run(["eval", "control"]).code, 0);
    assert_nowhere(&world, "after another start");
    assert_eq!(world.run(["doctor"]).code, 0);
}

#[test]
fn an_eval_is_withheld_where_it_says_so_and_told_once() {
    let world = World::new();
    assert_eq!(world.run(["eval", &format!(" \"{CONTROL}\"")]).code, 0, "a blank means nothing here");
    let secret = format!("printfn \"{SECRET}\"; \"{SECRET}\".ToUpper()");
    let eval = || world.run(["eval", "--withheld", "--id", "once", "--json", &secret]).json();
    let first = eval();
    assert_eq!(first["value"], format!("\"{GIVEN}\""));
    assert_eq!(first["stdout"], format!("{SECRET}\n"));
    let again = eval();
    assert_eq!((&again["withheld"], &again["replayed"]), (&true.into(), &true.into()), "{again}");
    assert_eq!((&again["value"], &again["stdout"]), (&serde_json::Value::Null, &"".into()));
    let busy = world.start_eval("System.Threading.Thread.Sleep -1");
    world.follow(0).wait_until(|event| event["body"]["code"] == "System.Threading.Thread.Sleep -1");
    let refused = world.run(["eval", "--withheld", &secret]);
    assert!(refused.code == 1 && refused.stderr.contains("[withheld]"), "{refused:?}");
    assert_eq!(world.run(["cancel"]).code, 0);
    busy.wait_with_output().unwrap();
    assert_nowhere(&world, "in the end");
}

#[test]
fn what_withheld_code_bound_is_not_among_what_is_told_of_the_session() {
    let world = World::new();
    world.eval("let control = 1");
    let bound = world.run(["eval", "--withheld", &format!("let password = \"{SECRET}\"")]);
    assert_eq!(bound.code, 0, "{bound:?}");
    assert_eq!(world.run(["explore", "--values"]).stdout, "control : int = 1\n");
    assert_eq!(world.run(["explore", "--find", "password", "--limit", "1", "--json"]).code, 0, "of others");
    let found = world.run(["explore", "--find", "password", "--limit", "1000"]).stdout;
    assert!(!found.lines().any(|line| line.trim_start().starts_with("password")), "{found}");
    // It can still be used.
    assert_eq!(world.eval("password.Length")["value"], SECRET.len().to_string());
}

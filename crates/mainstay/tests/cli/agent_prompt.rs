//! The prompt of a session of the real pi, with a scripted model behind it: what people see and type.

use std::os::unix::fs::PermissionsExt;

use crate::support::agents::Agents;
use crate::support::terminal::{CTRL_C, ENTER, TAB, Terminal};
use mainstay_test_support::model::{call, say};
use serde_json::json;

/// The prompt of the working folder's session.
const PROMPT: &str = "work>";

/// A prompt on a conversation with pi, where long texts are paged by a program that marks their lines.
fn open(agents: &Agents) -> Terminal {
    let mut command = agents.world.command();
    command.args(["--kind", "pi"]).env("PAGER", "sed 's/^/paged: /'");
    let terminal = Terminal::run(&command);
    terminal.wait_for("Say something, or :help");
    terminal.wait_for_last_line(PROMPT);
    terminal
}

/// Says something, and gives what stands between that and the line that says what the turn took.
fn said(terminal: &Terminal, text: &str) -> String {
    terminal.enter(text);
    let line = format!("{PROMPT} {text}\n");
    terminal.wait_until(text, |screen| {
        screen.rsplit_once(&line).is_some_and(|(_, shown)| shown.contains(" tokens in, "))
    });
    terminal.wait_for_last_line(PROMPT);
    let screen = terminal.screen();
    let (_, shown) = screen.rsplit_once(&line).unwrap();
    let lines = shown.lines().take_while(|line| !line.contains(" tokens in, "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_model_and_what_it_costs_are_in_view() {
    let agents = Agents::new();
    agents.set_of_model(
        "m",
        "cost",
        &json!({ "input": 100, "output": 1000, "cacheRead": 0, "cacheWrite": 0 }),
    );
    let terminal = open(&agents);
    agents.model.will(say(&["Hello."]));
    said(&terminal, "hello");
    agents.model.will(say(&["Again."]));
    said(&terminal, "hello again");
    let screen = terminal.screen();
    let lines: Vec<&str> = screen.lines().filter(|line| line.contains(" tokens in, ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    m • 90 tokens in, 10 out; $0.019 • context 0 %
    m • 90 tokens in, 10 out; $0.019 • session: 200 tokens, $0.038 • context 0 %
    ");
    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
    let again = open(&agents);
    again.wait_for("local/m, thinking off");
    again.wait_for("session: 200 tokens, $0.038");
}

/// Puts a program that lists files as git does in git's place, and gives the folder that it is in.
fn git_that_lists(agents: &Agents, names: &[&str]) -> std::path::PathBuf {
    let folder = agents.world.home().join("programs");
    std::fs::create_dir(&folder).unwrap();
    let names = names.join("\\0");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *ls-files*--exclude-standard*) printf '{names}\\0' ;; *) exit 1 ;; esac\n"
    );
    std::fs::write(folder.join("git"), script).unwrap();
    std::fs::set_permissions(folder.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn what_the_agent_knows_and_files_are_completed_and_reach_it_as_it_has_them() {
    let agents = Agents::new();
    let pi = agents.world.home().join("pi");
    std::fs::create_dir_all(pi.join("prompts")).unwrap();
    std::fs::write(pi.join("prompts/greet.md"), "---\ndescription: Greets someone\n---\nSay hello to $1.\n")
        .unwrap();
    std::fs::create_dir_all(pi.join("skills/pdf")).unwrap();
    std::fs::write(
        pi.join("skills/pdf/SKILL.md"),
        "---\nname: pdf\ndescription: Reads PDF files\n---\nRead them.\n",
    )
    .unwrap();
    let git = git_that_lists(&agents, &["src/main.rs", "notes/my plan.md"]);
    let path = std::env::join_paths(
        [git].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let mut command = agents.world.command();
    command.args(["--kind", "pi"]).env("PATH", path);
    let terminal = Terminal::run(&command);
    terminal.wait_for_last_line(PROMPT);

    terminal.press("/s");
    terminal.press(TAB);
    terminal.wait_for("skill: Reads PDF files");
    let screen = terminal.screen();
    assert!(screen.contains("/sessions") && !screen.contains("warms up"), "{screen}");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.press("/gre");
    terminal.press(TAB);
    terminal.wait_for("work> /greet ");
    terminal.press("Ada, see @plan");
    terminal.press(TAB);
    terminal.wait_for("Ada, see @\"notes/my plan.md\"");
    agents.model.will(say(&["Hello."]));
    terminal.press(ENTER);
    terminal.wait_for("Hello.");
    let asked = agents.request(1)["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(asked.contains("Say hello to Ada,."), "{asked}");

    terminal.wait_for_last_line(PROMPT);
    terminal.press("look at @main");
    terminal.press(TAB);
    terminal.wait_for("work> look at @src/main.rs");
    agents.model.will(say(&["I see."]));
    terminal.press(ENTER);
    terminal.wait_for("I see.");
    let asked = agents.request(2)["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(asked.contains("look at @src/main.rs"), "{asked}");
}

#[test]
fn edits_are_differences_and_long_output_is_cut_and_shown_whole_on_demand() {
    let agents = Agents::new();
    std::fs::write(agents.world.work().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let terminal = open(&agents);
    let edits = json!([{ "oldText": "two\n", "newText": "zwei\ndrei\n" }]);
    agents.model.will(call("c1", "edit", &json!({ "path": "a.txt", "edits": edits })));
    agents.model.will(say(&["Done."]));
    insta::assert_snapshot!(said(&terminal, "translate it"), @"
    waits for the session to be ready …
    ✓ edit a.txt: +2 -1
       1 one
      -2 two
      +2 zwei
      +3 drei
       3 three
    Done.
    ");

    agents.model.will(call("c2", "bash", &json!({ "command": "seq 1 80" })));
    agents.model.will(say(&["Counted."]));
    insta::assert_snapshot!(said(&terminal, "count"), @"
    ✓ bash seq 1 80
      … 75 lines before, :output shows all
      76
      77
      78
      79
      80
    Counted.
    ");

    terminal.enter(":output");
    terminal.wait_for("paged:   80");
    terminal.wait_for_last_line(PROMPT);
    // Of the first turn: what was said, the call, and this.
    terminal.enter(":output 3");
    terminal.wait_for("✓ edit a.txt: +2 -1\n   1 one\n  -2 two\n  +2 zwei\n  +3 drei\n");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":output 99");
    terminal.wait_for("it has no entry of that number");
}

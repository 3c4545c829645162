//! The prompt of a session of the real pi, with a scripted model behind it: what people see and type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "support/agents.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod agents;
mod support;
#[path = "support/terminal.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod terminal;

use agents::Agents;
use agents::model::{call, say};
use serde_json::json;
use terminal::Terminal;

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

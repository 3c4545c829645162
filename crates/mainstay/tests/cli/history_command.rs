//! Tests of `mainstay history`.

use crate::support::terminal::{CTRL_D, Terminal};
use crate::support::{Finished, World};

/// A history that a daemon of before could not take.
fn typed(world: &World, lines: &[(&str, &str)]) {
    let text: String = lines
        .iter()
        .enumerate()
        .map(|(index, (folder, text))| {
            let id = uuid::Uuid::from_u128(index as u128);
            let folder = world.work().join(folder).display().to_string();
            let folder = folder.trim_end_matches('/');
            let at = "2026-02-13T13:29:20Z";
            format!("{}\n", serde_json::json!({"id": id, "at": at, "folder": folder, "text": text}))
        })
        .collect();
    std::fs::write(world.home().join("history.unsent"), text).unwrap();
    let terminal = Terminal::open(world);
    terminal.wait_for_last_line("work>");
    terminal.press(CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);
}

/// Numbers and lines, without their times.
fn shown(finished: &Finished) -> Vec<String> {
    let line = |line: &str| line.rsplit_once("  ").map_or(line, |(line, _)| line).trim().to_owned();
    finished.stdout.lines().map(line).collect()
}

#[test]
fn lines_are_listed_by_folder_session_and_words_and_removed() {
    let world = World::scripted();
    typed(&world, &[("", "let rate = 1"), ("there", "let rate = 2"), ("", "rate + 1")]);
    let history = |arguments: &[&str]| world.run(["history"].iter().chain(arguments));
    assert_eq!(shown(&history(&[])), ["1  let rate = 1", "3  rate + 1"]);
    assert_eq!(shown(&history(&["--all", "LET", "rate"])), ["1  let rate = 1", "2  let rate = 2"]);
    assert_eq!(shown(&history(&["--all", "--limit", "1"])), ["3  rate + 1"]);
    let nothing = history(&["--session", "work"]);
    assert_eq!((nothing.code, nothing.stderr.as_str()), (1, "nothing was found\n"));
    let json = history(&["--json"]).json();
    assert_eq!(json[0]["content"], "let rate = 1");
    assert_eq!(history(&["--remove", "1"]).stderr, "1 line was removed\n");
    assert_eq!(history(&["--remove", "1"]).code, 1);
    assert_eq!(history(&["--clear"]).stderr, "1 line was removed\n");
    assert_eq!(shown(&history(&["--all"])), ["2  let rate = 2"]);
    assert_eq!(history(&["--clear", "--all"]).code, 0);
    assert_eq!(history(&["--all"]).code, 1);
    assert_eq!(history(&["--clear", "word"]).code, 2);
}

#[test]
fn removing_is_confirmed_on_a_terminal() {
    let world = World::scripted();
    typed(&world, &[("", "1 + 1")]);
    let clear = || Terminal::run(world.command().args(["history", "--clear"]));
    for (answer, lines) in [("", 1), ("n", 1), ("y", 0)] {
        let terminal = clear();
        terminal.wait_for("from the history? [y/N]");
        terminal.enter(answer);
        terminal.wait_for_end();
        assert_eq!(world.run(["history", "--json"]).json().as_array().unwrap().len(), lines, "{answer:?}");
    }
}

//! The README and the book do what they say: their console blocks are run. The pages of one folder share a home, since starting
//! a compiler for each would take long: what a page shows may not depend on the pages before it.

use std::path::{Path, PathBuf};

use crate::support::{World, kill};

#[test]
fn the_readme_gives_what_it_shows() {
    run_page(&World::new(), &repository().join("README.md"));
}

#[test]
fn the_tutorial_gives_what_it_shows() {
    run_folder("tutorial");
}

#[test]
fn the_how_to_guides_give_what_they_show() {
    run_folder("how-to");
}

/// Console blocks stand only where a test runs them.
#[test]
fn no_other_page_has_a_console_block() {
    for folder in [".", "errors", "explanation", "reference"] {
        for page in pages(folder) {
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(blocks(&text, "console").is_empty(), "{}", page.display());
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in a folder of the book.
fn pages(folder: &str) -> Vec<PathBuf> {
    let folder = repository().join("docs").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages
}

fn run_folder(folder: &str) {
    let world = World::new();
    pages(folder).iter().for_each(|page| run_page(&world, page));
}

/// Runs the console blocks of a page, one after the other.
fn run_page(world: &World, page: &Path) {
    let text = std::fs::read_to_string(page).unwrap();
    for block in blocks(&text, "console") {
        for step in block.strip_prefix("$ ").unwrap().split("\n$ ") {
            let mut lines = step.lines();
            let command = lines.next().unwrap();
            let expected: Vec<&str> = lines.collect();
            let got = run(world, command);
            let got: Vec<&str> = got.lines().collect();
            assert!(
                fits(&expected, &got),
                "{}: $ {command}\nexpected {expected:#?}\ngot {got:#?}",
                page.display()
            );
        }
    }
}

/// The text of each block fenced with this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// Whether a text is as expected, where `…` stands for anything within a line, and for any lines where it stands alone.
fn fits(expected: &[&str], got: &[&str]) -> bool {
    match expected {
        [] => got.is_empty(),
        ["…", rest @ ..] => (0..=got.len()).any(|skipped| fits(rest, &got[skipped..])),
        [line, rest @ ..] => got.first().is_some_and(|first| line_fits(line, first)) && fits(rest, &got[1..]),
    }
}

fn line_fits(expected: &str, got: &str) -> bool {
    let mut pieces = expected.split('…');
    let Some(mut rest) = got.strip_prefix(pieces.next().unwrap()) else { return false };
    let mut open = expected == "…";
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        open = piece.is_empty();
    }
    open || rest.is_empty()
}

/// Runs one command of a block in a shell that knows `mainstay`.
fn run(world: &World, command: &str) -> String {
    match command {
        "kill -9 the-worker" => {
            let mut events = world.follow(0);
            kill(world.worker_pid());
            // What follows is typed by hand, after the daemon has heard of it.
            events.wait_until(|event| event["body"]["reason"] == "workerLost");
            return String::new();
        }
        "kill -9 the-daemon" => {
            world.kill_daemon();
            return String::new();
        }
        _ => {}
    }
    let program = env!("CARGO_BIN_EXE_mainstay");
    let script = format!("mainstay() {{ '{program}' \"$@\"; }}\n{command}");
    let own = world.command();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).current_dir(own.get_current_dir().unwrap());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

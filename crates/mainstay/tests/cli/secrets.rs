//! A password that code asks for is shown to nobody and kept nowhere, whatever the language.

use std::path::PathBuf;

use crate::support::World;
use crate::support::terminal::Terminal;

/// Told apart from everything else in a home.
const SECRET: &str = "hunter-5c20de";
/// What is no secret is there: the search would find it.
const CONTROL: &str = "control-5c20de";

/// Code that asks for a password, prints it and gives it; and code that tells whether it has it.
struct Language {
    kind: &'static str,
    asks: &'static str,
    has_it: &'static str,
    raises: &'static str,
}

const FSHARP: Language = Language {
    kind: "fsharp",
    asks: "let key = Mainstay.password \"Key?\"\nprintfn \"control-5c20de %s\" key\nkey",
    has_it: "key.Length",
    raises: "failwith<unit> (Mainstay.password \"Key?\")",
};

const PYTHON: Language = Language {
    kind: "python3",
    asks: "import getpass; key = getpass.getpass('Key?'); print('control-5c20de', key); key",
    has_it: "len(key)",
    raises: "raise Exception(getpass.getpass('Key?'))",
};

fn assert_nowhere(world: &World, when: &str) {
    assert_eq!(world.files_with(SECRET), [""; 0].map(PathBuf::from), "{when}");
    assert_ne!(world.files_with(CONTROL), [""; 0].map(PathBuf::from), "{when}");
}

fn is_kept_nowhere(world: &World, language: &Language) {
    let mut daemon = world.command();
    assert!(daemon.env("MAINSTAY_LOG", "trace").arg("-d").status().unwrap().success());
    assert_eq!(world.run(["session", "new", "--name", "work", "--kind", language.kind]).code, 0);
    let ran =
        world.run_with_input(["eval", "--session", "work", language.asks], format!("{SECRET}\n").as_bytes());
    assert!(ran.code == 0 && ran.stdout.contains("control-5c20de ***"), "{ran:?}");
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
    let length = world.run(["eval", "--session", "work", "--json", language.has_it]).json();
    assert_eq!(length["value"], SECRET.len().to_string());
    let raised = world
        .run_with_input(["eval", "--session", "work", language.raises], format!("{SECRET}\n").as_bytes());
    assert!(raised.code == 1 && raised.stderr.contains("***"), "{raised:?}");

    // At a terminal.
    let terminal = Terminal::run(world.command().args(["eval", "--session", "work", language.asks]));
    terminal.wait_for("Key?");
    terminal.enter(SECRET);
    terminal.wait_for("control-5c20de ***");
    terminal.wait_for("control-5c20de ***");
    assert!(!terminal.written().contains(SECRET), "{}", terminal.written());
    assert_eq!(terminal.wait_for_end(), 0);

    // At the prompt.
    let terminal = Terminal::run(&world.command());
    terminal.wait_for_last_line("work>");
    for line in language.asks.lines().take(1) {
        terminal.enter(line);
    }
    terminal.wait_for("Key?");
    terminal.enter(SECRET);
    terminal.wait_for("*************");
    terminal.wait_for_last_line("work>");
    assert!(!terminal.written().contains(SECRET), "{}", terminal.written());

    let told = world.run(["events", "--session", "work"]).stdout;
    assert!(told.contains("with a secret, which is not kept") && !told.contains(SECRET), "{told}");
    assert_nowhere(world, "while the daemon runs");
    world.kill_everything();
    assert_nowhere(world, "after everything was killed");
    assert_eq!(world.run(["eval", "--session", "work", language.has_it]).code, 1, "nothing has it any more");
    let shown = world.run(["session", "show", "work"]).stdout;
    assert!(shown.contains("was left out: it asks for a secret, which is not kept; run it again"), "{shown}");
    let exported = world.run(["export", "work", "--format", "markdown"]).stdout;
    assert!(exported.contains(CONTROL) && !exported.contains(SECRET), "{exported}");
    assert_nowhere(world, "after a rebuilding");
}

#[test]
fn a_password_of_fsharp_is_kept_nowhere() {
    is_kept_nowhere(&World::new(), &FSHARP);
}

#[test]
fn a_password_of_python_is_kept_nowhere() {
    is_kept_nowhere(&World::with_jupyter(), &PYTHON);
}

#[test]
fn an_ask_for_a_secret_is_answered_from_a_file() {
    let world = World::scripted();
    world.eval("1");
    let mut running = world.start_eval("(Mainstay.password \"Key?\").Length");
    world.follow(0).wait_for("askRaised");
    let asks = world.run(["ask", "list", "--json"]).json();
    let ask = asks[0]["ask"].as_str().unwrap();
    let empty = world.run_with_input(["ask", "answer", ask], b"");
    assert!(empty.code == 1 && empty.stderr.contains("standard input has no line"), "{empty:?}");
    let answered = world.run_with_input(["ask", "answer", ask], format!("{SECRET}\n").as_bytes());
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(running.wait().unwrap().success());
}

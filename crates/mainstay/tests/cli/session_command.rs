//! Tests of `mainstay session list|new|show|stop|rename`.

use crate::support::World;

/// A listing without what changes from run to run.
fn stable(world: &World, text: &str) -> String {
    let root = world.work();
    let text = text.replace(root.parent().unwrap().to_str().unwrap(), "ROOT");
    text.lines()
        .map(|line| match line.split_once("  ") {
            Some((id, rest)) if id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit()) => {
                format!("ID  {rest}")
            }
            Some(_) | None => line.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn sessions_are_created_listed_renamed_and_put_to_rest() {
    let world = World::scripted();
    let created = world.run(["session", "new", "--name", "first"]);
    assert_eq!(created.code, 0, "{created:?}");
    insta::assert_snapshot!(stable(&world, &created.stdout), @"ID  Ready         fsharp   first  ROOT/work  just now");
    assert_eq!(world.run(["session", "rename", "first", "renamed"]).code, 0);
    insta::assert_snapshot!(stable(&world, &world.run(["session", "list", "--here"]).stdout), @"ID  Ready         fsharp   renamed  ROOT/work  just now");
    insta::assert_snapshot!(stable(&world, &world.run(["session", "stop", "renamed"]).stdout), @"ID  Uninitialized fsharp   renamed  ROOT/work  just now");
    assert_eq!(world.run(["session", "list", "--live"]).stdout, "");
    assert_eq!(world.eval("1 + 1")["value"], "2", "it is there again when it is used");
    insta::assert_snapshot!(stable(&world, &world.run(["session", "list"]).stdout), @"ID  Ready         fsharp   renamed  ROOT/work  just now  1 + 1");
}

#[test]
fn the_sessions_of_a_project_are_those_below_its_root() {
    let world = World::scripted();
    for folder in ["lab/.git", "lab/src/plots", "notes"] {
        std::fs::create_dir_all(world.work().join(folder)).unwrap();
    }
    for (name, folder) in [("root", "lab"), ("plots", "lab/src/plots"), ("notes", "notes")] {
        assert_eq!(world.run(["session", "new", "--name", name, "--directory", folder]).code, 0);
    }
    let of_project = |arguments: &[&str]| {
        let listed = world.run(["session", "list", "--json"].iter().chain(arguments)).json();
        let names =
            listed.as_array().unwrap().iter().map(|session| session["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(of_project(&["--project", "lab/src"]), ["plots", "root"]);
    assert_eq!(of_project(&["--project", "notes"]), ["notes"]);
    assert_eq!(of_project(&["--project"]), ["notes", "plots", "root"], "no project is around this folder");
    assert_eq!(world.run(["session", "list", "--project", "nowhere"]).code, 1);
    assert_eq!(world.run(["session", "list", "--project", "lab", "--here"]).code, 2);
}

#[test]
fn what_is_sent_again_under_its_id_is_done_once() {
    let world = World::scripted();
    let session = |arguments: &[&str]| {
        world.run(["session", "new", "--json"].iter().chain(arguments)).json()["session"].clone()
    };
    let first = session(&["--name", "one", "--id", "new-1"]);
    assert_eq!(session(&["--name", "one", "--id", "new-1"]), first);
    let rename = |to: &str| world.run(["session", "rename", first.as_str().unwrap(), to, "--id", "name-1"]);
    assert_eq!(rename("two").code, 0);
    assert_eq!(world.run(["session", "rename", "two", "three"]).code, 0);
    assert_eq!(rename("two").code, 0);
    assert_eq!(world.run(["session", "show", "--json", "three"]).json()["session"], first, "it stays so");
    insta::assert_snapshot!(rename("four").stderr, @"
    error: the command id `name-1` was used before, for a different command [command_conflict]
      Use a new id for a new command.
    ");
    insta::assert_snapshot!(world.run(["session", "stop", "three", "--if-version", "1"]).stderr, @"
    error: the session has version 2, and the command wants 1 [version_mismatch]
      Read the session again, and send the command under a new id if it still holds.
    ");
    assert_eq!(world.run(["session", "list", "--json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_session_is_named_by_its_id_the_end_of_it_or_its_name() {
    let world = World::scripted();
    let session = world.run(["session", "new", "--name", "one", "--json"]).json();
    let id = session["session"].as_str().unwrap();
    for reference in [id, &id[id.len() - 4..], session["shortId"].as_str().unwrap(), "one"] {
        assert_eq!(world.run(["session", "show", "--json", reference]).json()["session"], id, "{reference}");
    }
    let unknown = world.run(["session", "show", "nobody"]);
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(unknown.stderr, @"
    error: no session answers to `nobody` [session_not_found]
      List the sessions with `mainstay session list`.
    ");
}

#[test]
fn a_kind_that_nothing_runs_is_refused() {
    let world = World::new();
    let refused = world.run(["session", "new", "--kind", "cobol"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: there is no kernel for sessions of kind `cobol` [kernel_unknown]
      See `mainstay kernel list` for the kinds there are; `mainstay kernel install python` installs Python, other languages come with the Jupyter kernels of your environment.
    ");
}

#[test]
fn a_faulted_session_says_why_and_how_it_is_mended() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\nrestart-budget = 1\nrestart-first-ms = 1\n")
        .unwrap();
    assert_eq!(world.eval("let kept = 42")["success"], true);
    for _ in 0..2 {
        assert_eq!(world.run(["eval", "System.Environment.FailFast \"gone\""]).code, 1);
    }
    let id = world.session()["shortId"].as_str().unwrap().to_owned();
    let refused = world.run(["eval", "kept"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr.replace(&id, "ID"), @"
    error: cannot eval: the session is Faulted: the worker was lost 2 times in a row, last by signal 6 [not_offered]
      Stop it with `mainstay session stop ID` and use it again: its definitions are kept. Where they are what breaks it, `mainstay session reset --hard ID` drops them.
    ");
    let said = "
  the worker was lost 2 times in a row, last by signal 6
  Stop it with `mainstay session stop ID` and use it again: its definitions are kept. Where they are what breaks it, `mainstay session reset --hard ID` drops them.
";
    for shown in [world.run(["session", "show"]), world.run(["status"])] {
        assert!(shown.stdout.replace(&id, "ID").contains(said), "{}", shown.stdout);
    }
    assert_eq!(world.run(["session", "stop"]).code, 0);
    assert_eq!(world.eval("kept")["value"], "42");
}

/// Numbers change from run to run.
fn with_numbers_as_n(text: &str) -> String {
    let digits_as_n = text.replace(|c: char| c.is_ascii_digit(), "\u{0}");
    digits_as_n.split('\u{0}').filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("N")
}

#[test]
fn show_tells_the_story() {
    let world = World::new();
    world.eval("let x = 1");
    world.eval("x + y");
    let story = world.run(["session", "show"]).stdout;
    let told: Vec<&str> = story.lines().filter_map(|line| Some(line.split_once("Z  ")?.1)).collect();
    insta::assert_snapshot!(with_numbers_as_n(&told.join("\n")), @"
    cli       created `work` (fsharp)
    cli       warms up: started
    worker    ready: fsharp N.N, N replayed (N ms)
    cli       eval let x = N
    worker    done: val x: int = N (N ms)
    cli       eval x + y
    worker    failed: FSN: The value or constructor 'y' is not defined. (N ms)
    ");
}

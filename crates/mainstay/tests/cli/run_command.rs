//! `mainstay run`, against the real compiler where F# is looked at.

use std::process::{Command, Stdio};

use crate::support::terminal::Terminal;
use crate::support::{World, kill, python};
use serde_json::{Value, json};

const SCRIPT: &str = "\
open System

// %% a value
let a = 20
(* --- *)
printfn \"printed\"
// %%
a + 1
// %% [markdown]
// # Looked at
// %%
Mainstay.display [ 1; 5; 2 ]
// %%
let b = 2
let c = b + \"x\"
// %%
let d = a * 2
// %%

(* --- *)
d + 2
";

/// How often a cell was run, by how its code begins.
fn times(world: &World, code: &str) -> usize {
    let is_its = |event: &&Value| {
        event["kind"] == "evalRequested" && event["body"]["code"].as_str().unwrap().starts_with(code)
    };
    world.events().iter().filter(is_its).count()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_script_runs_up_to_the_first_cell_that_fails_and_goes_on_there() {
    let world = World::new();
    let script = world.work().join("a.fsx");
    std::fs::write(&script, SCRIPT).unwrap();
    let first = world.run(["run", "a.fsx"]);
    assert_eq!(first.code, 1);
    insta::assert_snapshot!(first.stdout, @"
    val a: int = 20
    printed
    val it: unit = ()
    val it: int = 21
    ▁█▃  3 numbers, 1 to 5
    val it: unit = ()
    ");
    insta::assert_snapshot!(first.stderr, @r#"
    error FS0001 (15,13): The type 'string' does not match the type 'int'
    15 | let c = b + "x"
       |             ^^^
    error FS0043 (15,11): The type 'string' does not match the type 'int'
    15 | let c = b + "x"
       |           ^
    cell 7 (line 14) did not run to its end; cells 8, 10 were not run
    "#);
    // The cells before the one that is put right do not run again.
    std::fs::write(&script, SCRIPT.replace("\"x\"", "1")).unwrap();
    let second = world.run(["run", "a.fsx"]);
    assert_eq!(second.code, 0, "{second:?}");
    insta::assert_snapshot!(second.stdout, @"
    val b: int = 2
    val c: int = 3
    val d: int = 40
    val it: int = 42
    ");
    assert_eq!([times(&world, "let a"), times(&world, "let b"), times(&world, "d + 2")], [1, 2, 1]);
    // All has run, until it is wanted again or what it defined is dropped.
    let third = world.run(["run", "a.fsx"]);
    assert_eq!((&*third.stdout, third.code), ("", 0));
    insta::assert_snapshot!(third.stderr, @"every cell ran before, as it is now; `--again` runs them again");
    assert_eq!(world.run(["run", "a.fsx", "--cell", "4", "--again"]).stdout, "val it: int = 21\n");
    assert_eq!(world.run(["session", "reset"]).code, 0);
    assert_eq!(world.run(["run", "a.fsx"]).code, 0);
    assert_eq!([times(&world, "let a"), times(&world, "a + 1")], [2, 3]);
}

#[test]
fn a_script_without_cells_runs_each_time_and_says_only_what_it_printed() {
    let world = World::scripted();
    let run = |script: &str| {
        std::fs::write(world.work().join("plain.fsx"), script).unwrap();
        let run = world.run(["run", "plain.fsx"]);
        (run.code, run.stdout, run.stderr)
    };
    let printed = (0, "hello\nval it: unit = ()\n".to_owned(), String::new());
    run("let warm = 1");
    assert_eq!([run("printfn \"hello\""), run("printfn \"hello\"")], [printed.clone(), printed]);
    let (code, _, stderr) = run("failwith \"no\"");
    assert_eq!(code, 1);
    assert!(stderr.starts_with("System.Exception: no\n") && !stderr.contains("cell"), "{stderr}");
}

#[test]
#[allow(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn a_notebook_goes_on_after_its_daemon_was_killed_and_keeps_what_came_of_its_cells() {
    let world = World::scripted();
    let wait =
        "printfn \"waits\"\nwhile not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 10";
    let sources = [
        "let a = 20",
        "printfn \"printed\"",
        "a + 1",
        "Mainstay.display (Mainstay.html \"<b>shown</b>\")",
        wait,
        "let b = a + 1",
        "eprintfn \"told\"",
        "b * 2",
        "failwith \"on purpose\"",
    ];
    let code = |source: &str| json!({ "cell_type": "code", "metadata": { "tags": ["kept"] }, "source": source, "outputs": [], "execution_count": null });
    let mut cells =
        vec![json!({ "cell_type": "markdown", "metadata": {}, "source": ["# Heading\n", "text"] })];
    cells.extend(sources.map(code));
    for (cell, number) in cells.iter_mut().zip(1..) {
        cell["id"] = json!(format!("own-{number}"));
    }
    let kernel = json!({ "name": ".net-fsharp", "display_name": ".NET (F#)", "language": "F#" });
    let notebook =
        json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": { "kernelspec": kernel }, "cells": cells });
    let file = world.work().join("a.ipynb");
    std::fs::write(&file, notebook.to_string()).unwrap();
    assert_eq!(world.run(["session", "new", "--name", "lab"]).code, 0);

    let mut events = world.follow(0);
    let running = world
        .command()
        .args(["run", "a.ipynb", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    events.wait_until(|event| {
        event["kind"] == "outputProduced" && event["body"]["text"].as_str().unwrap().contains("waits")
    });
    world.kill_everything();
    let cut_off = running.wait_with_output().unwrap();
    assert_eq!(cut_off.status.code(), Some(1), "{cut_off:?}");
    let told: Vec<(Value, Value, Value)> = lines(&String::from_utf8(cut_off.stdout).unwrap())
        .iter()
        .map(|line| (line["cell"].clone(), line["ending"].clone(), line["notRun"].clone()))
        .collect();
    let ran = |cell: u32, ending: &str| (json!(cell), json!(ending), Value::Null);
    let left = |cell: u32| (json!(cell), Value::Null, json!(true));
    let mut expected: Vec<_> = (2..6).map(|cell| ran(cell, "completed")).collect();
    expected.push(ran(6, "interrupted"));
    expected.extend((7..11).map(left));
    assert_eq!(told, expected);

    std::fs::write(world.work().join("go"), "").unwrap();
    let gone_on = world.run(["run", "a.ipynb", "--write"]);
    assert_eq!(gone_on.code, 1, "{gone_on:?}");
    insta::assert_snapshot!(gone_on.stdout, @"
    waits
    val it: unit = ()
    val b: int = 21
    val it: unit = ()
    val it: int = 42
    ");
    assert!(gone_on.stderr.contains("on purpose"), "{gone_on:?}");
    for source in &sources[..4] {
        assert_eq!(times(&world, source), 1, "{source}");
    }
    assert_eq!(times(&world, wait), 2);

    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let outputs: Vec<Vec<&str>> = written["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| {
            let outputs = cell["outputs"].as_array().map(Vec::as_slice).unwrap_or_default();
            outputs.iter().map(|output| output["output_type"].as_str().unwrap()).collect()
        })
        .collect();
    insta::assert_snapshot!(json!(outputs).to_string(), @r#"[[],["execute_result"],["stream","execute_result"],["execute_result"],["display_data","execute_result"],["stream","execute_result"],["execute_result"],["stream","execute_result"],["execute_result"],["error"]]"#);
    assert_eq!(written["cells"][3]["outputs"][0]["data"]["text/plain"], json!(["val it: int = 21"]));
    assert_eq!(written["cells"][9]["outputs"][0]["evalue"], "on purpose");
    assert_eq!(written["cells"][0], notebook["cells"][0]);
    assert_eq!(written["cells"][1]["metadata"], notebook["cells"][1]["metadata"]);
    let checked = Command::new(python())
        .args(["-c", "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn a_script_has_the_command_line_that_fsi_gives_it_and_other_code_has_the_sessions_own() {
    let world = World::new();
    let script = "let given = fsi.CommandLineArgs\n// %%\nprintfn \"%A\" fsi.CommandLineArgs\n";
    std::fs::write(world.work().join("a.fsx"), script).unwrap();
    let run = |arguments: &[&str]| world.run([&["run", "./a.fsx"], arguments].concat()).stdout;
    insta::assert_snapshot!(run(&["a", "b c", "--x"]), @r#"
    val given: string array = [|"./a.fsx"; "a"; "b c"; "--x"|]
    [|"./a.fsx"; "a"; "b c"; "--x"|]
    val it: unit = ()
    "#);
    assert_eq!(world.eval("fsi.CommandLineArgs")["value"], "[|\"fsi\"|]");
    // The same again has run before, and with others it has not.
    assert_eq!(run(&["a", "b c", "--x"]), "");
    insta::assert_snapshot!(run(&["--", "--x"]), @r#"
    val given: string array = [|"./a.fsx"; "--x"|]
    [|"./a.fsx"; "--x"|]
    val it: unit = ()
    "#);
    kill(world.worker_pid());
    assert_eq!(world.eval("given")["value"], r#"[|"./a.fsx"; "--x"|]"#);
}

#[test]
fn a_script_in_python_has_its_arguments_and_one_in_another_language_takes_none() {
    let world = World::with_jupyter();
    let script = "import sys\ngiven = sys.argv\n# %%\nprint(sys.argv)\nraise SystemError\n";
    std::fs::write(world.work().join("a.py"), script).unwrap();
    std::fs::write(world.work().join("a.sh"), "echo $1\n").unwrap();
    let own = world.run(["eval", "--kind", "python3", "import sys; print(sys.argv)"]).stdout;
    let run = world.run(["run", "--kind", "python3", "a.py", "a", "b c", "--x"]);
    assert_eq!(run.stdout, "['a.py', 'a', 'b c', '--x']\n");
    assert_eq!(world.run(["eval", "--kind", "python3", "print(sys.argv)"]).stdout, own);
    let mut events = world.follow(0);
    kill(world.worker_pid());
    events.wait_for("workerExited");
    let given = world.run(["eval", "--kind", "python3", "print(given)"]);
    assert_eq!((given.stdout.as_str(), given.stderr.as_str()), ("['a.py', 'a', 'b c', '--x']\n", ""));
    insta::assert_snapshot!(world.run(["run", "a.sh", "a"]).stderr, @"
    error: arguments is not valid: a session of kind `bash` takes none: only scripts in F# and Python do [invalid_argument]
      Correct it and try again.
    ");
}

#[test]
fn a_script_that_calls_exit_0_has_come_to_its_end() {
    let world = World::scripted();
    let run = |script: &str| {
        std::fs::write(world.work().join("a.fsx"), script).unwrap();
        let run = world.run(["run", "a.fsx"]);
        format!("{}\n{}", run.code, run.stderr)
    };
    insta::assert_snapshot!(run("let a = 1\n// %%\nexit 0\n"), @"
    0
    the code ended with exit code 0; the session is rebuilt from its earlier definitions
    ");
    insta::assert_snapshot!(run("let a = 1\n// %%\nexit 0\n// %%\nlet b = 2\n"), @"
    0
    the code ended with exit code 0; the session is rebuilt from its earlier definitions
    cell 2 (line 3) ended the run; cell 3 was not run
    ");
    insta::assert_snapshot!(run("let a = 1\n// %%\nexit 2\n// %%\nlet b = 2\n"), @"
    2
    the code ended with exit code 2; the session is rebuilt from its earlier definitions
    cell 2 (line 3) did not run to its end; cell 3 was not run
    ");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_runs() {
    let world = World::new();
    for (name, text) in [("a.txt", ""), ("a.ipynb", "{"), ("a.dib", "#!fsharp\n1")] {
        std::fs::write(world.work().join(name), text).unwrap();
    }
    let refused: Vec<String> = [
        vec!["run", "a.txt"],
        vec!["run", "none.fsx"],
        vec!["run", "a.ipynb"],
        vec!["run", "a.dib", "--write"],
        vec!["run", "a.dib", "--from", "2"],
    ]
    .into_iter()
    .map(|arguments| world.run(arguments).stderr)
    .collect();
    insta::assert_snapshot!(refused.concat(), @"
    error: file is not valid: `a.txt`: its name must end in .ipynb, .dib or, for a script in cells, in .fsx, .py, .ts, .js, .sh [invalid_argument]
      Correct it and try again.
    error: file is not valid: `none.fsx`: No such file or directory (os error 2) [invalid_argument]
      Correct it and try again.
    error: line 1 of the notebook cannot be read: EOF while parsing an object at column 1 [notebook_invalid]
      Save it as a Jupyter notebook of version 4, or give a script or a .dib file.
    error: write is not valid: only an .ipynb has a place for what comes of its cells [invalid_argument]
      Correct it and try again.
    error: from is not valid: there is no cell 2; there are 1 [invalid_argument]
      Correct it and try again.
    ");
    assert_eq!(world.daemon_pid(), None, "no daemon was started for it");
}

#[test]
fn a_script_is_run_at_the_prompt_and_goes_on_where_it_ended() {
    let world = World::scripted();
    std::fs::write(world.work().join("steps.fsx"), "let a = 20\n// %%\nlet b = a + missing\n").unwrap();
    let terminal = Terminal::open(&world);
    terminal.wait_for_last_line("work>");
    terminal.enter(":run steps.fsx");
    terminal.wait_for("cell 2 (line 3) did not run to its end");
    terminal.wait_for_last_line("work>");
    std::fs::write(world.work().join("steps.fsx"), "let a = 20\n// %%\nlet b = a + 1\n").unwrap();
    terminal.enter(":run steps.fsx");
    terminal.wait_for("[1/2] ran before");
    terminal.wait_for("val b: int = 21");
    terminal.wait_for_last_line("work>");
    terminal.enter(":run nothing.fsx");
    terminal.wait_for("`nothing.fsx`");
}

//! Forks, merges, search and files of sessions, with the real compiler where F# is looked at.

use crate::support::{Finished, World};

/// Runs code in a session; it must succeed.
fn eval(world: &World, session: &str, code: &str) -> String {
    let evaluated = world.run(["eval", "--json", "--session", session, code]);
    assert_eq!(evaluated.code, 0, "{code}: {evaluated:?}");
    evaluated.json()["value"].as_str().unwrap_or_default().to_owned()
}

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

/// A session with a type, an opened namespace, a loaded script and values.
fn lab(world: &World) {
    std::fs::write(world.work().join("units.fsx"), "let double x = 2 * x\n").unwrap();
    ok(world.run(["session", "new", "--name", "lab"]));
    for code in [
        "type Dog = { Name: string }",
        "open System.Collections.Generic",
        "#load \"units.fsx\"\nlet count = Units.double 21",
        "let kennel = Dictionary<string, Dog>()",
        "kennel.Add(\"rex\", { Name = \"Rex\" })",
        "count + 1",
    ] {
        eval(world, "lab", code);
    }
}

#[test]
fn a_fork_has_values_types_opened_namespaces_and_loaded_scripts_and_nothing_leaks() {
    let world = World::new();
    lab(&world);
    let forked = ok(world.run(["session", "fork", "lab", "--name", "idea"]));
    assert!(forked.stdout.contains("Ready") && forked.stdout.contains("idea"), "{forked:?}");
    assert_eq!(eval(&world, "idea", "it, kennel.[\"rex\"].Name, Units.double 2"), "(43, \"Rex\", 4)");
    assert_eq!(eval(&world, "idea", "Dictionary<int, Dog>().Count"), "0");
    eval(&world, "idea", "kennel.Clear()\nlet count = 0\nlet mine = { Name = \"Bo\" }");
    assert_eq!(eval(&world, "lab", "kennel.Count, count"), "(1, 42)");
    eval(&world, "lab", "let count = -1");
    assert_eq!(eval(&world, "idea", "kennel.Count, count, mine.Name"), "(0, 0, \"Bo\")");
    let unknown = world.run(["eval", "--session", "lab", "mine"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
}

#[test]
fn a_cut_moves_to_keep_an_output_with_its_input_and_a_merge_says_what_was_not_run() {
    let world = World::new();
    lab(&world);
    let forked = ok(world.run(["session", "fork", "lab", "--at", "5", "--name", "early"]));
    insta::assert_snapshot!(forked.stderr.lines().next().unwrap(), @"it begins with 6 entries, not 5: an output stays with its input");
    assert_eq!(eval(&world, "early", "count"), "42");
    assert_eq!(world.run(["eval", "--session", "early", "kennel"]).code, 1);
    let merged = world.run(["session", "merge", "lab", "9,7,11", "--into", "early"]);
    assert_eq!(merged.code, 0, "they run in the order of the transcript: {merged:?}");
    assert_eq!(eval(&world, "early", "kennel.Count"), "1");
    let again = world.run(["session", "merge", "lab", "9-12", "--into", "early"]);
    assert_eq!(again.code, 1);
    let said: Vec<&str> = again.stderr.lines().filter(|line| !line.starts_with("   at ")).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    entry 9:
    System.ArgumentException: An item with the same key has already been added. Key: rex
    entry 9 did not run to its end
    not run: 11
    0 of 2 were applied
    ");
}

#[test]
fn what_was_said_is_found_by_a_word_in_its_output() {
    let world = World::scripted();
    ok(world.run(["session", "new", "--name", "lab"]));
    eval(&world, "lab", "for i in 1 .. 5000 do printfn \"line %d\" i\nprintfn \"the needle\"");
    let found = ok(world.run(["search", "needle", "--role", "output", "--json"])).json();
    assert_eq!((&found[0]["name"], found.as_array().unwrap().len()), (&"lab".into(), 1));
    assert!(found[0]["snippet"].as_str().unwrap().contains("the needle"), "{found}");
    let shown = |arguments: &[&str]| {
        ok(world.run(["session", "transcript", "lab", "--from", "2"].iter().chain(arguments))).stdout
    };
    assert!(!shown(&[]).contains("needle") && shown(&["--full"]).contains("the needle\n"));
    let nothing = world.run(["search", "nothingofit"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""));
    assert_eq!(world.run(["search", "->"]).code, 2);
}

#[test]
fn a_session_is_handed_over_as_one_file() {
    let world = World::new();
    lab(&world);
    ok(world.run(["export", "lab", "--output", "lab.jsonl"]));
    let meant = world.run(["export", "lab.ipynb"]);
    assert!(meant.stderr.contains("`--output lab.ipynb` writes that file"), "{meant:?}");
    let there = world.run(["export", "lab", "--output", "lab.jsonl"]);
    assert_eq!(there.code, 1, "{there:?}");
    let colleague = World::new();
    let (from, to) = (world.work().join("lab.jsonl"), colleague.work().join("lab.jsonl"));
    std::fs::copy(&from, &to).unwrap();
    let config = colleague.home().join("config.toml");
    std::fs::write(&config, "[limits]\nmessage-bytes = 66000\n").unwrap();
    let too_large = colleague.run(["import", "lab.jsonl"]);
    assert!(too_large.code == 1 && too_large.stderr.contains("`message-bytes` is 66000"), "{too_large:?}");
    std::fs::remove_file(config).unwrap();
    ok(colleague.run(["stop"]));
    ok(colleague.run(["import", "lab.jsonl"]));
    assert_eq!(eval(&colleague, "lab", "it, kennel.[\"rex\"].Name"), "(43, \"Rex\")");
    let fresh = ok(colleague.run(["import", "lab.jsonl", "--name", "fresh"]));
    assert!(fresh.stdout.contains("fresh"), "{fresh:?}");
    let text = std::fs::read_to_string(&to).unwrap();
    std::fs::write(&to, text.replace("Rex", "Max")).unwrap();
    let damaged = colleague.run(["import", "lab.jsonl"]);
    assert_eq!(damaged.code, 1);
    insta::assert_snapshot!(damaged.stderr, @"
    error: line 6 of the file cannot be imported: its events do not come to its entries [import_invalid]
      Copy the file whole; where it is an exported session, export it again.
    ");
    let script = ok(world.run(["export", "lab", "--format", "fsx"])).stdout;
    insta::assert_snapshot!(script, @r#"
    // %%
    type Dog = { Name: string }

    // %%
    open System.Collections.Generic

    // %%
    #load "units.fsx"
    let count = Units.double 21

    // %%
    let kennel = Dictionary<string, Dog>()

    // %%
    kennel.Add("rex", { Name = "Rex" })

    // %%
    count + 1
    "#);
    let notebook = ok(world.run(["export", "lab", "--format", "dib"])).stdout;
    insta::assert_snapshot!(notebook, @r#"
    #!meta

    {"kernelInfo":{"defaultKernelName":"fsharp","items":[{"aliases":[],"languageName":"fsharp","name":"fsharp"}]}}

    #!fsharp

    type Dog = { Name: string }

    #!fsharp

    open System.Collections.Generic

    #!fsharp

    #load "units.fsx"
    let count = Units.double 21

    #!fsharp

    let kennel = Dictionary<string, Dog>()

    #!fsharp

    kennel.Add("rex", { Name = "Rex" })

    #!fsharp

    count + 1
    "#);
}

#[test]
fn entries_are_put_at_a_place_and_the_session_is_built_anew_with_them() {
    let world = World::scripted();
    ok(world.run(["session", "new", "--name", "lab"]));
    eval(&world, "lab", "let rate = 2");
    eval(&world, "lab", "let total = rate * 21");
    ok(world.run(["session", "new", "--name", "idea"]));
    eval(&world, "idea", "let rate = 4");
    let put = ok(world.run(["session", "merge", "idea", "1", "--at", "1", "--into", "lab", "--id", "once"]));
    insta::assert_snapshot!(put.stdout, @"2 entries put behind the first 2, not 1: what belongs together stays so");
    assert!(put.stderr.contains("not quite what it was"), "another value is told: {put:?}");
    assert_eq!(eval(&world, "lab", "total"), "84");
    let shown = ok(world.run(["session", "transcript", "lab"])).stdout;
    assert!(shown.contains("   3 > let rate = 4"), "{shown}");
    let lineage = ok(world.run(["session", "lineage", "lab"])).stdout;
    assert!(lineage.contains("8 entries, 2 of them merged from "), "{lineage}");
    let again =
        ok(world.run(["session", "merge", "idea", "1", "--at", "1", "--into", "lab", "--id", "once"]));
    assert_eq!(again.stdout, put.stdout);
    let nowhere = world.run(["session", "merge", "idea", "1", "--at", "99", "--into", "lab"]);
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
}

#[test]
fn an_entry_gets_a_label_which_transcripts_and_files_have() {
    let world = World::scripted();
    world.eval("let rate = 2");
    let label = |arguments: &[&str]| world.run(["session", "label"].iter().chain(arguments));
    let labeled = || -> Vec<(usize, String)> {
        let shown = world.run(["session", "transcript", "--json"]).stdout;
        let entries = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let labels = entries.map(|entry| entry["label"].as_str().map(str::to_owned));
        (1..).zip(labels).filter_map(|(number, label)| Some((number, label?))).collect()
    };
    let given = label(&["work", "2", "the good one"]);
    assert_eq!((given.code, given.stderr.as_str()), (0, "entry 2 is called the good one\n"));
    assert_eq!(labeled(), [(2, "the good one".to_owned())]);
    assert_eq!(label(&["work", "--json"]).json()[0]["index"], 1);
    assert_eq!(world.run(["export", "work", "--output", "lab.jsonl"]).code, 0);
    assert_eq!(world.run(["import", "lab.jsonl", "--name", "copy"]).code, 0);
    assert!(label(&["copy"]).stdout.starts_with("   2  the good one  "), "{}", label(&["copy"]).stdout);
    assert_eq!(label(&["work", "2", ""]).stderr, "entry 2 has no label\n");
    assert_eq!(label(&["copy", "2", "--remove"]).code, 0);
    assert_eq!((label(&["work"]).stdout, label(&["copy"]).stdout), {
        let none = "no entry has a label\n".to_owned();
        (none.clone(), none)
    });
    for wrong in
        [&["work", "2"][..], &["work", "0", "x"], &["work", "--remove"], &["work", "2", "x", "--remove"]]
    {
        assert_eq!(label(wrong).code, 2, "{wrong:?}");
    }
    assert_eq!(label(&["work", "3", "x"]).code, 1);
}

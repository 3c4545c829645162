//! `mainstay import` of what Claude Code and pi wrote, and what can be done with it. No compiler is needed for that.

use std::path::{Path, PathBuf};

use crate::support::{Finished, World};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/samples").join(name)
}

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

fn imported(world: &World, file: &str) -> Finished {
    ok(world.run(["import".as_ref(), sample(file).as_os_str()]))
}

/// Without ids, and how long ago something was.
fn steady(text: &str) -> String {
    let steady = |line: &str| match (line.get(..8), line.rsplit_once("  ")) {
        (Some(id), Some((before, _))) if id.chars().all(|c| c.is_ascii_hexdigit()) => {
            format!("SESSION{}\n", &before[8..])
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(steady).collect()
}

#[test]
fn a_conversation_with_claude_code_is_imported_and_read() {
    let world = World::new();
    let Finished { stdout, stderr, .. } = imported(&world, "claude-code-branches.jsonl");
    insta::assert_snapshot!(steady(&stdout), @"SESSION  Uninitialized agent    A plot  /home/ada/plot");
    insta::assert_snapshot!(stderr, @"15 entries, from a file of Claude Code; left out: 1 `attachment` lines, 1 `file-history-snapshot` lines, 1 `queue-operation` lines, 3 messages of other branches, 2 messages of sidechains, 1 torn last line");
    insta::assert_snapshot!(ok(world.run(["session", "transcript", "A plot"])).stdout, @r#"
     1 user
         What is in this picture?
     2 user
         [image, 86 bytes]
     3 thinking
         [redacted_thinking, 46 bytes]
     4 assistant
         I look at two files.
     5 tool call Read
         {"file_path":"a.txt"}
     6 tool call Read
         {"file_path":"b.txt"}
     7 tool result
         one
         two
     8 tool result, failed
         no such file
     9 assistant
         A plot.
    10 user
         Another idea.
    11 system
         A notice.
    12 assistant
         A better one.
    13 summary of 12 entries
         A picture of a plot; another idea was better.
    14 user
         Go on.
    15 assistant
         On it goes.
    "#);
    let found = ok(world.run(["search", "better", "--role", "summary", "--kind", "agent"])).stdout;
    insta::assert_snapshot!(steady(&found), @"
    SESSION  A plot  entry 13  /home/ada/plot
      summary: A picture of a plot; another idea was better.
    ");
}

#[test]
fn an_import_says_in_json_what_it_was_and_what_was_left_out() {
    let world = World::new();
    let file = sample("pi.jsonl");
    let json = ok(world.run(["import".as_ref(), file.as_os_str(), "--json".as_ref()])).json();
    let expected = serde_json::json!({
        "`custom` entries": 1,
        "`model_change` entries": 1,
        "`thinking_level_change` entries": 1,
        "messages of other branches": 2,
    });
    assert_eq!((&json["format"], &json["entries"], &json["leftOut"]), (&"pi".into(), &14.into(), &expected));
    assert_eq!((&json["kind"], &json["workingDirectory"]), (&"agent".into(), &"/home/ada/words".into()));
    assert_eq!(json["usage"]["input"], 280);
    assert_eq!(json["offered"], serde_json::json!(["status", "start"]));
    let transcript = ok(world.run(["session", "transcript", "Count words"])).stdout;
    assert!(transcript.contains("label: the end"), "{transcript}");
    let shown = ok(world.run(["session", "show", "Count words"])).stdout;
    assert!(shown.contains("  280 tokens in, 26 out; cache: 5 read, 7 written\n"), "{shown}");
}

#[test]
fn a_conversation_is_compacted_forked_and_handed_over_and_takes_no_code() {
    let world = World::new();
    imported(&world, "claude-code.jsonl");
    let name = "Two words by two commands";
    let compacted = ok(world
        .run_with_input(["session", "compact", name, "--before", "6", "--summary", "-"], b"Two words.\n"));
    insta::assert_snapshot!(compacted.stderr, @"the summary stands for 3 entries of Two words by two commands, not 5: a call stays with its result");
    ok(world.run(["session", "fork", name, "--name", "idea"]));
    let last = ok(world.run(["session", "transcript", "idea", "--from", "17"])).stdout;
    insta::assert_snapshot!(last, @"
    17 assistant
         Certainly.
    18 summary of 3 entries
         Two words.
    ");
    let refused = world.run(["eval", "--session", "idea", "1 + 1"]);
    insta::assert_snapshot!(refused.stderr, @"
    error: cannot eval in a session of the kind `agent` [not_of_kind]
      Prompt it: `mainstay prompt --session`, or at its prompt: `mainstay --session`.
    ");
    assert_eq!(refused.code, 1);
    ok(world.run(["session", "new", "--kind", "agent"]));
    ok(world.run(["export", "idea", "--output", "idea.jsonl"]));
    ok(world.run(["import", "idea.jsonl", "--name", "copy"]));
    let written = ok(world.run(["export", "copy"])).stdout;
    let file = std::fs::read_to_string(world.work().join("idea.jsonl")).unwrap();
    let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (written, file) = (body(&written), body(&file));
    assert_eq!(
        written[..written.len() - 1],
        file[..file.len() - 1],
        "all but the name, and the hash over it"
    );
    let script = world.run(["export", "idea", "--format", "fsx"]);
    insta::assert_snapshot!(script.stderr, @"
    error: format is not valid: `fsx` is for sessions of `fsharp`, and this one is of `agent`; there are ipynb and markdown [invalid_argument]
      Correct it and try again.
    ");
}

#[test]
fn what_is_to_run_does_not_go_into_a_conversation_of_the_same_folder() {
    let world = World::scripted();
    let first = world.eval("let x = 1");
    let file = std::fs::read_to_string(sample("pi.jsonl")).unwrap();
    let here = world.work().canonicalize().unwrap().display().to_string();
    std::fs::write(world.work().join("here.jsonl"), file.replace("/home/ada/words", &here)).unwrap();
    ok(world.run(["import", "here.jsonl"]));
    let again = world.eval("x");
    assert_eq!((&again["session"], &again["value"]), (&first["session"], &"1".into()));
}

#[test]
fn a_damaged_file_is_refused_by_its_line() {
    let world = World::new();
    let file = std::fs::read_to_string(sample("pi.jsonl")).unwrap();
    std::fs::write(world.work().join("damaged.jsonl"), file.replacen("\"type\":\"message\"", "\"type\"", 1))
        .unwrap();
    let damaged = world.run(["import", "damaged.jsonl"]);
    insta::assert_snapshot!(damaged.stderr, @"
    error: line 4 of the file cannot be imported: expected `:` at column 8 [import_invalid]
      Copy the file whole; where it is an exported session, export it again.
    ");
    std::fs::write(world.work().join("none.jsonl"), "{\"type\":\"user\"}\n").unwrap();
    let none = world.run(["import", "none.jsonl"]);
    insta::assert_snapshot!(none.stderr, @"
    error: line 1 of the file cannot be imported: this is no exported session, nor one of Claude Code or pi: missing field `format` at line 1 column 15 [import_invalid]
      Copy the file whole; where it is an exported session, export it again.
    ");
    assert_eq!((damaged.code, none.code), (1, 1));
}

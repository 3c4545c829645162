//! `mainstay eval`, against the real compiler where F# is looked at.

use crate::support::World;
use serde_json::{Value, json};

/// What does not change from run to run.
fn stable(mut eval: Value) -> Value {
    for name in ["session", "command", "durationMs", "seq"] {
        assert!(!eval[name].is_null(), "{name}: {eval}");
        eval[name] = json!("…");
    }
    eval
}

#[test]
fn an_eval_tells_its_value_its_type_and_its_output() {
    let world = World::new();
    insta::assert_json_snapshot!(stable(world.eval("printfn \"hello\"\neprintfn \"oops\"\n6 * 7")), @r#"
    {
      "command": "…",
      "diagnostics": [],
      "display": "val it: int = 42",
      "durationMs": "…",
      "ending": "completed",
      "seq": "…",
      "session": "…",
      "stderr": "oops\n",
      "stdout": "hello\n",
      "success": true,
      "type": "int",
      "value": "42",
      "version": 1
    }
    "#);
    insta::assert_json_snapshot!(stable(world.eval("let square x = x * x\nlet name = \"Ada\"")), @r#"
    {
      "bindings": [
        {
          "name": "square",
          "valueType": "x: int -> int"
        },
        {
          "name": "name",
          "value": "\"Ada\"",
          "valueType": "string"
        }
      ],
      "command": "…",
      "diagnostics": [],
      "display": "val square: x: int -> int\nval name: string = \"Ada\"",
      "durationMs": "…",
      "ending": "completed",
      "seq": "…",
      "session": "…",
      "stderr": "",
      "stdout": "",
      "success": true,
      "type": null,
      "value": null,
      "version": 2
    }
    "#);
}

#[test]
fn a_failed_eval_exits_with_1_and_keeps_its_output_and_exact_positions() {
    let world = World::new();
    let rejected = world.run(["eval", "--json", "let a = 1\nlet b = a + \"x\""]);
    assert_eq!(rejected.code, 1);
    insta::assert_json_snapshot!(stable(rejected.json()), @r#"
    {
      "command": "…",
      "diagnostics": [
        {
          "code": "FS0001",
          "end": {
            "column": 16,
            "line": 2
          },
          "message": "The type 'string' does not match the type 'int'",
          "severity": "error",
          "start": {
            "column": 13,
            "line": 2
          }
        },
        {
          "code": "FS0043",
          "end": {
            "column": 12,
            "line": 2
          },
          "message": "The type 'string' does not match the type 'int'",
          "severity": "error",
          "start": {
            "column": 11,
            "line": 2
          }
        }
      ],
      "durationMs": "…",
      "ending": "rejected",
      "seq": "…",
      "session": "…",
      "stderr": "",
      "stdout": "",
      "success": false,
      "type": null,
      "value": null,
      "version": 0
    }
    "#);
    let raised = world.run(["eval", "--json", "printfn \"before\"\n(failwith \"no\" : int)"]);
    assert_eq!(raised.code, 1);
    let raised = raised.json();
    assert_eq!((&raised["success"], &raised["stdout"]), (&json!(false), &json!("before\n")));
    assert_eq!(raised["error"]["message"], "no");
}

/// One session for what asserts nothing of what the session had before.
#[test]
fn code_comes_from_everywhere_is_split_and_judged_as_fsharp_and_is_shown_to_people() {
    let world = World::new();
    for_people_the_value_stands_on_stdout_and_the_diagnostics_on_stderr(&world);
    code_comes_from_an_argument_from_stdin_from_a_pipe_and_from_a_file(&world);
    submissions_are_split_where_the_language_says_so(&world);
    unterminated_strings_and_comments_are_rejected_with_a_position(&world);
}

fn for_people_the_value_stands_on_stdout_and_the_diagnostics_on_stderr(world: &World) {
    let shown = world.run(["eval", "printfn \"hi\"; [1..3]"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "hi\nval it: int list = [1; 2; 3]\n"));
    let shown = world.run(["eval", "let f a =\n    a + undefined"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(shown.stderr, @"
    error FS0039 (2,9): The value or constructor 'undefined' is not defined.
    2 |     a + undefined
      |         ^^^^^^^^^
    ");
}

fn code_comes_from_an_argument_from_stdin_from_a_pipe_and_from_a_file(world: &World) {
    assert_eq!(world.run(["eval", "let a = 1"]).code, 0);
    assert_eq!(world.run_with_input(["eval", "-"], b"let b = a + 1").code, 0);
    assert_eq!(world.run_with_input([] as [&str; 0], b"let c = b + 1").code, 0);
    std::fs::write(world.work().join("d.fsx"), "let d = c + 1\nprintfn \"%s\" __SOURCE_FILE__").unwrap();
    let file = world.run(["eval", "--json", "--file", "d.fsx"]).json();
    assert_eq!(file["stdout"], "d.fsx\n");
    assert_eq!(world.eval("a, b, c, d")["value"], "(1, 2, 3, 4)");
}

#[test]
fn what_the_compiler_said_of_code_that_exits_is_not_lost_with_its_worker() {
    let world = World::new();
    // It was said of this submission and the one before it.
    let code =
        "let head = function x :: _ -> x;;\nlet rest = function _ :: xs -> xs\nprintfn \"done\"\nexit 0";
    let script = world.run_with_input([] as [&str; 0], code.as_bytes());
    assert_eq!((script.code, script.stdout.as_str()), (0, "done\n"));
    insta::assert_snapshot!(script.stderr, @"
    warning FS0025 (1,12): Incomplete pattern matches on this expression. For example, the value '[]' may indicate a case not covered by the pattern(s).
    1 | let head = function x :: _ -> x;;
      |            ^^^^^^^^
    warning FS0025 (2,12): Incomplete pattern matches on this expression. For example, the value '[]' may indicate a case not covered by the pattern(s).
    2 | let rest = function _ :: xs -> xs
      |            ^^^^^^^^
    the code ended with exit code 0; the session is rebuilt from its earlier definitions
    ");
}

#[test]
fn the_exit_code_of_code_is_that_of_the_command_and_for_json_it_did_not_run_to_its_end() {
    let world = World::scripted();
    assert_eq!(world.run(["eval", "exit 3"]).code, 3);
    assert_eq!(world.run_with_input([] as [&str; 0], b"exit 3").code, 3);
    for code in ["exit 0", "exit 3"] {
        let told = world.run(["eval", "--json", code]);
        assert_eq!((told.code, &told.json()["success"]), (1, &json!(false)), "{code}");
    }
    let killed = "System.Diagnostics.Process.GetCurrentProcess().Kill()";
    assert_eq!(world.run(["eval", killed]).code, 1, "a crash is no exit");
}

#[test]
fn the_same_id_gets_the_same_answer_and_the_code_runs_once() {
    let world = World::scripted();
    let once = |code: &str| world.run(["eval", "--id", "mine", code]);
    let first = once("printfn \"ran\"; eprintfn \"warned\"; exit 3");
    assert_eq!((first.code, first.stdout.as_str()), (3, "ran\n"));
    world.run(["stop"]);
    let again = once("printfn \"ran\"; eprintfn \"warned\"; exit 3");
    assert_eq!((again.code, again.stdout, again.stderr), (first.code, first.stdout, first.stderr));
    let requests = world.events().iter().filter(|event| event["kind"] == "evalRequested").count();
    assert_eq!(requests, 1);
    let other = once("1 + 1");
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("[command_conflict]"), "{other:?}");
    assert_eq!(world.run(["eval", "--id", "", "1"]).code, 2);
}

#[test]
fn sessions_of_other_folders_are_not_touched() {
    let world = World::scripted();
    assert_eq!(world.run(["eval", "let here = 1"]).code, 0);
    let elsewhere = world.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = world.command().current_dir(&elsewhere).args(["eval", "here"]).output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert_eq!(world.run(["session", "list"]).stdout.lines().count(), 2);
}

fn submissions_are_split_where_the_language_says_so(world: &World) {
    let code = "let s = \";; \"\" (* \";; (* nested ;; *) let t = @\"\\;;\";; (* a (* b ;; *) \"*)\" ;; *) s.Length + t.Length;;";
    let eval = world.eval(&code.replace("\";; \"\" (* \"", "\";; (* \""));
    assert_eq!(eval["success"], true, "{eval}");
}

#[test]
fn what_is_no_code_is_refused_with_the_reason() {
    let world = World::scripted();
    let refused = |input: &[u8]| {
        let finished = world.run_with_input(["eval", "-"], input);
        (finished.code, finished.stderr)
    };
    insta::assert_debug_snapshot!(refused(b"let x = \"\xff\""), @r#"
    (
        1,
        "error: the code cannot be run: it is not UTF-8 at byte 9 [code_invalid]\n  Send UTF-8 text without NUL characters.\n",
    )
    "#);
    insta::assert_debug_snapshot!(refused(b"let x = \0"), @r#"
    (
        1,
        "error: the code cannot be run: it has a NUL at byte 8 [code_invalid]\n  Send UTF-8 text without NUL characters.\n",
    )
    "#);
    insta::assert_debug_snapshot!(refused(&[b'1'; 10_000_000]), @r#"
    (
        1,
        "error: the code has 10000000 bytes; 4194304 are accepted [code_too_large]\n  Split it, load it with `#load`, or raise `code-bytes`.\n",
    )
    "#);
    assert_eq!(world.run(["eval"]).code, 2);
    assert_eq!(world.run(["eval", "--file", "missing.fsx"]).code, 1);
}

fn unterminated_strings_and_comments_are_rejected_with_a_position(world: &World) {
    for code in ["let s = \"never closed", "(* never closed", "let s = \"\"\"never closed\n\n"] {
        let eval = world.eval(code);
        assert_eq!(eval["ending"], "rejected", "{eval}");
        let begins_there =
            |diagnostic: &Value| diagnostic["severity"] == "error" && diagnostic["start"]["line"] == 1;
        assert!(eval["diagnostics"].as_array().unwrap().iter().any(begins_there), "{eval}");
    }
    assert_eq!(world.eval("1 + 1")["value"], "2");
}

#[test]
fn a_ten_megabyte_line_runs_where_the_limit_allows_it() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ncode-bytes = 20000000\n").unwrap();
    let line = format!("let s = \"{}\" in s.Length", "x".repeat(10_000_000));
    assert_eq!(world.eval(&line)["value"], "10000000");
}

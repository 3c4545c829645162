//! Code that reads its input asks, and whoever is attached answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::terminal::{CTRL_C, CTRL_D, Terminal};
use crate::support::{Finished, Follower, World, within};
use serde_json::Value;

const READS_A_NAME: &str = "printf \"Name? \"\nlet name = stdin.ReadLine()";

/// Code that was begun, and the events since.
struct Begun {
    child: Child,
    events: Follower,
}

impl Begun {
    fn new(world: &World, code: &str) -> Self {
        let before = world.eval("let kept = 41");
        let child = world.start_eval(code);
        Self { child, events: world.follow(before["seq"].as_u64().unwrap()) }
    }

    /// What came of it.
    fn end(self) -> Value {
        serde_json::from_slice(&self.child.wait_with_output().unwrap().stdout).unwrap()
    }
}

/// The only ask that waits.
fn the_ask(world: &World) -> Value {
    let asks = world.run(["ask", "list", "--json"]).json();
    let [ask] = asks.as_array().unwrap().as_slice() else { panic!("{asks}") };
    ask.clone()
}

fn answer(world: &World, text: &str) -> Finished {
    let ask = the_ask(world);
    world.run(["ask", "answer", ask["shortId"].as_str().unwrap(), text])
}

#[test]
fn code_that_reads_a_line_waits_for_it() {
    let world = World::scripted();
    let mut begun = Begun::new(&world, READS_A_NAME);
    begun.events.wait_for("askRaised");
    let ask = the_ask(&world);
    assert_eq!(ask["prompt"], "Name?");
    let listed = world.run(["ask", "list", "--session", "work"]).stdout;
    assert_eq!(listed.lines().next(), Some(format!("{} Name?", ask["shortId"].as_str().unwrap()).as_str()));
    let answered = answer(&world, "Ada");
    assert_eq!((answered.code, answered.stderr.as_str()), (0, ""));
    let eval = begun.end();
    assert_eq!((&eval["ending"], &eval["stdout"]), (&"completed".into(), &"Name? ".into()), "{eval}");
    assert_eq!(world.eval("name")["value"], "\"Ada\"");
    assert_eq!(world.run(["ask", "list"]).stdout, "nothing waits for an answer\n");
}

#[test]
fn fsharp_asks_for_each_line_with_what_it_printed_and_is_answered_with_lines_and_the_end_of_the_input() {
    let world = World::new();
    let reads = "printf \"Name? \"\n(stdin.ReadLine(), System.Console.ReadLine(), isNull (stdin.ReadLine()))";
    let mut begun = Begun::new(&world, reads);
    for (prompt, text) in
        [("Name?", "Ada"), ("the code reads a line", "36"), ("the code reads a line", "\u{4}")]
    {
        begun.events.wait_for("askRaised");
        assert_eq!(the_ask(&world)["prompt"], prompt);
        assert_eq!(answer(&world, text).code, 0);
    }
    assert_eq!(begun.end()["value"], "(\"Ada\", \"36\", true)");
}

#[test]
fn cancelling_code_that_waits_for_a_line_keeps_its_worker() {
    let world = World::scripted();
    // However slow the machine, the code has the time to yield.
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    let mut begun = Begun::new(&world, READS_A_NAME);
    let worker = world.worker_pid();
    begun.events.wait_for("askRaised");
    assert_eq!(world.run(["cancel"]).code, 0);
    assert_eq!(begun.events.wait_for("askEnded")["body"]["ending"], "cancelled");
    assert_eq!(begun.events.wait_for("evalCancelled")["body"]["ending"], "yielded");
    assert_eq!(begun.end()["ending"], "cancelled");
    assert_eq!(world.worker_pid(), worker);
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_eq!(world.eval("name")["ending"], "rejected");
}

#[test]
fn a_rebuilt_session_has_what_it_was_answered_and_does_not_ask_again() {
    let world = World::new();
    let mut begun = Begun::new(&world, READS_A_NAME);
    begun.events.wait_for("askRaised");
    answer(&world, "Ada");
    begun.end();
    world.kill_everything();
    assert_eq!(world.eval("name")["value"], "\"Ada\"");
    let events = world.events();
    assert_eq!(events.iter().filter(|event| event["kind"] == "askRaised").count(), 1);
    let rebuilt = events.iter().rfind(|event| event["kind"] == "warmUpCompleted").unwrap();
    assert_eq!(rebuilt["body"]["replayed"], 2, "{rebuilt}");
    assert!(rebuilt["body"]["diverged"].is_null(), "{rebuilt}");
}

#[test]
fn where_nobody_answers_in_time_the_code_reads_the_end_of_its_input() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\nask-ms = 50\n").unwrap();
    assert_eq!(world.eval("isNull (stdin.ReadLine())")["value"], "true");
}

/// Runs code on a terminal.
fn eval_on_terminal(world: &World, code: &str) -> Terminal {
    Terminal::run(world.command().args(["eval", code]))
}

#[test]
fn a_person_who_runs_code_is_asked_on_the_spot() {
    let world = World::scripted();
    let terminal = eval_on_terminal(&world, "(printf \"Name? \"; stdin.ReadLine()), stdin.ReadLine()");
    terminal.wait_for_last_line("Name?");
    terminal.enter("Ada");
    terminal.wait_for_last_line("the code reads a line");
    terminal.enter("Lovelace");
    terminal.wait_for("val it: string * string = (\"Ada\", \"Lovelace\")");
    assert_eq!(terminal.screen().matches("Name?").count(), 1, "{}", terminal.screen());
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn a_person_who_is_asked_is_told_that_someone_else_answered() {
    let world = World::scripted();
    world.eval("1");
    let terminal = eval_on_terminal(&world, "stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    assert_eq!(answer(&world, "Ada").code, 0);
    terminal.wait_for("\ncli answered \"Ada\" [ask ");
    terminal.wait_for("val it: string = \"Ada\"");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn a_person_who_is_asked_may_cancel_or_end_the_input() {
    let world = World::new();
    world.eval("1");
    let terminal = eval_on_terminal(&world, "stdin.ReadLine() |> isNull, stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press(CTRL_D);
    let ended = || world.events().iter().any(|event| event["kind"] == "askEnded");
    assert!(within(Duration::from_secs(20), ended), "{}", terminal.screen());
    terminal.enter("Ada");
    terminal.wait_for("val it: bool * string = (true, \"Ada\")");
    assert_eq!(terminal.wait_for_end(), 0);

    let terminal = eval_on_terminal(&world, "stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press(CTRL_C);
    assert_eq!(terminal.wait_for_end(), 1);
    assert_eq!(world.session()["state"], "Ready");
}

#[test]
fn code_reads_what_comes_through_a_pipe_line_by_line() {
    let world = World::new();
    let code = "printf \"Name? \"\nlet name = stdin.ReadLine()\nname, int (stdin.ReadLine()) + 1";
    let evaluated = world.run_with_input(["eval", code], b"Ada\n41\nnever read\n");
    assert_eq!(
        evaluated.stdout.lines().last(),
        Some("val it: string * int = (\"Ada\", 42)"),
        "{evaluated:?}"
    );
    assert_eq!(evaluated.stderr, "", "{evaluated:?}");

    std::fs::write(world.work().join("quiz.fsx"), "stdin.ReadLine()\n// %%\nstdin.ReadLine()\n").unwrap();
    let ran = world.run_with_input(["run", "quiz.fsx"], b"one\ntwo\n");
    assert!(ran.stdout.contains("\"one\"") && ran.stdout.contains("\"two\""), "{ran:?}");
}

#[test]
fn a_pipe_is_the_input_itself_whole_and_with_its_end() {
    let world = World::new();
    let value = |code: &str, input: &[u8]| {
        let evaluated = world.run_with_input(["eval", code], input);
        assert_eq!((evaluated.code, evaluated.stderr.as_str()), (0, ""), "{evaluated:?}");
        evaluated.stdout.trim_end().to_owned()
    };
    assert_eq!(value("stdin.ReadToEnd()", b"l1\nl2\n"), "val it: string = \"l1\nl2\n\"");
    assert_eq!(
        value("stdin.ReadLine(), stdin.ReadToEnd()", b"l1\nl2\nl3"),
        "val it: string * string = (\"l1\", \"l2\nl3\")"
    );
    let lines = "[ while stdin.Peek() >= 0 do stdin.ReadLine() ]";
    assert_eq!(value(lines, b"a\nb\n"), "val it: string list = [\"a\"; \"b\"]");
    assert_eq!(
        value("isNull (stdin.ReadLine()), stdin.ReadToEnd()", b""),
        "val it: bool * string = (true, \"\")"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn standard_input_opened_as_a_stream_is_the_same_input() {
    let world = World::new();
    let opens = "let rest () =\n    use stream = System.Console.OpenStandardInput()\n    use copy = new System.IO.MemoryStream()\n    stream.CopyTo copy\n    copy.ToArray()";
    assert_eq!(world.eval(opens)["success"], true);
    let value = |code: &str, input: &str| world.run_with_input(["eval", code], input.as_bytes()).stdout;
    insta::assert_snapshot!(value("stdin.ReadLine(), rest (), stdin.ReadToEnd()", "l1\ndrü\n"), @r#"
    val it: string * byte array * string =
      ("l1", [|100uy; 114uy; 195uy; 188uy; 10uy|], "")
    "#);
    assert_eq!(value("rest ()", ""), "val it: byte array = [||]\n");
    assert_eq!(world.run(["ask", "list"]).stdout, "nothing waits for an answer\n");
}

#[test]
fn what_is_not_asked_for_stays_in_the_input() {
    let world = World::scripted();
    let path = world.work().join("names");
    std::fs::write(&path, "Ada\nGrace\n").unwrap();
    let mut names = std::fs::File::open(&path).unwrap();
    let own = names.try_clone().unwrap();
    let evaluated = world.command().args(["eval", "stdin.ReadLine()"]).stdin(own).output().unwrap();
    assert_eq!(String::from_utf8(evaluated.stdout).unwrap(), "val it: string = \"Ada\"\n");
    let mut rest = String::new();
    names.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "Grace\n");
}

/// A command whose input is a pipe that is silent so far, and what it says on standard error.
fn piped(world: &World, arguments: [&str; 2]) -> (Child, impl Iterator<Item = String>) {
    let mut command = world.command();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let says = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    (child, says)
}

#[test]
fn a_line_of_a_pipe_is_for_the_next_who_asks_where_someone_else_was_quicker() {
    let world = World::scripted();
    world.eval("1");
    let quiz = "stdin.ReadLine()\n// %%\n1 + 1\n// %%\nstdin.ReadLine()\n";
    std::fs::write(world.work().join("quiz.fsx"), quiz).unwrap();
    let (mut run, mut says) = piped(&world, ["run", "quiz.fsx"]);
    says.find(|line| line.ends_with("answers it")).unwrap();
    assert_eq!(answer(&world, "other").code, 0);
    says.find(|line| line.contains("answered")).unwrap();
    run.stdin.take().unwrap().write_all(b"one\n").unwrap();
    let said = String::from_utf8(run.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("\"other\"") && said.contains("\"one\""), "{said}");
}

#[test]
fn where_nothing_comes_through_a_pipe_it_is_said_how_to_answer() {
    let world = World::scripted();
    world.eval("1");
    let (mut child, mut says) = piped(&world, ["eval", "stdin.ReadLine()"]);
    says.find(|line| line.ends_with("answers it")).unwrap();
    // It may come all the same.
    child.stdin.take().unwrap().write_all(b"late\n").unwrap();
    assert_eq!(
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(),
        "val it: string = \"late\"\n"
    );
}

#[test]
fn without_a_terminal_it_is_said_how_to_answer() {
    let world = World::scripted();
    world.eval("1");
    let mut child = world.start_eval("stdin.ReadLine()");
    let mut says = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let note = says.find(|line| line.ends_with("answers it")).unwrap();
    let id = the_ask(&world)["shortId"].as_str().unwrap().to_owned();
    assert_eq!(note, format!("  `mainstay ask answer {id} ANSWER` answers it"));
    let command: Vec<_> = note.split('`').nth(1).unwrap().split(' ').skip(1).collect();
    assert_eq!(world.run(command).code, 0);
    let eval: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(eval["value"], "\"ANSWER\"");
}

/// Runs code of another kernel that reads a pipe, and gives what it prints.
fn piped_to(session: &str, world: &World, code: &str, input: &[u8]) -> String {
    let ran = world.run_with_input(["eval", "--session", session, code], input);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran.stdout
}

#[test]
fn a_pipe_is_the_input_of_python_whole_and_with_its_end() {
    let world = World::with_jupyter();
    for kind in ["python3", "xpython"] {
        assert_eq!(world.run(["session", "new", "--name", "py", "--kind", kind]).code, 0);
        assert_eq!(world.run(["eval", "--session", "py", "import sys, getpass, hashlib"]).code, 0);
        let printed = |code: &str, input: &[u8]| piped_to("py", &world, code, input);
        assert_eq!(printed("print([sys.stdin.read()])", b"l1\nl2"), "['l1\\nl2']\n");
        assert_eq!(printed("print([sys.stdin.read(), sys.stdin.read()])", b""), "['', '']\n");
        let both = "print([input('? '), sys.stdin.readline(), getpass.getpass(), sys.stdin.read()])";
        assert_eq!(printed(both, b"a\nb\nsecret\nc\n"), "['a', 'b\\n', '***', 'c\\n']\n");
        assert_eq!(printed("for line in sys.stdin: print([line])", b"a\r\nb"), "['a\\n']\n['b']\n");
        let ends =
            "for asks in (input, getpass.getpass):\n    try: asks()\n    except EOFError: print('end')";
        assert_eq!(printed(ends, b""), "end\nend\n");
        // More than a pipe or a chunk holds, and no text.
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect();
        let sum = printed("print(sum(sys.stdin.buffer.read()))", &bytes);
        assert_eq!(
            sum.trim().parse::<u64>().unwrap(),
            bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        );
        let counted = "print(sum(len(chunk) for chunk in iter(lambda: sys.stdin.buffer.read(1000), b'')))";
        assert_eq!(printed(counted, &bytes), "300000\n");
        printed("kept = [sys.stdin.readline(), sys.stdin.buffer.read()]", b"a\n\xff");
        world.kill_everything();
        let kept = world.run(["eval", "--session", "py", "print(kept)"]).stdout;
        assert_eq!(kept, "['a\\n', b'\\xff']\n", "a rebuilt session has its input");
        assert_eq!(world.run(["ask", "list"]).stdout, "nothing waits for an answer\n");
        assert_eq!(world.run(["session", "delete", "py", "--yes"]).code, 0);
    }
}

#[test]
fn a_pipe_is_the_input_of_deno_whole_and_with_its_end() {
    let world = World::with_jupyter();
    assert_eq!(world.run(["session", "new", "--name", "deno", "--kind", "deno"]).code, 0);
    let printed = |code: &str, input: &[u8]| piped_to("deno", &world, code, input);
    let prompts = "console.log(JSON.stringify([prompt('? '), prompt(), prompt()]))";
    assert_eq!(printed(prompts, b"a\n\n"), "[\"a\",\"\",null]\n");
    let text = "console.log(JSON.stringify([await new Response(Deno.stdin.readable).text()]))";
    assert_eq!(printed(text, "l1\nlü".as_bytes()), "[\"l1\\nlü\"]\n");
    assert_eq!(printed(text, b""), "[\"\"]\n");
    let reads = "const room = new Uint8Array(4); console.log(Deno.stdin.readSync(room), room[0], await Deno.stdin.read(room), Deno.stdin.readSync(room))";
    assert_eq!(printed(&format!("{{ {reads} }}"), b"\xff\nb"), "2 255 1 null\n");
    let large = vec![200; 3_000_000];
    let counts = "console.log((await new Response(Deno.stdin.readable).arrayBuffer()).byteLength)";
    assert_eq!(printed(counts, &large), "3000000\n");
    assert_eq!(world.run(["ask", "list"]).stdout, "nothing waits for an answer\n");
}

#[test]
fn python_reads_ten_megabytes_of_a_pipe() {
    let world = World::with_jupyter();
    assert_eq!(world.run(["session", "new", "--name", "py", "--kind", "python3"]).code, 0);
    assert_eq!(world.run(["eval", "--session", "py", "import sys"]).code, 0);
    let line = "0123456789abcdefghijklmnopqrstuvwxyzé\n";
    let lines = 10_000_000 / line.len();
    let input = line.repeat(lines);
    let counts = |code: &str| piped_to("py", &world, code, input.as_bytes()).trim().parse::<usize>().unwrap();
    assert_eq!(counts("print(len(sys.stdin.read().encode()))"), input.len());
    assert_eq!(counts("print(sum(1 for line in sys.stdin))"), lines);
}

#[test]
fn input_that_is_too_large_ends_the_code_that_reads_it() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ninput-bytes = 1000\n").unwrap();
    let ran = world.run_with_input(["eval", "stdin.ReadToEnd().Length"], "x".repeat(2000).as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("it has 2002 bytes as JSON; `input-bytes` allows 1000"), "{ran:?}");
    let state = || world.session()["state"].clone();
    while state() != "Ready" {}
    let settings = "[limits]\ninput-bytes = 1000000\nmessage-bytes = 100000\n";
    std::fs::write(world.home().join("config.toml"), settings).unwrap();
    world.run(["stop"]);
    let ran = world.run_with_input(["eval", "stdin.ReadToEnd().Length"], "x".repeat(200_000).as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("`message-bytes` allows 100000"), "{ran:?}");
    while state() != "Ready" {}
    let read = world.run_with_input(["eval", "stdin.ReadToEnd().Length"], "x".repeat(900).as_bytes());
    assert_eq!(read.stdout, "val it: int = 900\n", "{read:?}");
}

#[test]
fn fsharp_reads_ten_megabytes_of_a_pipe() {
    let world = World::new();
    let input = "0123456789abcdefghijklmnopqrstuvwxyz\u{e9}\n".repeat(256 * 1024);
    let read = world.run_with_input(["eval", "stdin.ReadToEnd().Length"], input.as_bytes());
    assert_eq!(read.stdout, format!("val it: int = {}\n", input.chars().count()), "{read:?}");
}

//! The prompt, typed at in a terminal.

use std::time::{Duration, Instant};

use crate::support;
use crate::support::World;
use crate::support::terminal::{ALT_ENTER, CTRL_C, CTRL_D, CTRL_R, ENTER, LEFT, TAB, Terminal, UP};

/// The prompt of the working folder's session.
const PROMPT: &str = "work>";

/// A prompt that waits for input.
fn open(world: &World) -> Terminal {
    let terminal = Terminal::open(world);
    terminal.wait_for("Type F#, or :help");
    terminal.wait_for_last_line(PROMPT);
    terminal
}

/// Types a line of unfinished code, after which the editor begins the next with its indentation: it does so for people, who see it.
fn begin_line_after(terminal: &Terminal, line: &str) {
    terminal.enter(line);
    terminal.wait_until(line, |screen| {
        let mut lines = screen.trim_end().lines().rev();
        lines.next().is_some_and(|last| last.trim() == "·")
            && lines.next().is_some_and(|last| last.ends_with(line))
    });
}

#[test]
fn a_person_defines_completes_cancels_and_leaves() {
    let world = World::new();
    let terminal = open(&world);
    terminal.wait_for("Started just now • Last active just now");

    terminal.enter("let x = 21;;");
    terminal.wait_for("val x: int = 21");
    terminal.enter("x * 2");
    terminal.wait_for("val it: int = 42");

    begin_line_after(&terminal, "let double y =");
    begin_line_after(&terminal, "let twice = y * 2");
    begin_line_after(&terminal, "twice");
    terminal.press(ENTER);
    terminal.wait_for("val double: y: int -> int");

    terminal.press("List.ma");
    terminal.press(TAB);
    terminal.wait_for("mapFoldBack  function");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);

    terminal.enter(&format!("printfn \"begun\"; {}", support::NEVER_YIELDS));
    terminal.wait_until("begun", |screen| screen.lines().any(|line| line == "begun"));
    terminal.press(CTRL_C);
    terminal.wait_for("cancelling …");
    terminal.wait_for("the session is rebuilt from its earlier definitions");
    terminal.enter("x");
    terminal.wait_for("val it: int = 21");

    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(world.eval("x")["value"], "21", "the session goes on");
}

#[test]
fn a_person_types_python_whose_kernel_says_what_is_finished() {
    let world = World::with_jupyter();
    std::fs::write(world.work().join("pyproject.toml"), "").unwrap();
    let terminal = Terminal::open(&world);
    terminal.wait_for("Type python, or :help");
    terminal.wait_for_last_line("work>");
    terminal.enter("x = 41");
    terminal.wait_for_last_line("work>");
    begin_line_after(&terminal, "def double(y):");
    begin_line_after(&terminal, "return y * 2");
    terminal.enter("");
    terminal.wait_for_last_line("work>");
    terminal.enter("double(x + 1)");
    terminal.wait_for("84");

    terminal.press("x.bit_le");
    terminal.press(TAB);
    terminal.wait_for("x.bit_length");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line("work>");

    // A completer may take its time, as the first question to IPython does.
    terminal.enter(
        "slow = type('Slow', (), {'__dir__': lambda _: __import__('time').sleep(2) or ['in_the_end']})()",
    );
    terminal.wait_for_last_line("work>");
    terminal.press("slow.in_t");
    terminal.press(TAB);
    terminal.wait_for("slow.in_the_end");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line("work>");

    terminal.enter("input('Your name? ').upper()");
    terminal.wait_for("Your name?");
    terminal.enter("ada");
    terminal.wait_for("'ADA'");

    terminal.enter("1 / 0");
    terminal.wait_for("ZeroDivisionError: division by zero");

    terminal.enter("print('begun', flush=True)");
    terminal.wait_until("begun", |screen| screen.lines().any(|line| line == "begun"));
    terminal.enter("import time; print('asleep'); time.sleep(1000)");
    terminal.wait_until("asleep", |screen| screen.lines().any(|line| line == "asleep"));
    terminal.press(CTRL_C);
    terminal.wait_for("cancelling …");
    terminal.wait_for_last_line("work>");
    terminal.enter("x");
    terminal.wait_until("41", |screen| screen.lines().any(|line| line == "41"));

    terminal.enter(":values");
    terminal.wait_for("double");
    terminal.enter(":nowarn 1");
    terminal.wait_for("there is no command `:nowarn`");
    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn two_people_on_one_session_see_each_other() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let mine = 1");
    terminal.wait_for("val mine: int = 1");
    begin_line_after(&terminal, "let half =");
    terminal.press(&format!("typed{LEFT}{LEFT}"));
    terminal.wait_for_last_line("    ·     typed");
    assert_eq!(world.eval("printfn \"hello\"\nlet theirs = mine + 1")["success"], true);
    terminal.wait_for("cli│ val theirs: int = 2");
    terminal.wait_for_last_line("    ·     typed");
    let screen = terminal.screen();
    let shown: Vec<_> = screen.lines().filter(|line| line.starts_with("cli")).collect();
    assert_eq!(
        shown,
        ["cli> printfn \"hello\"", "cli> let theirs = mine + 1", "cli│ hello", "cli│ val theirs: int = 2"]
    );
    assert_eq!(screen.matches("let half =").count(), 1, "the prompt stands once:\n{screen}");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("theirs + 40");
    terminal.wait_for("val it: int = 42");
}

#[test]
fn ctrl_c_takes_code_back_that_waits_for_somebody_elses() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let mine = 1");
    terminal.wait_for("val mine: int = 1");
    let theirs = world.start_eval("System.Threading.Thread.Sleep -1");
    terminal.wait_for("cli> System.Threading.Thread.Sleep -1");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("let never = 2");
    terminal.wait_for("waits for the code of cli to end …");
    terminal.press(CTRL_C);
    terminal.wait_for("the command was cancelled; nothing came of it");
    terminal.wait_for_last_line(PROMPT);
    assert_eq!(world.session()["state"], "Evaluating");
    terminal.enter(":cancel");
    assert_eq!(theirs.wait_with_output().unwrap().status.code(), Some(1));
    terminal.enter("mine + 1");
    terminal.wait_for("val it: int = 2");
}

#[test]
fn what_was_typed_outlives_a_crash_of_the_daemon() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let kept = 41");
    terminal.wait_for("val kept: int = 41");
    terminal.press("kept + 1");
    terminal.wait_for_last_line("work> kept + 1");
    world.kill_daemon();
    let crashed = Instant::now();
    terminal.wait_for("connected again: work is Ready");
    assert!(crashed.elapsed() < Duration::from_secs(15), "it was taken for a daemon that is stopping");
    terminal.wait_for_last_line("work> kept + 1");
    terminal.press(ENTER);
    terminal.wait_for("val it: int = 42");
}

#[test]
fn a_daemon_that_was_stopped_is_started_again_only_when_it_is_needed() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let kept = 41");
    terminal.wait_for("val kept: int = 41");
    assert_eq!(world.run(["stop"]).code, 0);
    terminal.wait_for("the daemon was stopped; what you run next starts it again");
    assert_eq!(world.daemon_pid(), None);
    terminal.enter("kept + 1");
    terminal.wait_for("val it: int = 42");
}

#[test]
fn what_was_typed_is_found_again_in_another_terminal() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let first = 1");
    terminal.wait_for("val first: int = 1");
    terminal.enter(" let secret = 2");
    terminal.wait_for("val secret: int = 2");
    terminal.press(CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);

    let terminal = open(&world);
    terminal.press(UP);
    terminal.wait_for_last_line("work> let first = 1");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.press(CTRL_R);
    terminal.press("fir");
    terminal.wait_for("(search: fir) let first = 1");
}

#[test]
fn lines_of_another_terminal_are_found_with_the_next_prompt_and_those_of_other_folders_by_search() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let here = 1");
    terminal.wait_for("val here: int = 1");
    let there = world.work().join("there");
    std::fs::create_dir(&there).unwrap();
    assert_eq!(world.run(["session", "new", "--name", "away", "--directory", "there"]).code, 0);
    let other = Terminal::run(world.command().args(["--session", "away"]));
    other.wait_for_last_line("away>");
    other.press(UP);
    other.press("let away = 2");
    other.wait_for_last_line("away> let away = 2");
    other.press(ENTER);
    other.wait_for("val away: int = 2");
    other.enter(":switch work");
    other.wait_for_last_line(PROMPT);
    other.enter("let beside = 3");
    other.wait_for("val beside: int = 3");

    terminal.enter("here");
    terminal.wait_for("val it: int = 1");
    terminal.wait_for_last_line(PROMPT);
    terminal.press(UP);
    terminal.wait_for_last_line("work> here");
    terminal.press(UP);
    terminal.wait_for_last_line("work> let beside = 3");
    terminal.press(UP);
    terminal.wait_for_last_line("work> let here = 1");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.press(CTRL_R);
    terminal.press("let ");
    terminal.wait_for("(search: let ) let beside = 3");
    terminal.press(CTRL_R);
    terminal.wait_for("(search: let ) let here = 1");
    terminal.press(CTRL_R);
    terminal.wait_for("(search, other folders: let ) let away = 2");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":history LET");
    terminal.wait_for("let here = 1  ");
    terminal.wait_for("let beside = 3  ");
    assert!(!terminal.screen().contains("let away = 2  "), "{}", terminal.screen());
}

#[test]
fn a_line_that_is_withheld_waits_at_the_prompt_and_not_in_the_session() {
    let world = World::scripted();
    let terminal = open(&world);
    let theirs = world.start_eval("System.Threading.Thread.Sleep -1");
    terminal.wait_for("cli> System.Threading.Thread.Sleep -1");
    terminal.enter(" 20 + 22");
    terminal.wait_for("waits for the code of cli to end");
    assert_eq!(world.run(["cancel"]).code, 0);
    terminal.wait_for("val it: int = 42");
    theirs.wait_with_output().unwrap();
    assert!(world.events().iter().all(|event| event["kind"] != "commandQueued"));
}

#[test]
fn a_large_block_is_recalled_whole() {
    let world = World::scripted();
    let terminal = open(&world);
    let block: String = (0..1000).map(|index| format!("let value_{index} = {index}\n")).collect();
    terminal.paste(&format!("{block}let last = 12345"));
    terminal.wait_for("let last = 12345");
    terminal.press(ENTER);
    terminal.wait_for("val last: int = 12345");
    let kept = world.run(["history", "--json"]).json();
    let kept = kept.as_array().unwrap().last().unwrap();
    assert_eq!(kept["content"]["bytes"].as_u64().unwrap() as usize, block.len() + "let last = 12345".len());
    terminal.press(CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);
    let terminal = open(&world);
    terminal.press(UP);
    terminal.wait_for("let value_0 = 0");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("last");
    terminal.wait_for("val it: int = 12345");
}

#[test]
fn what_no_daemon_took_and_what_earlier_versions_kept_is_taken_over() {
    let world = World::scripted();
    let old = world.home().join("history");
    std::fs::write(&old, "let of_before = 1\nlet block =<\\n>    2\n").unwrap();
    let terminal = open(&world);
    terminal.press(UP);
    terminal.wait_for_last_line("    ·     2");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("let kept = 41");
    terminal.wait_for("val kept: int = 41");
    assert!(!old.exists(), "its lines are in the store");
    assert_eq!(world.run(["stop"]).code, 0);
    terminal.wait_for("the daemon was stopped; what you run next starts it again");
    terminal.enter(":frobnicate");
    terminal.wait_for("there is no command");
    terminal.press(CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);
    assert!(world.home().join("history.unsent").exists());
    let terminal = open(&world);
    terminal.press(UP);
    terminal.wait_for_last_line("work> :frobnicate");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("kept");
    terminal.wait_for("val it: int = 41");
    assert!(!world.home().join("history.unsent").exists());
    let all = world.run(["history", "--json"]).json();
    let texts: Vec<&str> =
        all.as_array().unwrap().iter().map(|line| line["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["let of_before = 1", "let block =\n    2", "let kept = 41", ":frobnicate", "kept"]);
}

#[test]
fn code_that_exits_is_told_as_eval_tells_it() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("exit 3");
    terminal.wait_for("the code ended with exit code 3; the session is rebuilt");
    assert!(!terminal.screen().contains("WorkerExited"), "{}", terminal.screen());
}

#[test]
fn lines_are_pasted_or_begun_without_running() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.paste("let a = 1\nlet b = 2\n");
    terminal.wait_for("· let b = 2");
    terminal.press(ENTER);
    terminal.wait_for("val b: int = 2");
    terminal.press("let c = 3");
    terminal.press(ALT_ENTER);
    terminal.enter("let d = c + 1");
    terminal.wait_for("val d: int = 4");
}

#[test]
fn fsharp_has_the_layout_of_what_an_editor_sends_line_by_line_and_documents_its_names() {
    let world = World::new();
    let terminal = open(&world);
    let sent = [
        "let f x =",
        "    let y = x + 1",
        "",
        "    match y with",
        "    | 1 -> 10",
        "    | _ ->",
        "        y * 2",
        "let g = f 3",
        "g + 1;;",
        "",
    ];
    terminal.press(&sent.join(ENTER));
    terminal.wait_for("val it: int = 9");

    terminal.enter("#help \"List.map\";;");
    terminal.wait_for("Builds a new collection");
    terminal.enter("#exit;;");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn what_is_typed_while_code_runs_stands_at_the_next_prompt() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("printfn \"begun\"; System.Threading.Thread.Sleep 500");
    terminal.wait_until("begun", |screen| screen.lines().any(|line| line == "begun"));
    terminal.press("20 + 22");
    terminal.wait_for_last_line("work> 20 + 22");
    let screen = terminal.screen();
    assert_eq!(screen.matches("20 + 22").count(), 1, "it stands once:\n{screen}");
    terminal.press(ENTER);
    terminal.wait_for("val it: int = 42");
}

/// The end of the id of the only ask that waits.
fn the_ask(world: &World) -> String {
    world.run(["ask", "list", "--json"]).json()[0]["shortId"].as_str().unwrap().to_owned()
}

#[test]
fn what_the_code_asks_is_answered_on_the_spot() {
    let world = World::scripted();
    let terminal = open(&world);
    let asks = "(printf \"first\\nName? \"; stdin.ReadLine()), stdin.ReadLine(), (printf \"Last? \"; stdin.ReadLine())";
    terminal.enter(asks);
    terminal.wait_for_last_line("Name?");
    terminal.enter("Ada");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press("half");
    terminal.wait_for_last_line("the code reads a line half");
    world.run(["session", "rename", "work", "lab"]);
    terminal.wait_until("a line half, further down", |screen| {
        screen.contains("cli renamed to `lab`") && screen.trim_end().ends_with("the code reads a line half")
    });
    terminal.press(ENTER);
    terminal.wait_for_last_line("Last?");
    terminal.enter("List.ma");
    terminal.wait_for("(\"Ada\", \"half\", \"List.ma\")");
    let screen = terminal.screen();
    assert!(screen.contains("\nfirst\nName? Ada\n"), "{screen}");
    assert!(screen.contains("\nthe code reads a line half\nLast? List.ma\n"), "{screen}");
    assert_eq!(screen.matches("Name?").count(), 2, "the code, and the question once:\n{screen}");
    terminal.wait_for_last_line("lab>");
    terminal.press(UP);
    terminal.wait_until("the code", |screen| screen.trim_end().ends_with(asks));
}

#[test]
fn a_question_that_someone_else_answers_is_over() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press("never sent");
    terminal.wait_for_last_line("the code reads a line never sent");
    let ask = the_ask(&world);
    assert_eq!(world.run(["ask", "answer", &ask, "Ada"]).code, 0);
    terminal.wait_for(&format!("· cli answered \"Ada\" [ask {ask}]"));
    terminal.wait_for("val it: string = \"Ada\"");
    terminal.wait_for_last_line(PROMPT);
}

#[test]
fn who_is_asked_may_cancel_or_end_the_input() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    let terminal = open(&world);
    terminal.enter("let kept = 41");
    terminal.wait_for("val kept: int = 41");
    let worker = world.worker_pid();
    terminal.enter("stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press(CTRL_C);
    terminal.wait_until("cancelled", |screen| screen.lines().any(|line| line == "cancelled"));
    terminal.wait_for_last_line(PROMPT);
    assert_eq!(world.worker_pid(), worker);

    terminal.enter("kept, isNull (stdin.ReadLine())");
    terminal.wait_for_last_line("the code reads a line");
    terminal.press(CTRL_D);
    terminal.wait_for("(41, true)");
}

#[test]
fn what_others_ask_is_shown_and_answered_at_the_prompt() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter(":asks");
    terminal.wait_for("nothing waits for an answer");
    let theirs = world.start_eval("printf \"Name? \"; stdin.ReadLine()");
    terminal.wait_for("· cli asks: Name? • :answer ");
    let ask = the_ask(&world);
    terminal.enter(&format!(":answer {ask} Ada"));
    terminal.wait_for(&format!("· terminal answered \"Ada\" [ask {ask}]"));
    assert_eq!(theirs.wait_with_output().unwrap().status.code(), Some(0));
    terminal.wait_for("cli│ val it: string = \"Ada\"");

    let mut raise = world.command();
    let mut raised = raise.args(["ask", "raise", "--yes-no", "Deploy?"]).spawn().unwrap();
    terminal.wait_for("· cli asks: Deploy? (yes or no) • :answer ");
    let ask = the_ask(&world);
    terminal.enter(&format!(":answer {ask} maybe"));
    terminal.wait_for("[answer_invalid]");
    terminal.enter(":asks");
    terminal.wait_for(&format!("\n{ask} Deploy? (yes or no)\n"));
    terminal.enter(&format!(":answer {ask} yes"));
    assert_eq!(raised.wait().unwrap().code(), Some(0));
    terminal.enter(&format!(":answer {ask} yes"));
    terminal.wait_for("[ask_not_pending]");
}

#[test]
fn commands_act_on_the_session() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter(":frobnicate");
    terminal.wait_for("there is no command `:frobnicate`; there are :help");
    terminal.enter("let x = 1");
    terminal.wait_for("val x: int = 1");
    terminal.enter(":reset");
    terminal.wait_for("this drops what `work` has defined, with 1 value (x). Go on? [Y/n]");
    terminal.enter("n");
    terminal.wait_for("nothing was reset");
    terminal.enter("x + 1");
    terminal.wait_for("val it: int = 2");
    terminal.enter(":hard-reset");
    terminal.wait_until("the second question", |screen| screen.matches("Go on? [Y/n]").count() > 1);
    terminal.enter("");
    terminal.wait_for("the session starts afresh in a new process");
    terminal.wait_for("`:fork --before-reset` makes a session of what was there");
    terminal.enter("x");
    terminal.wait_for("error FS0039 (1,1)");
    terminal.enter(":fork --before-reset as it was");
    terminal.wait_for_last_line("as it was>");
    terminal.enter("x + 2");
    terminal.wait_for("val it: int = 3");
    terminal.enter(":sessions");
    terminal.wait_for("forked off work after");
    terminal.enter(":switch 2");
    terminal.wait_for_last_line("work>");
    terminal.enter(":rename lab");
    terminal.wait_for_last_line("lab>");
    terminal.enter(":new other");
    terminal.wait_for_last_line("other>");
    terminal.press(":switch l");
    terminal.press(TAB);
    terminal.wait_for_last_line("other> :switch lab");
    terminal.press(ENTER);
    terminal.wait_for_last_line("lab>");
    terminal.enter("#quit;;");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn a_fork_goes_on_apart_and_its_cells_are_brought_back() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let rate = 2");
    terminal.wait_for("val rate: int = 2");
    terminal.enter("let later = 3");
    terminal.wait_for("val later: int = 3");

    terminal.enter("/fork 1 \"b tree\"");
    terminal.wait_for("it begins with 2 entries, not 1: an output stays with its input");
    terminal.wait_for_last_line("b tree>");
    terminal.enter("later");
    terminal.wait_for("error FS0039");
    terminal.enter("let total n = n * rate");
    terminal.wait_for("val total: n: int -> int");
    terminal.enter("let answer = (printfn \"counted\"; total 21)");
    terminal.wait_for("val answer: int = 42");
    terminal.enter(":lineage");
    terminal.wait_for("  b tree  after 2, ");
    terminal.enter(":transcript 5");
    terminal.wait_for("   5 > let total n = n * rate\n");
    let screen = terminal.screen();
    assert!(!screen.contains("   1 > let rate"), "{screen}");

    terminal.press("/session w");
    terminal.press(TAB);
    terminal.wait_for_last_line("b tree> /session work");
    terminal.press(ENTER);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":search counted");
    terminal.wait_for("  b tree  entry 7  ");
    terminal.press(":cherry-pick b");
    terminal.press(TAB);
    terminal.wait_for_last_line("work> :cherry-pick b tree");
    terminal.enter(" 7 --context 2");
    terminal.wait_for("entry 5:\nval total: n: int -> int\nentry 7:\ncounted\nval answer: int = 42\n");
    terminal.enter("answer, later");
    terminal.wait_for("val it: int * int = (42, 3)");
}

/// Waits until the last lines of the screen are a menu with these choices.
fn wait_for_menu(terminal: &Terminal, choices: &[&str]) {
    terminal.wait_until(&format!("{choices:?}"), |screen| {
        let lines: Vec<_> = screen.trim_end().lines().map(str::trim).collect();
        lines.ends_with(choices)
    });
}

#[test]
fn tab_proposes_the_numbers_of_entries_and_the_files_that_a_command_takes() {
    let world = World::scripted();
    std::fs::create_dir(world.work().join("more")).unwrap();
    std::fs::write(world.work().join("mine.fsx"), "let mine = 3").unwrap();
    let terminal = open(&world);
    terminal.enter("let rate = 2");
    terminal.wait_for("val rate: int = 2");
    terminal.enter("let later = 3");
    terminal.wait_for("val later: int = 3");
    terminal.press(":transcript ");
    terminal.press(TAB);
    let all =
        [">4    val later: int = 3", "3  > let later = 3", "2    val rate: int = 2", "1  > let rate = 2"];
    wait_for_menu(&terminal, &all);
    terminal.press(CTRL_C);
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":fork 2 \"b tree\"");
    terminal.wait_for_last_line("b tree>");
    terminal.press(":merge work 1,");
    terminal.press(TAB);
    wait_for_menu(&terminal, &all);
    terminal.press("3");
    terminal.press(" --at ");
    terminal.press(TAB);
    wait_for_menu(&terminal, &[">2    val rate: int = 2", "1  > let rate = 2"]);
    terminal.press(CTRL_C);
    terminal.wait_for_last_line("b tree>");
    terminal.enter(":export mine.jsonl");
    terminal.wait_for("2 entries of b tree are in mine.jsonl");
    terminal.press(":import mi");
    terminal.press(TAB);
    terminal.wait_for_last_line("b tree> :import mine.jsonl");
    terminal.press(CTRL_C);
    terminal.wait_for_last_line("b tree>");
    terminal.press(":backup m");
    terminal.press(TAB);
    terminal.wait_for_last_line("b tree> :backup more/");
}

#[test]
fn a_merge_asks_and_is_cancelled_like_code_that_was_typed() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let pause = -1");
    terminal.wait_for("val pause: int = -1");
    assert_eq!(world.run(["session", "new", "--name", "other"]).code, 0);
    let sleep = "printfn \"begun\"; System.Threading.Thread.Sleep pause";
    for cell in ["let first = 1", "let pause = 0", sleep, "let never = pause"] {
        assert_eq!(world.run(["eval", "--session", "other", cell]).code, 0);
    }
    let watcher = Terminal::run(world.command().args(["--session", "work"]));
    watcher.wait_for_last_line(PROMPT);
    terminal.enter(":merge other 1,5-8");
    watcher.wait_for("terminal│ begun");
    terminal.press(CTRL_C);
    terminal.wait_for("cancelling …");
    terminal.wait_for("not run: 7\n1 of 3 were applied");
    terminal.wait_for_last_line(PROMPT);
    assert_eq!(world.session()["state"], "Ready");

    terminal.enter(":switch other");
    terminal.wait_for_last_line("other>");
    terminal.enter("let name = stdin.ReadLine()");
    terminal.wait_for_last_line("the code reads a line");
    terminal.enter("Ada");
    terminal.wait_for("val name: string = \"Ada\"");
    terminal.enter(":switch work");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":cherry-pick other 9");
    terminal.wait_for_last_line("the code reads a line");
    terminal.enter("Grace");
    terminal.wait_for("entry 9:\nval name: string = \"Grace\"");
    terminal.wait_for_last_line(PROMPT);
}

#[test]
fn a_session_is_handed_over_and_the_store_kept_without_leaving_the_prompt() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let rate = 2");
    terminal.wait_for("val rate: int = 2");
    terminal.enter(":export the lab.jsonl");
    terminal.wait_for("2 entries of work are in the lab.jsonl");
    terminal.enter("/export the lab.jsonl");
    terminal.wait_for("`the lab.jsonl` is there already; --force writes over it");
    terminal.enter(":export");
    terminal.wait_for("\n```fsharp\nlet rate = 2\n```\n");
    terminal.enter(":compact A rate is chosen.");
    terminal.wait_for("the summary stands for 2 entries of work");
    assert!(!terminal.screen().contains("terminal "), "what one did oneself is not told");
    terminal.enter("/compact A rate. --before 2");
    terminal.wait_for("there is no whole entry before it");

    terminal.enter(":import the lab.jsonl");
    terminal.wait_for("2 entries, from a file of Mainstay");
    terminal.wait_for_last_line("work-2>");
    terminal.enter("rate * 21");
    terminal.wait_for("val it: int = 42");
    terminal.enter(":stats work");
    terminal.wait_for("entries   3 of its own");
    terminal.enter(":stats");
    terminal.wait_for("entries   4 of its own");
    terminal.wait_for("sessions  2\n");

    terminal.enter(":backup all");
    terminal.wait_for("2 sessions and 0 files of objects");
    assert!(world.work().join("all/backup.json").exists());
    terminal.enter(":gc");
    terminal.wait_for("there was nothing to collect");
}

#[test]
fn entries_get_labels_at_the_prompt_which_a_fork_has_too() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let rate = 2");
    terminal.wait_for("val rate: int = 2");
    terminal.enter(":labels");
    terminal.wait_for("no entry has a label");
    terminal.enter(":label 2 the good one");
    terminal.wait_for("entry 2 is called the good one");
    assert!(!terminal.screen().contains("terminal called"), "what one did oneself is not told");
    terminal.enter("/fork");
    terminal.wait_for_last_line("work-2>");
    terminal.enter(":transcript");
    terminal.wait_for("   2   val rate: int = 2\n       label: the good one\n");
    terminal.press(":label ");
    terminal.press(TAB);
    wait_for_menu(&terminal, &[">2    val rate: int = 2  [the good one]", "1  > let rate = 2"]);
    terminal.press(CTRL_C);
    terminal.wait_for_last_line("work-2>");
    terminal.enter(":label 2");
    terminal.wait_for("entry 2 has no label");
    terminal.enter(":label 3 none");
    terminal.wait_for("it has 2 entries, and number 3 is meant");
    assert_eq!(world.run(["session", "label", "work-2", "1", "from outside"]).code, 0);
    terminal.wait_for("cli labelled entry 0 of");
    terminal.enter(":labels");
    terminal.wait_for("   1  from outside  just now");
}

#[test]
fn sessions_are_deleted_at_the_prompt_also_the_one_that_is_used() {
    let world = World::scripted();
    let terminal = open(&world);
    world.run(["session", "new", "--name", "other"]);
    terminal.press(":delete-session o");
    terminal.press(TAB);
    terminal.wait_for_last_line("work> :delete-session other");
    terminal.press(ENTER);
    terminal.wait_for("Delete other");
    terminal.enter("");
    terminal.wait_for("nothing was deleted");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("/delete-session other");
    terminal.wait_until("the question again", |screen| screen.matches("[y/N]").count() == 2);
    terminal.enter("y");
    terminal.wait_for("other is deleted");
    assert_eq!(world.run(["session", "show", "other"]).code, 1);
    terminal.enter(":delete-session");
    terminal.wait_for("Delete work");
    terminal.enter("yes");
    terminal.wait_for("the session was deleted");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn who_uses_a_session_hears_that_another_deleted_it() {
    let world = World::scripted();
    let terminal = open(&world);
    world.run(["session", "delete", "work", "--yes"]);
    terminal.wait_for("the session was deleted");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn the_prompt_tells_what_a_reload_by_itself_gave_another_value() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[fsharp]\nwatch = \"reload\"\n").unwrap();
    let script = |text: &str| std::fs::write(world.work().join("helpers.fsx"), text).unwrap();
    script("let rate = 1");
    let terminal = open(&world);
    terminal.enter("#load \"helpers.fsx\"");
    terminal.wait_for("val rate: int");
    terminal.enter("let a = Helpers.rate");
    terminal.wait_for("val a: int = 1");
    terminal.enter("let other = 5");
    terminal.wait_for("val other: int = 5");
    script("let rate = 22");
    terminal.wait_for("2 of 3 submissions ran again: a is 22 (was 1)");
    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn the_prompt_tells_once_that_a_script_has_changed_and_refreshes() {
    let world = World::new();
    let script = |text: &str| std::fs::write(world.work().join("helpers.fsx"), text).unwrap();
    script("let rate = 1");
    let terminal = open(&world);
    terminal.enter("#load \"helpers.fsx\";; let a = Helpers.rate");
    terminal.wait_for("val a: int = 1");
    script("let rate = 22");
    terminal.enter("1 + 1");
    terminal.wait_for("helpers.fsx (what used it may be out of date)");
    terminal.enter(":transcript");
    terminal.wait_for("stale: something it used has changed since");
    terminal.enter(":refresh");
    terminal.wait_for("1 of 2 submissions ran again: a is 22 (was 1)");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":refresh all");
    terminal.wait_for("2 submissions ran again in a new worker: nothing gave another value");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("a");
    terminal.wait_for("val it: int = 22");
    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
}

//! Whoever waits goes on over the loss of a daemon: a person at the prompt with a question before them, who follows events, who cancels.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::bridged::Bridged;
use crate::support::terminal::{CTRL_C, ENTER, Terminal};
use crate::support::{World, kill};

/// The prompt of the working folder's session.
const PROMPT: &str = "work>";
const ASKS: &str = "let name = Mainstay.ask \"Name?\"; name";

fn open(world: &World) -> Terminal {
    let terminal = Terminal::open(world);
    terminal.wait_for_last_line(PROMPT);
    terminal
}

/// Waits until the prompt has connected again so many times.
fn connected_again(terminal: &Terminal, times: usize) {
    terminal.wait_until("connected again", |screen| screen.matches("connected again").count() == times);
}

/// Code that says that it has begun, waits for the file `go`, and then does this.
fn gated(then: &str) -> String {
    format!(
        "printfn \"begun\"; while not (System.IO.File.Exists \"go\") do System.Threading.Thread.Sleep 5; {then}"
    )
}

fn go(world: &World) {
    std::fs::write(world.work().join("go"), "").unwrap();
}

fn count(world: &World, kind: &str) -> usize {
    world.events().iter().filter(|event| event["kind"] == kind).count()
}

/// A daemon that takes nothing in any more, as if it was lost already; then it is.
struct Deaf(i32);

impl Deaf {
    fn of(world: &World) -> Self {
        let pid = world.daemon_pid().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
        Self(pid)
    }

    fn kill(self) {
        kill(self.0);
    }
}

#[test]
fn a_question_at_the_prompt_stands_over_the_death_of_daemons_and_is_answered() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter(ASKS);
    terminal.wait_for_last_line("Name?");
    terminal.press("A");
    terminal.wait_for_last_line("Name? A");
    for times in 1..=2 {
        world.kill_daemon();
        connected_again(&terminal, times);
        terminal.wait_for_last_line("Name? A");
    }
    terminal.press(&format!("da{ENTER}"));
    terminal.wait_for("val name: string = \"Ada\"");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("name.Length");
    terminal.wait_for("val it: int = 3");
    assert_eq!((count(&world, "askRaised"), count(&world, "evalRequested")), (1, 2));
}

#[test]
fn what_python_asks_is_asked_again_after_the_loss_of_its_daemon() {
    let world = World::with_jupyter();
    let terminal = Terminal::run(world.command().args(["--kind", "python3"]));
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("name = input('name? ')");
    terminal.wait_for_last_line("name?");
    world.kill_daemon();
    connected_again(&terminal, 1);
    terminal.wait_for_last_line("name?");
    terminal.enter("Ada");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter("import getpass; key = getpass.getpass('key? '); (name, len(key))");
    terminal.wait_for_last_line("key?");
    world.kill_daemon();
    connected_again(&terminal, 2);
    terminal.wait_for_last_line("key?");
    terminal.enter("hunter-27c0de");
    terminal.wait_for("('Ada', 13)");
    assert!(!terminal.written().contains("hunter"), "{}", terminal.screen());
}

#[test]
fn what_code_has_printed_before_it_reads_a_line_is_the_question_after_a_loss_too() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("printf \"Your name: \"; let name = stdin.ReadLine(); name + \"!\"");
    terminal.wait_for_last_line("Your name:");
    world.kill_daemon();
    connected_again(&terminal, 1);
    terminal.wait_for_last_line("Your name:");
    terminal.enter("Ada");
    terminal.wait_for("val it: string = \"Ada!\"");
}

#[test]
fn a_secret_is_typed_on_after_the_daemon_was_lost_and_is_never_shown() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter("let key = Mainstay.password \"Key?\"; key.Length");
    terminal.wait_for_last_line("Key?");
    terminal.press("hunter");
    world.kill_daemon();
    connected_again(&terminal, 1);
    terminal.wait_until("Key?", |screen| {
        screen.trim_end().lines().last().is_some_and(|line| line.starts_with("Key?"))
    });
    terminal.enter("-27c0de");
    terminal.wait_for("val it: int = 13");
    assert!(!terminal.written().contains("hunter"), "{}", terminal.screen());
}

#[test]
fn an_answer_that_a_lost_daemon_did_not_take_is_given_to_the_next() {
    let world = World::scripted();
    let terminal = open(&world);
    terminal.enter(ASKS);
    terminal.wait_for_last_line("Name?");
    let deaf = Deaf::of(&world);
    terminal.enter("Ada");
    deaf.kill();
    terminal.wait_for("val name: string = \"Ada\"");
    terminal.wait_for_last_line(PROMPT);
    assert_eq!((count(&world, "askRaised"), count(&world, "askEnded")), (1, 1));
}

#[test]
fn code_at_the_prompt_goes_on_with_its_output_and_is_cancelled_under_the_next_daemon() {
    let world = World::scripted();
    // However slow the machine, the code has the time to yield.
    std::fs::write(world.home().join("config.toml"), "[limits]\ncancel-grace-ms = 60000\n").unwrap();
    let terminal = open(&world);
    terminal.enter(&gated("printfn \"ended\"; 41 + 1"));
    terminal.wait_until("begun", |screen| screen.lines().any(|line| line == "begun"));
    world.kill_daemon();
    connected_again(&terminal, 1);
    go(&world);
    terminal.wait_for("val it: int = 42");
    terminal.wait_for_last_line(PROMPT);
    let screen = terminal.screen();
    let shown = |text: &str| screen.lines().filter(|line| *line == text).count();
    assert_eq!((shown("begun"), shown("ended")), (1, 1), "{screen}");
    assert!(!screen.contains("waits for"), "{screen}");

    terminal.enter("printfn \"endless\"; System.Threading.Thread.Sleep -1");
    terminal.wait_until("endless", |screen| screen.lines().any(|line| line == "endless"));
    world.kill_daemon();
    connected_again(&terminal, 2);
    terminal.press(CTRL_C);
    terminal.wait_for("cancelling …");
    terminal.wait_for_last_line(PROMPT);
    assert_eq!(count(&world, "evalCancelled"), 1);
}

#[test]
fn who_waits_at_the_prompt_for_code_or_a_question_waits_no_more_after_a_stop() {
    let world = World::scripted();
    let terminal = open(&world);
    let waits =
        [("System.Threading.Thread.Sleep -1", "work> System.Threading.Thread.Sleep -1"), (ASKS, "Name?")];
    for (times, (code, last)) in (1..).zip(waits) {
        terminal.enter("printfn \"begun\"");
        terminal
            .wait_until("begun", |screen| screen.lines().filter(|line| *line == "begun").count() == times);
        terminal.wait_for_last_line(PROMPT);
        terminal.enter(code);
        terminal.wait_for_last_line(last);
        world.follow(0).wait_until(|event| event["kind"] == "evalRequested" && event["body"]["code"] == code);
        assert_eq!(world.run(["stop"]).code, 0);
        terminal
            .wait_until("stopped", |screen| screen.matches("the daemon was stopped; what").count() == times);
        terminal.wait_for_last_line(PROMPT);
    }
    terminal.enter("41 + 1");
    terminal.wait_for("val it: int = 42");
}

#[test]
fn a_line_of_a_pipe_that_a_lost_daemon_did_not_take_is_given_to_the_next() {
    let world = World::scripted();
    world.eval("0");
    let before = world.session()["lastSeq"].as_u64().unwrap();
    let mut running =
        world.start_eval("let first = stdin.ReadLine(); let second = stdin.ReadLine(); first + second");
    world.follow(before).wait_for("askRaised");
    let deaf = Deaf::of(&world);
    running.stdin.as_mut().unwrap().write_all(b"Ada \nLovelace\n").unwrap();
    deaf.kill();
    let ended: Value = serde_json::from_slice(&running.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(ended["value"], "\"Ada Lovelace\"", "{ended}");
    assert_eq!(count(&world, "askEnded"), 2);
}

#[test]
fn who_waits_for_an_eval_at_a_terminal_answers_what_it_asks_after_the_loss_of_its_daemon() {
    let world = World::scripted();
    let eval = |code: &str| Terminal::run(world.command().args(["eval", code]));
    let terminal = eval("let name = Mainstay.ask \"Name?\"; let age = Mainstay.ask \"Age?\"; name + age");
    terminal.wait_for_last_line("Name?");
    world.kill_daemon();
    terminal.enter("Ada");
    terminal.wait_for_last_line("Age?");
    let deaf = Deaf::of(&world);
    terminal.enter("36");
    deaf.kill();
    terminal.wait_for("\"Ada36\"");
    assert_eq!(terminal.wait_for_end(), 0);

    let terminal = eval("let key = Mainstay.password \"Key?\"; key.Length");
    terminal.wait_for_last_line("Key?");
    world.replace_daemon();
    terminal.enter("hunter-27c0de");
    terminal.wait_for("13");
    assert!(!terminal.written().contains("hunter"), "{}", terminal.screen());
    assert_eq!(terminal.wait_for_end(), 0);
}

/// `mainstay events --follow`, and what it says on standard error.
fn following(world: &World, arguments: &[&str]) -> (Child, impl Iterator<Item = Value> + use<>) {
    let mut child = world
        .command()
        .args(["events", "--follow", "--json"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
}

#[test]
fn who_follows_events_has_each_once_over_daemons_until_one_is_stopped() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (mut one, mut events) = following(&world, &[]);
    let (mut all, mut completed) = following(&world, &["--all", "--kind", "evalCompleted"]);
    let (mut seqs, mut positions) = (Vec::new(), Vec::new());
    let restart = |world: &World| assert_eq!(world.run(["restart"]).code, 0);
    for end in [World::kill_daemon as fn(&World), restart, World::kill_daemon, |_| ()] {
        loop {
            let event = events.next().unwrap();
            seqs.push(event["seq"].as_u64().unwrap());
            if event["kind"] == "evalCompleted" {
                break;
            }
        }
        positions.push(completed.next().unwrap()["position"].as_u64().unwrap());
        end(&world);
        world.eval("kept + 1");
    }
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    assert!(positions.is_sorted_by(|before, after| before < after), "{positions:?}");
    assert_eq!(world.run(["stop"]).code, 0);
    for child in [&mut one, &mut all] {
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said.matches("the next one goes on with the events").count(), 3, "{said}");
        assert!(said.contains("\"daemon_not_running\""), "{said}");
    }
}

/// Starts an eval whose client goes once this has happened, and the daemon with it.
fn leave_alone(world: &World, arguments: &[&str], code: &str, kind: &str) {
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let mut running = world.start_eval_with(arguments, code);
    world.follow(since).wait_for(kind);
    running.kill().unwrap();
    running.wait().unwrap();
    world.kill_daemon();
}

#[test]
fn what_goes_on_without_a_daemon_is_looked_up_answered_and_cancelled() {
    let world = World::scripted();
    world.eval("0");
    leave_alone(&world, &["--id", "asks"], ASKS, "askRaised");
    let shown = world.run(["command", "show", "asks", "--json"]).json();
    assert_eq!(shown["state"], "runs", "{shown}");
    world.kill_daemon();
    let asks = world.run(["ask", "list", "--json"]).json();
    world.kill_daemon();
    assert_eq!(world.run(["ask", "answer", asks[0]["ask"].as_str().unwrap(), "Ada"]).code, 0);
    assert_eq!(world.eval("name")["value"], "\"Ada\"");

    let endless = "System.Threading.Thread.Sleep -1";
    leave_alone(&world, &[], endless, "evalRequested");
    let cancelled = world.run(["cancel"]);
    assert_eq!((cancelled.code, cancelled.stderr.as_str()), (0, "cancelled\n"));

    assert_eq!(world.run(["stop"]).code, 0);
    assert!(world.run(["cancel"]).stderr.contains("[daemon_not_running]"));
    assert_eq!(world.daemon_pid(), None, "there is nothing that could be cancelled");
}

#[test]
fn a_cancel_that_a_lost_daemon_did_not_take_is_given_to_the_next() {
    let world = World::scripted();
    world.eval("0");
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let running = world.start_eval("System.Threading.Thread.Sleep -1");
    world.follow(since).wait_for("evalRequested");
    let deaf = Deaf::of(&world);
    let cancel = world.command().arg("cancel").stderr(Stdio::piped()).spawn().unwrap();
    deaf.kill();
    assert!(cancel.wait_with_output().unwrap().status.success());
    let ended: Value = serde_json::from_slice(&running.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(ended["ending"], "cancelled", "{ended}");
}

#[test]
fn a_command_that_runs_is_not_said_to_wait_for_its_turn_whoever_asks_for_it() {
    let world = World::scripted();
    world.eval("0");
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let code = gated("41 + 1");
    let first = world.start_eval_with(&["--id", "once"], &code);
    world.follow(since).wait_for("outputProduced");
    world.replace_daemon();
    let second = world.start_eval_with(&["--id", "once"], &code);
    // Behind it, and so it waits.
    let mut third = world.start_eval("0");
    let mut said = BufReader::new(third.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().starts_with("waits for its turn")));
    go(&world);
    for running in [first, second] {
        let output = running.wait_with_output().unwrap();
        let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(ended["value"], "42", "{ended}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("waits for its turn"), "{output:?}");
    }
    assert_eq!(third.wait().unwrap().code(), Some(0));
}

#[test]
fn a_call_of_the_bridge_goes_on_over_daemons_that_are_killed_and_begin_anew() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let mut bridge = Bridged::begin(&world);
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let call = bridge.begin_call("send_fsharp_code", json!({ "code": gated("kept + 1") }));
    world.follow(since).wait_for("outputProduced");
    for _ in 0..4 {
        world.replace_daemon();
        bridge.ask("tools/list", json!({}));
        assert_eq!(world.run(["restart"]).code, 0);
        bridge.ask("tools/list", json!({}));
    }
    go(&world);
    let (is_failure, text) = bridge.called(call);
    assert!(!is_failure && text.contains("42"), "{text}");
    assert_eq!((world.worker_pid(), count(&world, "evalRequested")), (worker, 2));
}

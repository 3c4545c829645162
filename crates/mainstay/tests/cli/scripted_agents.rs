//! What people see of agents: `mainstay prompt`, and the prompt in a terminal, with agents that do what a prompt says.

use std::process::{Child, Command, Stdio};

use crate::support::terminal::{ALT_ENTER, CTRL_C, Terminal};
use crate::support::{Finished, World, interrupt};

/// The prompt of the working folder's session.
const PROMPT: &str = "work>";

/// Says something to the agent of the working folder.
fn prompt(world: &World, arguments: &[&str]) -> Finished {
    world.run(["prompt", "--kind", "agent"].iter().chain(arguments))
}

fn begin(world: &World, text: &str) -> Child {
    let mut command = world.command();
    command.args(["prompt", "--kind", "agent", text]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_the_agent_says_is_the_output_and_what_it_does_stands_beside_it() {
    let world = World::new();
    let said = "think Hm.\nsay Hello there.\ntool bash ls => a.txt\nsay Bye.";
    let done = prompt(&world, &[said]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello there.\nBye.\n"));
    insta::assert_snapshot!(done.stderr, @"
    ✓ bash ls: a.txt
    big • 20 tokens in, 10 out
    ");
    let piped = world.run_with_input(["prompt", "--kind", "agent", "-"], b"say From a pipe.\n");
    assert_eq!(piped.stdout, "From a pipe.\n");
    let script = world.run_with_input(["--kind", "agent"], b"say From a script.\n");
    assert_eq!(script.stdout, "From a script.\n");
    let transcript = world.run(["session", "transcript"]).stdout;
    assert!(transcript.contains("Hello there.") && transcript.contains("From a pipe."), "{transcript}");
}

#[test]
fn a_turn_has_one_answer_whoever_asks_for_it_again() {
    let world = World::new();
    let first = prompt(&world, &["--id", "one", "say Once."]);
    assert_eq!((first.code, first.stdout.as_str()), (0, "Once.\n"));
    world.kill_daemon();
    let again = prompt(&world, &["--id", "one", "say Once."]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "Once.\n"));
    let json = prompt(&world, &["--id", "one", "--json", "say Once."]).json();
    assert_eq!((&json["replayed"], &json["text"]), (&true.into(), &"Once.".into()));
}

#[test]
fn what_goes_wrong_is_told_and_is_the_exit_code() {
    let world = World::new();
    let failed = prompt(&world, &["fail 529 overloaded"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (1, "failed: 529 overloaded\n"));
    let unknown = prompt(&world, &["--model", "scripted/none", "say hi"]);
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(unknown.stderr, @"
    error: model scripted/none is not valid: Model not found: scripted/none [invalid_argument]
      Correct it and try again.
    ");
    let kernel = world.run(["prompt", "--kind", "fsharp", "hi"]);
    assert!(kernel.code == 1 && kernel.stderr.contains("[not_of_kind]"), "{kernel:?}");
    assert_eq!(prompt(&world, &["--model", "big", "hi"]).code, 2);
}

#[test]
fn settings_last() {
    let world = World::new();
    assert_eq!(prompt(&world, &["--model", "scripted/small", "--thinking", "high", "say hi"]).code, 0);
    let state = &world.session()["agent"]["state"];
    assert_eq!((&state["model"]["id"], &state["thinking"]), (&"small".into(), &"high".into()));
}

#[test]
fn an_agent_that_works_is_steered_from_elsewhere_and_ctrl_c_aborts_it() {
    let world = World::new();
    prompt(&world, &["say hi"]);
    let waiting = begin(&world, "wait");
    world.follow(0).wait_until(|event| {
        event["kind"] == "jobRequested" && event["body"]["work"]["prompt"]["text"] == "wait"
    });
    assert_eq!(prompt(&world, &["--steer", "stop here"]).code, 0);
    let heard = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(heard.stdout).unwrap(), "I hear now: stop here\n");

    let since = world.session()["lastSeq"].as_u64().unwrap();
    let waiting = begin(&world, "wait");
    world.follow(since).wait_for("jobRequested");
    interrupt(&waiting);
    let aborted = waiting.wait_with_output().unwrap();
    assert_eq!(aborted.status.code(), Some(1));
    assert_eq!(String::from_utf8(aborted.stderr).unwrap(), "cancelled\n");
}

#[test]
fn a_pause_says_who_asks_and_what_is_idle_or_not_there_does_not_pause() {
    let world = World::new();
    let none = prompt(&world, &["--pause", "Sure?"]);
    assert!(none.code == 1 && none.stderr.contains("[session_not_found]"), "{none:?}");
    assert_eq!(world.run(["session", "list", "--json"]).json().as_array().unwrap().len(), 0);
    prompt(&world, &["say hi"]);
    let idle = prompt(&world, &["--pause", "Sure?"]);
    assert_eq!(idle.code, 1);
    insta::assert_snapshot!(idle.stderr, @"
    error: cannot pause: the session is Ready [not_offered]
      The agent does nothing that could be paused; say something to it first.
    ");

    let since = world.session()["lastSeq"].as_u64().unwrap();
    let waiting = begin(&world, "wait");
    world.follow(since).wait_for("jobRequested");
    let paused = prompt(&world, &["--pause", "Is the old table needed?"]);
    assert_eq!((paused.code, paused.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(paused.stderr, @"the agent pauses before its next step, and asks how to go on: `mainstay ask list` shows the question, `mainstay ask answer ID TEXT` answers it");
    let listed = world.run(["ask", "list"]).stdout;
    assert!(listed.contains("asked by cli in work, "), "{listed}");
    let ask = world.run(["ask", "list", "--json"]).json()[0]["ask"].as_str().unwrap().to_owned();
    let declined = world.run(["ask", "decline", &ask]);
    assert_eq!(declined.code, 1);
    insta::assert_snapshot!(declined.stderr, @"
    error: this is no answer: an agent that pauses is not left without one; an empty answer lets it go on, and cancelling ends its turn [answer_invalid]
      Answer as the ask's schema wants; `mainstay ask list --json` has it.
    ");
    interrupt(&waiting);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(1));
}

#[test]
fn an_ask_of_an_agent_says_how_it_is_answered_where_nobody_can_type() {
    let world = World::new();
    prompt(&world, &["say hi"]);
    let asking = begin(&world, "ask Sure?");
    world.follow(0).wait_for("askRaised");
    let ask = world.run(["ask", "list", "--json"]).json()[0]["ask"].as_str().unwrap().to_owned();
    assert_eq!(world.run(["ask", "answer", &ask, "yes"]).code, 0);
    let done = asking.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "you said \"yes\"\n");
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.starts_with("the agent asks: Sure?\n"), "{told}");
}

#[test]
fn a_new_conversation_is_another_session() {
    let world = World::new();
    prompt(&world, &["say one"]);
    prompt(&world, &["say two"]);
    prompt(&world, &["--new", "say three"]);
    let sessions = world.run(["session", "list", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), 2);
}

/// A prompt on an agent's conversation that waits for input.
fn open(world: &World) -> Terminal {
    open_with(world.command())
}

/// The same in a terminal with colours.
fn open_in_colour(world: &World) -> Terminal {
    let mut command = world.command();
    command.env_remove("NO_COLOR");
    open_with(command)
}

fn open_with(mut command: Command) -> Terminal {
    command.args(["--kind", "agent"]);
    let terminal = Terminal::run(&command);
    terminal.wait_for("Say something, or :help");
    terminal.wait_for_last_line(PROMPT);
    terminal
}

/// Types a line of several.
fn begin_line(terminal: &Terminal, line: &str) {
    terminal.press(line);
    terminal.press(ALT_ENTER);
    terminal.wait_for_last_line("    ·");
}

#[test]
fn a_person_talks_to_an_agent_in_a_terminal() {
    let world = World::new();
    let terminal = open(&world);
    begin_line(&terminal, "think Hm.");
    begin_line(&terminal, "say let x =");
    terminal.enter("tool bash ls => a.txt");
    terminal.wait_for("✓ bash ls: a.txt");
    terminal.wait_for("10 tokens in, 5 out");
    terminal.wait_for_last_line(PROMPT);
    let screen = terminal.screen();
    assert!(screen.contains("\nHm.\nlet x =\n"), "{screen}");
    assert_eq!(screen.matches("warms up").count(), 0, "{screen}");

    terminal.enter("!pwd");
    terminal.wait_for("pwd ran\n");
    terminal.enter("!!pwd");
    terminal.wait_for("pwd ran in private");
    terminal.enter(":model scripted/small");
    terminal.wait_for("scripted/small, thinking off");
    terminal.enter(":model");
    terminal.wait_for("* scripted/small  Small");
    terminal.enter(":thinking high");
    terminal.wait_for("scripted/small, thinking high");
    terminal.enter("fail 529");
    terminal.wait_for("failed: 529");
    terminal.enter(":compact");
    terminal.wait_for("a summary stands for");
    terminal.enter(":reset");
    terminal.wait_for("the agent begins anew. Go on? [Y/n]");
    terminal.enter("y");
    terminal.wait_for("the agent has forgotten what was said");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(" a secret");
    terminal.wait_for("it was not sent");
    terminal.enter(":quit");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn what_an_agent_says_is_laid_out_in_a_terminal_and_as_it_is_written_elsewhere() {
    let world = World::new();
    let said = "# Plan\\n\\nThe **first** of `two`:\\n\\n- one\\n- [two](https://a.b)\\n\\n```fsharp\\nlet x = 1\\n```\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\nEnd.&#7;";
    let terminal = open_in_colour(&world);
    terminal.enter(&format!("say {said}"));
    terminal.wait_for("10 tokens in, 5 out");
    let screen = terminal.screen();
    let shown = screen.split_once("End.&#7;").unwrap().1;
    let shown = shown.split_once("big •").unwrap().0;
    insta::assert_snapshot!(shown, @"
    Plan

    The first of two:

    - one
    - two (https://a.b)

      let x = 1

    a │ b
    ──┼──
    1 │ 2

    End.␇
    ");
    let written = terminal.written();
    for obeyed in ["\u{1b}[1;4mPlan", "\u{1b}[1mfirst", "\u{1b}[36mtwo", "\u{1b}[35mlet"] {
        assert!(written.contains(obeyed), "{obeyed:?} in {written:?}");
    }
    let piped = prompt(&world, &[&format!("say {said}")]);
    assert_eq!(piped.stdout, said.replace("\\n", "\n") + "\n");
}

#[test]
fn what_an_agent_thinks_stands_before_what_it_says_with_colours_too() {
    let world = World::new();
    let terminal = open_in_colour(&world);
    begin_line(&terminal, "think Hm.");
    terminal.enter("say One two *three*");
    terminal.wait_for("10 tokens in, 5 out");
    let screen = terminal.screen();
    assert!(screen.contains("\nHm.\nOne two three\n"), "{screen}");
}

#[test]
fn an_agent_that_works_is_steered_by_typing_and_aborted_by_ctrl_c() {
    let world = World::new();
    let terminal = open(&world);
    begin_line(&terminal, "say Begun.");
    terminal.enter("wait");
    terminal.wait_until("Begun.", |screen| screen.lines().any(|line| line == "Begun."));
    terminal.enter("not so fast");
    terminal.wait_for("steer> not so fast");
    terminal.wait_for("I hear now: not so fast");
    terminal.wait_for_last_line(PROMPT);

    begin_line(&terminal, "say Again.");
    terminal.enter("wait");
    terminal.wait_until("Again.", |screen| screen.lines().any(|line| line == "Again."));
    terminal.enter(":follow-up and then");
    terminal.wait_for("I hear at the end: and then");
    terminal.wait_for_last_line(PROMPT);

    begin_line(&terminal, "say Third.");
    terminal.enter("wait");
    terminal.wait_until("Third.", |screen| screen.lines().any(|line| line == "Third."));
    terminal.press(CTRL_C);
    terminal.wait_for("cancelling …");
    terminal.wait_for_last_line(PROMPT);
    assert!(terminal.screen().contains("\ncancelled\n"), "{}", terminal.screen());
}

#[test]
fn what_is_typed_when_a_turn_ends_stands_in_the_next_line() {
    let world = World::new();
    let terminal = open(&world);
    begin_line(&terminal, "say Begun.");
    terminal.enter("wait");
    terminal.wait_until("Begun.", |screen| screen.lines().any(|line| line == "Begun."));
    terminal.press("say half");
    terminal.wait_for_last_line("steer> say half");
    assert_eq!(prompt(&world, &["--steer", "go on"]).code, 0);
    terminal.wait_for("I hear now: go on");
    terminal.wait_for_last_line("work> say half");
    terminal.enter(" of it");
    terminal.wait_until("half of it", |screen| screen.lines().any(|line| line == "half of it"));
}

#[test]
fn what_an_agent_asks_is_answered_in_place_and_others_turns_bear_their_name() {
    let world = World::new();
    let terminal = open(&world);
    terminal.enter("ask Sure?");
    terminal.wait_for_last_line("Sure?");
    terminal.enter("yes");
    terminal.wait_for("you said \"yes\"");
    terminal.wait_for_last_line(PROMPT);
    assert_eq!(prompt(&world, &["say From elsewhere."]).code, 0);
    terminal.wait_for("cli> say From elsewhere.");
    terminal.wait_for("cli│ From elsewhere.");
    terminal.wait_for_last_line(PROMPT);
}

#[test]
fn what_an_agent_asks_is_asked_again_after_the_death_of_its_daemon() {
    let world = World::new();
    let terminal = open(&world);
    terminal.enter("ask Sure?");
    terminal.wait_for_last_line("Sure?");
    terminal.press("ye");
    terminal.wait_for_last_line("Sure? ye");
    world.kill_daemon();
    terminal.wait_for("connected again");
    terminal.wait_for_last_line("Sure? ye");
    terminal.enter("s");
    terminal.wait_for("you said \"yes\"");
    terminal.wait_for_last_line(PROMPT);
}

/// Has the agent say that it has begun, and wait.
fn begin_to_wait(terminal: &Terminal) {
    begin_line(terminal, "say Begun.");
    terminal.enter("wait");
    terminal.wait_until("Begun.", |screen| screen.lines().any(|line| line == "Begun."));
}

/// Waits until the agent has said this, which stands in what it was told, too.
fn has_said(world: &World, since: u64, text: &str) {
    let mut events = world.follow(since);
    for _ in ["told", "said"] {
        events
            .wait_until(|event| event["kind"] == "messageAdded" && event["body"].to_string().contains(text));
    }
}

/// The turn that was cut off is said to be so once, and the next one is as any other.
fn goes_on(terminal: &Terminal) {
    terminal.enter("say And on.");
    terminal.wait_until("And on.", |screen| screen.lines().any(|line| line == "And on."));
    terminal.wait_for_last_line(PROMPT);
    let screen = terminal.screen();
    let told = ["cut off", "connected again", "Begun."].map(|said| screen.matches(said).count());
    // What it said stands in what it was told, too.
    assert_eq!(told, [1, 1, 2], "{screen}");
}

#[test]
fn a_turn_that_a_restart_of_the_machine_cut_off_is_said_to_be_so_once_and_the_next_one_works() {
    let world = World::new();
    let terminal = open(&world);
    begin_to_wait(&terminal);
    world.kill_everything();
    terminal.wait_for("cut off");
    terminal.wait_for_last_line(PROMPT);
    goes_on(&terminal);
}

#[test]
fn what_is_typed_when_everything_is_killed_stands_in_the_next_line() {
    let world = World::new();
    let terminal = open(&world);
    begin_to_wait(&terminal);
    terminal.press("say half");
    terminal.wait_for_last_line("steer> say half");
    world.kill_everything();
    terminal.wait_for("cut off");
    terminal.wait_for_last_line("work> say half");
    terminal.enter(" of it");
    terminal.wait_until("half of it", |screen| screen.lines().any(|line| line == "half of it"));
    terminal.wait_for_last_line(PROMPT);
    goes_on(&terminal);
}

#[test]
fn a_prompt_that_a_restart_of_the_machine_cut_off_says_so_and_the_next_one_works() {
    let world = World::new();
    prompt(&world, &["say hi"]);
    let waiting = begin(&world, "say Begun.\nwait");
    has_said(&world, 0, "Begun.");
    world.kill_everything();
    let cut_off = waiting.wait_with_output().unwrap();
    assert_eq!(cut_off.status.code(), Some(1));
    assert_eq!(String::from_utf8(cut_off.stdout).unwrap(), "Begun.\n");
    let told = String::from_utf8(cut_off.stderr).unwrap();
    assert_eq!(told.matches("cut off").count(), 1, "{told}");
    assert_eq!(prompt(&world, &["say And on."]).stdout, "And on.\n");
}

#[test]
fn a_turn_goes_on_while_daemons_are_killed_and_is_steered_to_its_end() {
    let world = World::new();
    let terminal = open(&world);
    begin_to_wait(&terminal);
    world.kill_daemon();
    terminal.wait_for("connected again");
    terminal.enter("go on");
    terminal.wait_until("I hear now: go on", |screen| screen.lines().any(|line| line == "I hear now: go on"));
    terminal.wait_for_last_line(PROMPT);
    assert!(!terminal.screen().contains("cut off"), "{}", terminal.screen());

    let since = world.session()["lastSeq"].as_u64().unwrap();
    let waiting = begin(&world, "say Begun again.\nwait");
    has_said(&world, since, "Begun again.");
    world.replace_daemon();
    assert_eq!(prompt(&world, &["--steer", "end"]).code, 0);
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "Begun again.\nI hear now: end\n");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn an_ask_of_an_agent_waits_over_the_death_of_its_daemon() {
    let world = World::new();
    prompt(&world, &["say hi"]);
    let asking = begin(&world, "ask Sure?");
    world.follow(0).wait_for("askRaised");
    world.replace_daemon();
    let ask = world.run(["ask", "list", "--json"]).json()[0]["ask"].as_str().unwrap().to_owned();
    assert_eq!(world.run(["ask", "answer", &ask, "yes"]).code, 0);
    let done = asking.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "you said \"yes\"\n");
}

#[test]
fn what_an_agents_session_counts_is_turns() {
    let world = World::new();
    let terminal = open(&world);
    terminal.enter("say hi");
    terminal.wait_for("10 tokens in, 5 out");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":model scripted/none");
    terminal.wait_for("Model not found");
    terminal.wait_for_last_line(PROMPT);
    terminal.enter(":session-info");
    terminal.wait_for("1 turn, 0 of them failed, ");
    terminal.wait_for_last_line(PROMPT);
    assert!(!terminal.screen().contains("subscriptions"), "{}", terminal.screen());
    terminal.enter(":status");
    terminal.wait_for("subscriptions");
    terminal.wait_for("1 turn, 0 of them failed, ");
    terminal.wait_for_last_line(PROMPT);
    assert!(!terminal.screen().contains("evals"), "{}", terminal.screen());
    let name = world.session()["name"].as_str().unwrap().to_owned();
    let stored = world.run(["session", "stats", &name]).stdout;
    assert!(stored.contains("  turns     1, 0 of them failed\n"), "{stored}");
}

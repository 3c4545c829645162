//! Sessions of agents: they start when they have something to do, say what they say at once and for good, and survive what befalls
//! their process or the daemon.

use std::sync::Arc;

use mainstay_model::agent::{AgentState, Model};
use mainstay_model::breaker::BreakerState;
use mainstay_model::command;
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    Action, Admission, AgentNotice, AskId, Capabilities, Delivery, Error, ForkSession, JobSpec, Limits, Live,
    Outcome, Part, PartRole, Prompt, Question, QueuedPrompt, Response, Role, SessionCommand, SessionKind,
    SessionState, Setting, ThinkingLevel, WorkEnding, WorkOutcome, WorkerExit, YieldReason,
};
use mainstay_runner::query::KernelQuery;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{CANCEL, Client, Daemon, Running, command, eval, id, next_id, patient, quick};
use mainstay_test_support::scripted_agent::{DECLARED, Given, Script};

fn prompt(text: &str) -> SessionCommand {
    SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text(text) })
}

/// Prompts in its turn, without waiting for anything.
fn say(talk: &Client, text: &str) -> Running {
    talk.send(command(next_id(), Admission::Queue, prompt(text)))
}

fn steer(text: &str, hears: Delivery) -> SessionCommand {
    SessionCommand::Steer(QueuedPrompt { prompt: Prompt::text(text), hears })
}

fn worked(answer: Result<Outcome, Error>) -> WorkOutcome {
    match answer.unwrap() {
        Outcome::Done { response: Response::Worked(outcome) } => outcome,
        other => panic!("{other:?} is no job's outcome"),
    }
}

async fn ending(running: Running) -> WorkEnding {
    worked(running.await.unwrap()).ending
}

fn done() -> WorkEnding {
    WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null }
}

/// A turn: what is said to the agent, and its answer.
async fn turn(talk: &Client, script: &mut Script, said: &str, answer: &str) {
    let running = say(talk, said);
    script.work().await;
    script.say(PartRole::User, said).await;
    script.say(PartRole::Assistant, answer).await;
    script.done().await;
    assert_eq!(ending(running).await, done());
}

/// The transcript, an entry a line.
async fn transcript(talk: &Client) -> Vec<String> {
    let entries = talk.attached.entries(talk.id, 0, usize::MAX).await.unwrap();
    let line = |role: Role, text: &str| format!("{}: {text}", role.name());
    entries.iter().map(|placed| line(placed.entry.role, placed.entry.content.beginning())).collect()
}

/// What an agent is started with, an entry a line.
async fn shown(script: &mut Script) -> Vec<String> {
    let entries = script.start().await.entries;
    entries.iter().map(|(placed, text)| format!("{}: {text}", placed.entry.role.name())).collect()
}

#[tokio::test]
async fn an_agent_starts_when_it_is_first_prompted_and_what_it_does_is_told_in_order() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    assert_eq!(talk.state().await, SessionState::Uninitialized);
    turn(&talk, &mut script, "hello", "hi").await;
    let told = [
        "created talk",
        "warming up, Started",
        "queued",
        "ready",
        "turn: hello",
        "user: hello",
        "assistant: hi",
        "done",
    ];
    assert_eq!(talk.story().await, told);
    let session = daemon.local.status(talk.id).await.unwrap().session;
    assert_eq!((session.title.as_deref(), session.messages, session.version.0), (Some("hello"), 2, 1));
    assert_eq!(transcript(&talk).await, ["user: hello", "assistant: hi"]);
}

#[tokio::test]
async fn what_an_agent_says_is_heard_at_once_and_is_in_the_log_before_the_message_is_whole() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let mut heard = daemon.local.listen(talk.id).await.unwrap();
    let running = say(&talk, "hello");
    script.work().await;
    script.say(PartRole::User, "hello").await;
    script.stream("hi ").await;
    script.stream("there").await;
    let mut said = String::new();
    while said != "hi there" {
        let Some(live) = heard.next().await else { panic!("it ended") };
        let Live::Delta(delta) = Arc::unwrap_or_clone(live) else { panic!("no tool runs") };
        assert_eq!(delta.offset, said.len() as u64);
        said.push_str(&delta.text);
    }
    talk.until("messageStreamed").await;
    script.say(PartRole::Assistant, "hi there").await;
    script.done().await;
    assert_eq!(ending(running).await, done());
    assert_eq!(transcript(&talk).await, ["user: hello", "assistant: hi there"]);
}

#[tokio::test]
async fn a_turn_whose_agent_is_lost_is_cut_off_and_what_it_said_is_there_for_the_next() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = talk.send(command(id("lost"), Admission::Queue, prompt("hello")));
    script.work().await;
    script.stream("I begin").await;
    talk.until("messageStreamed").await;
    script.exit(WorkerExit::Signal(9)).await;
    let outcome = worked(running.await.unwrap());
    assert_eq!(outcome.ending, WorkEnding::Interrupted);
    // It comes back with all that was said.
    assert_eq!(shown(&mut script).await, ["user: hello", "assistant: I begin"]);
    let again = talk.give(command(id("lost"), Admission::Queue, prompt("hello"))).await;
    assert_eq!(worked(again), outcome);
    turn(&talk, &mut script, "go on", "well").await;
    assert_eq!(
        transcript(&talk).await,
        ["user: hello", "assistant: I begin", "user: go on", "assistant: well"]
    );
}

#[tokio::test]
async fn a_turn_that_the_daemon_was_lost_in_is_cut_off_and_its_agent_rests_until_it_is_prompted() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = talk.send(command(id("lost"), Admission::Queue, prompt("hello")));
    script.work().await;
    script.say(PartRole::User, "hello").await;
    script.stream("I begin").await;
    talk.until("messageStreamed").await;
    let session = talk.leave();
    running.abort();
    running.await.unwrap_err();
    let daemon = daemon.crash().await;
    let talk = daemon.client(session);
    talk.until("sessionStopped").await;
    let again = talk.give(command(id("lost"), Admission::Queue, prompt("hello"))).await;
    assert_eq!(worked(again).ending, WorkEnding::Interrupted);
    let running = say(&talk, "go on");
    assert_eq!(shown(&mut script).await, ["user: hello", "assistant: I begin"]);
    script.work().await;
    script.done().await;
    assert_eq!(ending(running).await, done());
}

#[tokio::test]
async fn what_is_said_while_an_agent_works_passes_its_turn_and_is_not_lost_with_its_process() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = say(&talk, "hello");
    script.work().await;
    for (text, hears) in [("stop", Delivery::Steer), ("and then", Delivery::FollowUp)] {
        talk.submit(steer(text, hears)).await.unwrap();
        let Given::Steered(queued) = script.next().await else { panic!("it is told at once") };
        assert_eq!((queued.prompt.text.as_str(), queued.hears), (text, hears));
    }
    script.tell(AgentNotice::Queue(vec![(Delivery::FollowUp, "and then".to_owned())])).await;
    talk.until("queueChanged").await;
    script.exit(WorkerExit::Signal(9)).await;
    assert_eq!(ending(running).await, WorkEnding::Interrupted);
    script.start().await;
    let Given::Steered(queued) = script.next().await else { panic!("it is told again") };
    assert_eq!(queued.prompt.text, "and then");
    let waiting = daemon.local.status(talk.id).await.unwrap().session.queue;
    assert_eq!(waiting.len(), 1);
}

#[tokio::test]
async fn an_abort_passes_the_turn_it_ends() {
    let (daemon, mut script) = Daemon::with_agents(patient()).await;
    let talk = daemon.agent_session().await;
    let running = say(&talk, "hello");
    script.work().await;
    talk.submit(CANCEL).await.unwrap();
    assert!(matches!(script.next().await, Given::Interrupted));
    script.say(PartRole::Assistant, "I was about to").await;
    script.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    assert_eq!(ending(running).await, WorkEnding::Cancelled { by: CancelEnding::Yielded });
    assert_eq!(talk.state().await, SessionState::Ready);
}

#[tokio::test]
async fn an_agent_that_does_not_stop_is_killed_and_started_anew() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = say(&talk, "hello");
    script.work().await;
    talk.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, WorkEnding::Cancelled { by: CancelEnding::Killed });
    assert!(matches!(script.next().await, Given::Interrupted));
    assert_eq!(shown(&mut script).await, ["user: hello"]);
}

#[tokio::test]
async fn turns_settings_and_lines_of_a_shell_take_turns() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let first = say(&talk, "one");
    assert_eq!(script.work().await, JobSpec::Turn { prompt: Prompt::text("one") });
    let level = JobSpec::Setting(Setting::Thinking { level: ThinkingLevel::High });
    let second = talk.send(command(next_id(), Admission::Queue, SessionCommand::Work(level.clone())));
    talk.until_count("commandQueued", 2).await;
    let shell = JobSpec::Shell { line: "ls".to_owned(), is_private: false };
    let third = talk.send(command(next_id(), Admission::Queue, SessionCommand::Work(shell.clone())));
    talk.until_count("commandQueued", 3).await;
    script.done().await;
    assert_eq!(script.work().await, level);
    script.end(WorkEnding::failed("Model not found")).await;
    assert_eq!(script.work().await, shell);
    let ran = WorkEnding::Done { reason: YieldReason::EndTurn, value: json!({ "exitCode": 0 }) };
    script.end(ran.clone()).await;
    assert_eq!(ending(first).await, done());
    assert_eq!(ending(second).await, WorkEnding::failed("Model not found"));
    assert_eq!(ending(third).await, ran);
}

#[tokio::test]
async fn what_an_agent_asks_is_answered_while_its_turn_waits() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = say(&talk, "hello");
    script.work().await;
    let ask = AskId::from_uuid(Uuid::from_u128(7));
    script.ask(ask, Question::text("Sure?")).await;
    talk.until("askRaised").await;
    talk.submit(SessionCommand::Answer(command::Answer::new(ask, json!("yes")))).await.unwrap();
    let Given::Answered(answered, value) = script.next().await else { panic!("it is answered") };
    assert_eq!((answered, value), (ask, Ok(json!("yes"))));
    script.done().await;
    assert_eq!(ending(running).await, done());
}

#[tokio::test]
async fn a_summary_stands_for_all_but_what_is_kept_and_the_next_process_is_shown_it() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    turn(&talk, &mut script, "two", "2").await;
    let compact = SessionCommand::Work(JobSpec::Compaction { instructions: None });
    let running = talk.send(command(next_id(), Admission::Queue, compact));
    script.work().await;
    let notice =
        AgentNotice::Compacted { summary: "Numbers.".to_owned(), kept: 1, metadata: Default::default() };
    script.tell(notice).await;
    script.done().await;
    assert_eq!(ending(running).await, done());
    let entries = talk.attached.entries(talk.id, 0, usize::MAX).await.unwrap();
    assert_eq!(entries.len(), 5, "nothing is taken out");
    assert_eq!(entries[4].entry.covers().iter().map(|covered| covered.to - covered.from).sum::<u64>(), 3);
    talk.submit(SessionCommand::Stop).await.unwrap();
    talk.submit(SessionCommand::Start).await.unwrap();
    assert_eq!(shown(&mut script).await, ["summary: Numbers.", "assistant: 2"]);
}

/// Has a summary stand for the first entries, as a person does.
async fn compact(talk: &Client, before: u64, summary: &str) {
    let body = talk.attached.compaction(talk.id, before, summary.to_owned()).await.unwrap();
    talk.submit(body).await.unwrap();
}

#[tokio::test]
async fn a_persons_summary_reaches_an_agent_that_runs() {
    let (daemon, mut script) = Daemon::with_agents(patient()).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    turn(&talk, &mut script, "two", "2").await;
    compact(&talk, 3, "So far.").await;
    assert_eq!(shown(&mut script).await, ["summary: So far.", "assistant: 2"]);
    turn(&talk, &mut script, "three", "3").await;

    // One that works is not disturbed: it begins anew when its turn has ended.
    let running = say(&talk, "four");
    script.work().await;
    script.say(PartRole::User, "four").await;
    compact(&talk, 5, "And on.").await;
    let next = say(&talk, "five");
    script.say(PartRole::Assistant, "4").await;
    script.done().await;
    assert_eq!(ending(running).await, done());
    assert_eq!(
        shown(&mut script).await,
        ["summary: And on.", "user: three", "assistant: 3", "user: four", "assistant: 4"]
    );
    script.work().await;
    script.done().await;
    assert_eq!(ending(next).await, done());
    assert_eq!(talk.count("warmUpCompleted").await, 3);
}

#[tokio::test]
async fn a_reset_lets_an_agent_forget_and_takes_nothing_out_of_the_transcript() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    talk.submit(SessionCommand::Reset).await.unwrap();
    assert_eq!(shown(&mut script).await, Vec::<String>::new());
    turn(&talk, &mut script, "two", "2").await;
    assert_eq!(transcript(&talk).await.len(), 4);
    talk.submit(SessionCommand::Stop).await.unwrap();
    talk.submit(SessionCommand::Start).await.unwrap();
    assert_eq!(shown(&mut script).await, ["user: two", "assistant: 2"]);
}

#[tokio::test]
async fn a_fork_of_a_conversation_goes_on_apart_from_where_it_was_cut() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    turn(&talk, &mut script, "two", "2").await;
    let fork = ForkSession { from: talk.id, entries: Some(2), name: None, before_reset: false };
    let Ok(Outcome::Done { response: Response::Forked { session, .. } }) =
        daemon.local.fork(next_id(), fork).await
    else {
        panic!("it is forked");
    };
    let other = daemon.client(session);
    let running = say(&other, "three");
    assert_eq!(shown(&mut script).await, ["user: one", "assistant: 1"]);
    script.work().await;
    script.say(PartRole::User, "three").await;
    script.done().await;
    assert_eq!(ending(running).await, done());
    assert_eq!((transcript(&other).await.len(), transcript(&talk).await.len()), (3, 4));
}

#[tokio::test]
async fn an_agent_with_nothing_to_do_goes_to_rest() {
    let (daemon, mut script) =
        Daemon::with_agents(mainstay_model::Limits { agent_idle_ms: 1, ..quick() }).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    talk.until("sessionStopped").await;
    assert_eq!(talk.state().await, SessionState::Uninitialized);
    let running = say(&talk, "two");
    assert_eq!(shown(&mut script).await, ["user: one", "assistant: 1"]);
    script.work().await;
    script.done().await;
    assert_eq!(ending(running).await, done());
}

#[tokio::test]
async fn what_a_session_can_do_is_what_its_factory_declares_whatever_its_kind_is_called() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let kind = SessionKind::new(DECLARED).unwrap();
    let talk = daemon.session_of(kind.clone()).await;
    assert_eq!(talk.state().await, SessionState::Uninitialized, "it starts when it is prompted");
    turn(&talk, &mut script, "hello", "hi").await;
    assert_eq!(talk.submit(eval("1")).await, Err(Error::NotOfKind { action: Action::Eval, kind }));
    let session = daemon.local.status(talk.id).await.unwrap().session;
    assert!(session.is_agent() && session.offered().contains(&Action::Prompt), "{:?}", session.offered());
    assert_eq!(
        session.capabilities,
        Some(Capabilities::AGENT),
        "it is stored, for daemons that cannot start it"
    );
}

#[tokio::test]
async fn kernels_are_not_spoken_to_and_agents_run_no_code() {
    let (daemon, _script) = Daemon::with_agents(quick()).await;
    let (talk, repl) = (daemon.agent_session().await, daemon.session().await);
    let refused = |action, kind| Err(Error::NotOfKind { action, kind });
    assert_eq!(talk.submit(eval("1")).await, refused(Action::Eval, SessionKind::pi()));
    let tests = KernelQuery::Tests { pattern: None, category: None };
    let listed = daemon.local.query(talk.id, tests).await;
    assert_eq!(listed, Err(Error::NotOfKind { action: Action::Test, kind: SessionKind::pi() }));
    assert_eq!(repl.submit(prompt("hello")).await, refused(Action::Prompt, SessionKind::fsharp()));
    assert_eq!(
        repl.submit(steer("no", Delivery::Steer)).await,
        refused(Action::Steer, SessionKind::fsharp())
    );
    let offered = |client: &Client| {
        let (local, id) = (daemon.local.clone(), client.id);
        async move { local.status(id).await.unwrap().session.offered() }
    };
    assert!(!offered(&talk).await.contains(&Action::Eval));
    assert!(!offered(&repl).await.contains(&Action::Prompt));
}

#[tokio::test]
async fn a_call_that_was_being_said_when_its_agent_was_lost_was_never_made() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    let running = say(&talk, "hello");
    script.work().await;
    script
        .message(vec![Part::text(PartRole::Assistant, "I look."), Part::tool_call("c1", "read", &json!({}))])
        .await;
    script.stream("half a th").await;
    talk.until("messageStreamed").await;
    script.exit(WorkerExit::Signal(9)).await;
    assert_eq!(ending(running).await, WorkEnding::Interrupted);
    assert_eq!(transcript(&talk).await, ["assistant: I look.", "toolCall: {}", "assistant: half a th"]);
}

#[tokio::test]
async fn a_second_summary_stands_for_what_the_first_one_kept() {
    let (daemon, mut script) = Daemon::with_agents(quick()).await;
    let talk = daemon.agent_session().await;
    turn(&talk, &mut script, "one", "1").await;
    for summary in ["First.", "Second."] {
        let running = say(&talk, "go on");
        script.work().await;
        script.say(PartRole::User, "go on").await;
        let notice =
            AgentNotice::Compacted { summary: summary.to_owned(), kept: 2, metadata: Default::default() };
        script.tell(notice).await;
        script.say(PartRole::Assistant, "well").await;
        script.done().await;
        assert_eq!(ending(running).await, done());
    }
    talk.submit(SessionCommand::Stop).await.unwrap();
    talk.submit(SessionCommand::Start).await.unwrap();
    // The second kept what was said last before it, and what it was said to.
    let kept = ["summary: Second.", "assistant: well", "user: go on", "assistant: well"];
    assert_eq!(shown(&mut script).await, kept);
}

#[tokio::test]
async fn turns_that_fail_with_a_provider_keep_others_from_it_for_a_while() {
    let limits = Limits { breaker_failures: 2, breaker_open_ms: 600_000, ..quick() };
    let (daemon, mut script) = Daemon::with_agents(limits).await;
    let talk = daemon.agent_session().await;
    let uses = |provider: &str| {
        let (provider, id) = (provider.to_owned(), "m".to_owned());
        let model = Model { provider, id, name: None, context_window: None, about: Value::Null };
        AgentNotice::State(AgentState { model: Some(model), ..AgentState::default() })
    };
    let mut fail = async |text: &str, provider: &str, ending: WorkEnding| {
        let running = say(&talk, text);
        script.work().await;
        script.tell(uses(provider)).await;
        script.end(ending.clone()).await;
        assert_eq!(self::ending(running).await, ending);
    };
    fail("one", "local", WorkEnding::failed("500 no")).await;
    fail("two", "local", done()).await;
    fail("three", "local", WorkEnding::failed("500 no")).await;
    fail("four", "local", WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    fail("five", "other", WorkEnding::failed("401")).await;
    let state = |provider: &str| daemon.engine.provider_breakers()[provider].clone();
    assert_eq!((state("local").failures, state("other").failures), (1, 1));
    for text in ["its own", "fault"] {
        fail(text, "local", WorkEnding::failed("400 the conversation is too long")).await;
    }
    assert_eq!(state("local").failures, 1, "others would not fail so");
    fail("six", "local", WorkEnding::failed("529 overloaded")).await;
    assert_eq!(state("local").state, BreakerState::Open);
    let refused = say(&talk, "seven").await.unwrap().unwrap_err();
    assert!(
        matches!(&refused, Error::RunnerUnavailable { provider: Some(provider), reason, .. } if provider == "local" && reason == "529 overloaded"),
        "{refused:?}"
    );
    // What is no turn is done all the same: a model of another provider is chosen, and its turns begin.
    let set = Setting::Model { provider: "third".to_owned(), id: "m".to_owned() };
    let running =
        talk.send(command(next_id(), Admission::Queue, SessionCommand::Work(JobSpec::Setting(set))));
    script.work().await;
    script.tell(uses("third")).await;
    script.done().await;
    ending(running).await;
    turn(&talk, &mut script, "eight", "here").await;
}

#[tokio::test]
async fn whoever_prompts_an_agent_that_hangs_when_it_starts_is_told_what_it_said_and_it_is_not_started_again()
{
    let limits = Limits { worker_start_ms: 1_000, breaker_failures: 1, ..quick() };
    let (daemon, mut script) = Daemon::with_agents(limits).await;
    let talk = daemon.agent_session().await;
    for (said, told) in
        [("Log in first.\nWaiting.", "; it said: Log in first.\nWaiting."), ("", ", and said nothing")]
    {
        script.next_start_hangs(said);
        let outcome = say(&talk, "look").await.unwrap().unwrap();
        let Outcome::Failed { error } = outcome else { panic!("{outcome:?}") };
        let reason = format!("it was not ready within 1000 ms (`worker-start-ms`){told}");
        assert!(error.to_string().contains(&reason), "{error}");
        assert_eq!(talk.state().await, SessionState::Faulted);
        talk.submit(SessionCommand::Stop).await.unwrap();
    }
    // It was slow, which keeps no other from being started.
    let again = say(&talk, "look");
    script.work().await;
    script.done().await;
    assert_eq!(ending(again).await, done());
}

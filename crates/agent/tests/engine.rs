//! The real pi under the engine, with a real store: what was said is in the transcript, and outlives pi and the daemon.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]
#![allow(dead_code, reason = "what the tests of the runner alone use")]

mod support;

use std::sync::Arc;

use mainstay_agent::pi::PiAgents;
use mainstay_engine::{Client, Engine};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::command::{Answer, Pause, RevokeLease};
use mainstay_model::grant::{Budget, Grants, LeaseTerms, PatternLimits};
use mainstay_model::message::TOOL;
use mainstay_model::permission::Permission;
use mainstay_model::{
    Access, Admission, Ask, Command, CommandId, CreateSession, Error, EventBody, JobSpec, LeaseId, Limits,
    Outcome, Prompt, Response, Seq, SessionCommand, SessionId, SessionKind,
};
use mainstay_test_support::model::{Step, call, say};
use serde_json::json;
use support::World;

/// An engine with pi over the store in the world's folder.
async fn open(world: &World) -> (Engine, Client) {
    let log = SqliteLog::open(&world.folder.path().join("store"), &SqliteOptions::default()).unwrap();
    let pi = PiAgents::new(world.settings.clone());
    let limits = Limits { restart_first_ms: 1, ..Limits::default() };
    let engine = Engine::open(Arc::new(log), vec![Arc::new(pi)], limits).await.unwrap();
    let client = engine.attach(Access::local(), "cli");
    (engine, client)
}

fn id(text: &str) -> CommandId {
    CommandId::new(text).unwrap()
}

async fn create(world: &World, client: &Client) -> SessionId {
    let create = CreateSession {
        kind: SessionKind::pi(),
        working_directory: world.folder.path().join("project").to_str().unwrap().to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: Some("a session".to_owned()),
        alias: None,
    };
    match client.create(id("create"), create).await.unwrap() {
        Outcome::Done { response: Response::Created { session } } => session,
        other => panic!("{other:?}"),
    }
}

fn turn(client: &Client, command: &str, text: &str) -> Command {
    let body = SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text(text) });
    Command { admission: Admission::Queue, ..Command::new(id(command), client.source(), body) }
}

async fn prompt(client: &Client, session: SessionId, command: &str, text: &str) -> String {
    match client.submit(session, turn(client, command, text)).await.unwrap().outcome {
        Outcome::Done { response: Response::Worked(outcome) } => outcome.ending.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Has each model cost so many dollars for a million tokens.
fn costs(world: &World, dollars: f64) {
    let path = world.folder.path().join("agent/models.json");
    let mut models: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for model in models["providers"]["local"]["models"].as_array_mut().unwrap() {
        model["cost"] =
            json!({ "input": dollars, "output": dollars, "cacheRead": dollars, "cacheWrite": dollars });
    }
    std::fs::write(path, models.to_string()).unwrap();
}

/// A turn that may do so much, and how it ended.
async fn bounded(client: &Client, session: SessionId, command: &str, grants: Grants) -> Outcome {
    let command = Command { grants: Some(Box::new(grants)), ..turn(client, command, "go") };
    client.submit(session, command).await.unwrap().outcome
}

fn granted(kinds: &[(&str, String)]) -> Grants {
    let kinds = kinds.iter().map(|(kind, pattern)| (*kind, [pattern.as_str()]));
    Grants::parse(kinds, &PatternLimits::REQUEST).unwrap()
}

async fn transcript(client: &Client, session: SessionId) -> Vec<String> {
    let entries = client.entries(session, 0, 100).await.unwrap();
    let line = |placed: &mainstay_model::TranscriptEntry| {
        format!("{}: {}", placed.entry.role.name(), placed.entry.content.beginning())
    };
    entries.iter().map(line).collect()
}

/// The process of the session's pi, once it has said something in the job that runs.
async fn pid_of_speaking(client: &Client, session: SessionId) -> u32 {
    let mut followed = client.subscribe(session, Seq::ZERO).await.unwrap();
    let mut pid = None;
    loop {
        match &followed.next().await.unwrap().body {
            EventBody::WarmUpCompleted { pid: now, .. } => pid = *now,
            EventBody::MessageStreamed(delta) if delta.text == "half" => return pid.unwrap(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_session_outlives_its_pi_and_its_daemon() {
    let world = World::new().await;
    let (engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    world.model.will(call("c1", "bash", &json!({ "command": "echo found" })));
    world.model.will(say(&["It is there."]));
    assert_eq!(prompt(&client, session, "look", "look").await, "done");
    let said = [
        "user: look",
        "toolCall: {\"command\":\"echo found\"}",
        "toolResult: found\n",
        "assistant: It is there.",
    ];
    assert_eq!(transcript(&client, session).await, said);

    // pi is killed in mid-stream: the turn was cut off, what had arrived is there, and the next turn has a new pi that knows it all.
    world.model.will(vec![Step::Text("half".to_owned()), Step::Hang]);
    let cut_off = tokio::spawn({
        let (client, command) = (client.clone(), turn(&client, "more", "more"));
        async move { client.submit(session, command).await.unwrap().outcome }
    });
    support::kill_outright(pid_of_speaking(&client, session).await);
    let Outcome::Done { response: Response::Worked(outcome) } = cut_off.await.unwrap() else {
        panic!("the turn has no ending")
    };
    assert_eq!(outcome.ending.name(), "interrupted");
    let asked = world.model.asked();
    world.model.will(say(&["I remember."]));
    assert_eq!(prompt(&client, session, "again", "what was there?").await, "done");
    let request = world.model.request(asked + 1).await["messages"].to_string();
    assert!(request.contains("It is there.") && request.contains("\"more\""), "{request}");

    // The same command has the same answer, and asks no model.
    let asked = world.model.asked();
    let repeated = client.submit(session, turn(&client, "again", "what was there?")).await.unwrap();
    assert!(repeated.is_replay && world.model.asked() == asked);

    engine.shut_down().await;
    drop((engine, client));
    let (engine, client) = open(&world).await;
    world.model.will(say(&["Still."]));
    assert_eq!(prompt(&client, session, "later", "and now?").await, "done");
    insta::assert_snapshot!(transcript(&client, session).await.join("\n"), @r#"
    user: look
    toolCall: {"command":"echo found"}
    toolResult: found

    assistant: It is there.
    user: more
    assistant: half
    user: what was there?
    assistant: I remember.
    user: and now?
    assistant: Still.
    "#);
    engine.shut_down().await;
}

#[tokio::test]
async fn whoever_prompts_a_pi_that_cannot_start_is_told_why_at_once() {
    let mut world = World::new().await;
    let starts = world.folder.path().join("starts");
    world.stand_in(&format!(
        "[ \"$1\" = --version ] && exit; echo start >> {}; echo 'Error: Unknown option --no' >&2; exit 1",
        starts.display()
    ));
    let (engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    let Outcome::Failed { error } =
        client.submit(session, turn(&client, "look", "look")).await.unwrap().outcome
    else {
        panic!("nothing can have come of it")
    };
    insta::assert_snapshot!(error, @"cannot prompt: the session is Faulted: the kernel cannot be started: pi ended with exit code 1: Error: Unknown option --no; `[pi]` in Mainstay's `config.toml` says how it is started. `mainstay agent list` shows which agents are used");
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "start\n", "another start would say the same");
    engine.shut_down().await;
}

#[tokio::test]
async fn the_model_and_how_hard_it_thinks_are_known_before_pi_is_started() {
    let mut world = World::new().await;
    (world.settings.provider, world.settings.model) = (None, None);
    let write = |folder: &str, settings: serde_json::Value| {
        let folder = world.folder.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    };
    write(
        "agent",
        json!({ "defaultProvider": "local", "defaultModel": "m", "defaultThinkingLevel": "low", "theme": "dark" }),
    );
    write("project/.pi", json!({ "defaultModel": "n" }));
    let (engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    let state = |session| engine.agent_state(&session);
    let before = state(client.status(session).await.unwrap().session);
    assert_eq!(before.to_string(), "local/n, thinking low");
    world.model.will(say(&["Hello."]));
    assert_eq!(prompt(&client, session, "hello", "hello").await, "done");
    let after = state(client.status(session).await.unwrap().session);
    assert!(after.to_string().starts_with("local/n, thinking low"), "{after}");
    engine.shut_down().await;
}

#[tokio::test]
async fn tools_do_what_the_grant_of_a_job_allows_and_nothing_else() {
    let world = World::new().await;
    let project = world.folder.path().canonicalize().unwrap().join("project");
    let outside = project.parent().unwrap().join("outside.txt");
    std::fs::write(project.join("a.txt"), "inside").unwrap();
    std::fs::write(&outside, "outside").unwrap();
    std::os::unix::fs::symlink(&outside, project.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(outside.with_file_name("made.txt"), project.join("dangling.txt")).unwrap();
    std::os::unix::fs::symlink(&outside, project.join("two words.txt")).unwrap();
    let (_engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    let calls = [
        ("read", json!({ "path": "a.txt" })),
        ("read", json!({ "path": "../outside.txt" })),
        ("read", json!({ "path": "link.txt" })),
        ("read", json!({ "path": "two\u{a0}words.txt" })),
        ("read", json!({ "path": "nothing.txt" })),
        ("write", json!({ "path": "b.txt", "content": "new" })),
        ("write", json!({ "path": "made/dangling.txt", "content": "new" })),
        ("write", json!({ "path": "dangling.txt", "content": "new" })),
        ("bash", json!({ "command": "touch c.txt" })),
    ];
    for (tool, arguments) in &calls {
        world.model.will(call("c1", tool, arguments));
    }
    world.model.will(say(&["Done."]));
    let grants = granted(&[
        ("fs.read", format!("{}/**", project.display())),
        ("fs.write", format!("{}/*ling.txt", project.display())),
    ]);
    assert!(matches!(bounded(&client, session, "bounded", grants).await, Outcome::Done { .. }));
    let said = transcript(&client, session)
        .await
        .join("\n")
        .replace(world.folder.path().canonicalize().unwrap().to_str().unwrap(), "…");
    insta::assert_snapshot!(said, @r#"
    user: go
    toolCall: {"path":"a.txt"}
    toolResult: inside
    toolCall: {"path":"../outside.txt"}
    toolResult: the operation `fs.read` on `…/outside.txt` is not granted
    toolCall: {"path":"link.txt"}
    toolResult: the operation `fs.read` on `…/outside.txt` is not granted
    toolCall: {"path":"two words.txt"}
    toolResult: the operation `fs.read` on `…/outside.txt` is not granted
    toolCall: {"path":"nothing.txt"}
    toolResult: ENOENT: no such file or directory, lstat '…/project/nothing.txt'
    toolCall: {"content":"new","path":"b.txt"}
    toolResult: the operation `fs.write` on `…/project/b.txt` is not granted
    toolCall: {"content":"new","path":"made/dangling.txt"}
    toolResult: the operation `fs.write` on `…/project/made/dangling.txt` is not granted
    toolCall: {"content":"new","path":"dangling.txt"}
    toolResult: the operation `fs.write` on `…/made.txt` is not granted
    toolCall: {"command":"touch c.txt"}
    toolResult: the operation `tool.call` on `bash` is not granted
    assistant: Done.
    "#);
    assert!(!outside.with_file_name("made.txt").exists(), "nothing is made through a link");
    assert!(!project.join("b.txt").exists() && !project.join("c.txt").exists());
    // Without a grant nothing is refused.
    world.model.will(call("last", "bash", &json!({ "command": "touch c.txt" })));
    world.model.will(say(&["Done."]));
    assert_eq!(prompt(&client, session, "free", "go").await, "done");
    assert!(project.join("c.txt").exists());
}

/// The next question of a job behind an event, and the event that raised it.
async fn next_ask(client: &Client, session: SessionId, after: Seq) -> (Ask, Seq) {
    let mut followed = client.subscribe(session, after).await.unwrap();
    loop {
        let event = followed.next().await.unwrap();
        if let EventBody::AskRaised(ask) = &event.body {
            return ((**ask).clone(), event.seq);
        }
    }
}

/// The file that a question is about.
fn file_of(ask: &Ask) -> String {
    let target = Permission::operation(&ask.question).unwrap().target;
    target.rsplit('/').next().unwrap().to_owned()
}

async fn carried_out(client: &Client, session: SessionId, command: &str, body: SessionCommand) {
    let command = Command::new(id(command), client.source(), body);
    let outcome = client.submit(session, command).await.unwrap().outcome;
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
}

#[tokio::test]
async fn tools_do_what_people_allow_for_a_time_without_a_question_until_that_is_revoked() {
    let world = World::new().await;
    let project = world.folder.path().canonicalize().unwrap().join("project");
    let (_engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    for file in ["a1.txt", "a2.txt", "b.txt", "a3.txt"] {
        world.model.will(call("c1", "write", &json!({ "path": file, "content": "new" })));
    }
    world.model.will(say(&["Done."]));
    let asked = async {
        let no = |ask: &Ask| SessionCommand::Answer(Answer::new(ask.ask, json!("no")));
        let (first, seq) = next_ask(&client, session, Seq::ZERO).await;
        let pattern = Some(format!("{}/a*.txt", project.display()));
        let lease = Some(LeaseTerms { duration_ms: 600_000, pattern });
        let given = SessionCommand::Answer(Answer { lease, ..Answer::new(first.ask, json!("once")) });
        carried_out(&client, session, "give", given).await;
        // What that covers is not asked about. While something else is, the permission is taken back.
        let (second, seq) = next_ask(&client, session, seq).await;
        let revoked = RevokeLease { lease: LeaseId::from(first.ask), reason: "enough".to_owned() };
        carried_out(&client, session, "revoke", SessionCommand::RevokeLease(revoked)).await;
        carried_out(&client, session, "second", no(&second)).await;
        let (third, _) = next_ask(&client, session, seq).await;
        carried_out(&client, session, "third", no(&third)).await;
        [first, second, third].map(|ask| file_of(&ask))
    };
    let (ended, asked) = tokio::join!(bounded(&client, session, "asking", Grants::default().asking()), asked);
    assert!(matches!(ended, Outcome::Done { .. }), "{ended:?}");
    assert_eq!(asked, ["a1.txt", "b.txt", "a3.txt"]);
    let there = ["a1.txt", "a2.txt", "b.txt", "a3.txt"].map(|file| project.join(file).exists());
    assert_eq!(there, [true, true, false, false]);
}

/// Waits until the agent has called a tool in a message.
async fn until_called(client: &Client, session: SessionId, tool: &str) {
    let mut followed = client.subscribe(session, Seq::ZERO).await.unwrap();
    loop {
        if let EventBody::MessageAdded(message) = &followed.next().await.unwrap().body
            && message.parts.iter().any(|part| part.metadata.get(TOOL).is_some_and(|named| named == tool))
        {
            return;
        }
    }
}

#[tokio::test]
async fn an_agent_that_is_to_pause_does_nothing_more_until_somebody_says_how_to_go_on() {
    let world = World::new().await;
    let project = world.folder.path().canonicalize().unwrap().join("project");
    let (_engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    // It tells that it runs, and waits.
    let pipes = ["began", "go"].map(|pipe| project.join(pipe));
    assert!(std::process::Command::new("mkfifo").args(&pipes).status().unwrap().success());
    world.model.will(call("c1", "bash", &json!({ "command": "echo > began; read line < go" })));
    world.model.will(call("c2", "write", &json!({ "path": "b.txt", "content": "new" })));
    world.model.will(call("c3", "write", &json!({ "path": "c.txt", "content": "new" })));
    world.model.will(say(&["Done."]));
    let guided = async {
        tokio::fs::read(&pipes[0]).await.unwrap();
        let pause = Pause { target: None, prompt: Some("Is b.txt wanted?".to_owned()) };
        carried_out(&client, session, "pause", SessionCommand::Pause(pause)).await;
        let (ask, _) = next_ask(&client, session, Seq::ZERO).await;
        assert_eq!((&*ask.question.prompt, ask.deadline), ("Is b.txt wanted?", None));
        // What runs already goes on.
        tokio::fs::write(&pipes[1], "\n").await.unwrap();
        until_called(&client, session, "write").await;
        let words = SessionCommand::Answer(Answer::new(ask.ask, json!("No, c.txt is.")));
        carried_out(&client, session, "words", words).await;
    };
    let command = turn(&client, "paused", "go");
    let (ended, ()) = tokio::join!(client.submit(session, command), guided);
    assert!(matches!(ended.unwrap().outcome, Outcome::Done { .. }));
    assert_eq!(["b.txt", "c.txt"].map(|file| project.join(file).exists()), [false, true]);
    insta::assert_snapshot!(transcript(&client, session).await.join("\n"), @r#"
    user: go
    toolCall: {"command":"echo > began; read line < go"}
    toolResult: (no output)
    toolCall: {"content":"new","path":"b.txt"}
    toolResult: you were to pause before this; read what the person says now, and do it only where it still fits
    user: No, c.txt is.
    toolCall: {"content":"new","path":"c.txt"}
    toolResult: Successfully wrote 3 bytes to c.txt
    assistant: Done.
    "#);
}

#[tokio::test]
async fn a_job_ends_once_its_agent_has_spent_its_budget() {
    let world = World::new().await;
    costs(&world, 1_000.0);
    let (_engine, client) = open(&world).await;
    let session = create(&world, &client).await;
    for _ in 0..50 {
        world.model.will(call("c1", "bash", &json!({ "command": "true" })));
    }
    let grants = granted(&[("tool.call", "bash".to_owned())]).costing(Budget::parse(["USD:0.10"]).unwrap());
    let ended = bounded(&client, session, "dear", grants).await;
    assert_eq!(ended, Outcome::Failed { error: Error::BudgetExhausted { currency: "USD".to_owned() } });
    assert!(world.model.asked() < 10, "{}", world.model.asked());
    let usage = client.seen_session(session).await.unwrap().unwrap().usage;
    assert!(usage.cost.dollars() >= 0.1, "{usage}");
}

//! Commands that need no turn: sessions come and go, and what was said is read.

use mainstay_model::agent::Model;
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    Access, AgentNotice, AgentState, Command, CommandId, CreateSession, Outcome, Part, PartRole, Response,
    SessionCommand, SessionKind, ThinkingLevel, WorkEnding,
};
use serde_json::{Value, json};

use crate::support::{Client, Home, shown};
use mainstay_test_support::scripted_agent::{Given, Script};

async fn turn(client: &mut Client, script: &mut Script, id: &str, said: &str, answer: &str) {
    client.send(json!({ "id": id, "type": "prompt", "sessionId": "main", "message": said })).await;
    script.work().await;
    script.say(PartRole::User, said).await;
    script.message(vec![Part::text(PartRole::Assistant, answer).with("model", "m")]).await;
    script.done().await;
    assert_eq!(client.until_answer(id).await.pop().unwrap()["success"], true);
}

#[tokio::test]
async fn sessions_come_and_go_and_everyone_hears_of_it_in_order() {
    let (home, _script) = Home::new().await;
    let (mut client, mut other) = (home.client().await, home.client().await);
    client.send(json!({ "id": "c1", "type": "create_session", "sessionId": "main" })).await;
    let mut frames = client.until(|frame| frame["type"] == "session_created").await;
    client.send(json!({ "id": "n1", "type": "set_session_name", "sessionId": "main", "name": "work" })).await;
    frames.extend(client.until_answer("n1").await);
    client.send(json!({ "id": "g1", "type": "get_state", "sessionId": "main" })).await;
    frames.extend(client.until_answer("g1").await);
    client.send(json!({ "type": "delete_session", "sessionId": "main" })).await;
    frames.extend(client.until(|frame| frame["type"] == "session_deleted").await);
    insta::assert_snapshot!(shown(&frames));
    let heard = other.until(|frame| frame["type"] == "session_deleted").await;
    assert!(heard.iter().all(|frame| frame["type"] != "response"), "answers are for who asks");
    // What was deleted leaves its name.
    assert_eq!(
        client.ask(json!({ "id": "c2", "type": "create_session", "sessionId": "main" })).await["success"],
        true
    );
}

#[tokio::test]
async fn others_hear_nothing_of_what_is_not_theirs() {
    let (home, _script) = Home::new().await;
    let (mut client, mut ada) = (home.client().await, home.ada().await);
    client.session("main").await;
    assert_eq!(
        ada.ask(json!({ "id": "1", "type": "list_sessions" })).await["data"],
        json!({ "sessions": [] })
    );
    ada.send(json!({ "id": "2", "type": "get_state", "sessionId": "main" })).await;
    let frames = ada.until_answer("2").await;
    assert_eq!(frames.last().unwrap()["error"], "Session main not found");
    assert!(frames.iter().all(|frame| frame["data"]["commandId"] != "create-main"), "{frames:?}");
    // The name is hers to give as well.
    ada.session("main").await;
}

#[tokio::test]
async fn what_was_said_is_read_from_the_transcript() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    turn(&mut client, &mut script, "p1", "one", "1").await;
    turn(&mut client, &mut script, "p2", "two", "2").await;
    let model = Model {
        provider: "local".to_owned(),
        id: "m".to_owned(),
        name: None,
        context_window: Some(1000),
        about: json!({ "id": "m", "provider": "local" }),
    };
    let state = AgentState {
        model: Some(model),
        thinking: ThinkingLevel::High,
        auto_compaction: true,
        context_tokens: Some(250),
    };
    script.tell(AgentNotice::State(state)).await;
    client.until(|frame| frame["event"]["type"] == "thinking_level_changed").await;
    let mut answers: Vec<Value> = Vec::new();
    let reads = [
        "get_state",
        "get_messages",
        "get_fork_messages",
        "get_tree",
        "get_last_assistant_text",
        "get_context_usage",
        "get_session_stats",
        "get_available_models",
        "get_skills",
        "list_session_files",
    ];
    for (number, read) in reads.into_iter().enumerate() {
        answers
            .push(client.ask(json!({ "id": format!("r{number}"), "type": read, "sessionId": "main" })).await);
    }
    insta::assert_snapshot!(shown(&answers));
    let forked = client.ask(json!({ "id": "f1", "type": "fork", "sessionId": "main", "entryId": "3" })).await;
    assert_eq!((&forked["data"]["text"], &forked["data"]["cancelled"]), (&json!("two"), &json!(false)));
    let fork = forked["data"]["sessionId"].clone();
    let messages = client.ask(json!({ "id": "f2", "type": "get_messages", "sessionId": fork })).await;
    assert_eq!(messages["data"]["messages"].as_array().unwrap().len(), 2, "{messages}");
}

#[tokio::test]
async fn the_commands_of_the_past_are_told_the_newest_first() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    turn(&mut client, &mut script, "p1", "one", "1").await;
    client.ask(json!({ "id": "n1", "type": "set_session_name", "sessionId": "main", "name": "x" })).await;
    let all =
        client.ask(json!({ "id": "h1", "type": "get_command_history", "sessionIdFilter": "main" })).await;
    let told: Vec<String> = all["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!("{} {} {}", entry["commandId"], entry["phase"], entry["commandType"]).replace('"', "")
        })
        .filter(|line| !line.starts_with("anon"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
    let one =
        client.ask(json!({ "id": "h2", "type": "get_command_history", "commandId": "n1", "limit": 5 })).await;
    assert_eq!(one["data"]["returned"], 1, "{one}");
}

/// The commands that the history says have ended, by their ids, and whether they succeeded.
async fn finished(client: &mut Client, id: &str) -> Vec<String> {
    let all = client.ask(json!({ "id": id, "type": "get_command_history" })).await;
    let entries = all["data"]["entries"].as_array().unwrap().iter();
    let ended = entries.filter(|entry| entry["phase"] == "command_finished");
    let line = |entry: &Value| {
        format!("{} {} {}", entry["commandId"], entry["commandType"], entry["success"]).replace('"', "")
    };
    let mut ended: Vec<String> = ended.map(line).collect();
    ended.sort();
    ended
}

#[tokio::test]
async fn the_history_says_of_each_command_what_its_answer_said() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    turn(&mut client, &mut script, "p1", "one", "1").await;
    let of_main =
        |id: &str, kind: &str| json!({ "id": id, "type": kind, "sessionId": "main", "message": "two" });
    client.send(of_main("p2", "prompt")).await;
    script.work().await;
    for (id, kind) in [("s1", "steer"), ("f1", "follow_up")] {
        assert_eq!(client.ask(of_main(id, kind)).await["success"], true);
        assert!(matches!(script.next().await, Given::Steered(_)));
    }
    client.send(of_main("a1", "abort")).await;
    assert!(matches!(script.next().await, Given::Interrupted));
    script.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    assert_eq!(client.until_answer("p2").await.pop().unwrap()["success"], true);
    client.send(of_main("k1", "compact")).await;
    script.work().await;
    script.end(WorkEnding::Cancelled { by: CancelEnding::Yielded }).await;
    assert_eq!(client.until_answer("k1").await.pop().unwrap()["success"], false);
    client.ask(json!({ "id": "c1", "type": "fork", "sessionId": "main", "entryId": "1" })).await;
    client.ask(of_main("n1", "new_session")).await;
    assert!(matches!(script.next().await, Given::Killed));
    client.ask(json!({ "id": "r1", "type": "set_session_name", "sessionId": "main", "name": "x" })).await;
    let mut expected = vec![
        "a1 abort true",
        "c1 fork true",
        "create-main create_session true",
        "f1 follow_up true",
        "k1 compact false",
        "n1 new_session true",
        "p1 prompt true",
        "p2 prompt true",
        "r1 set_session_name true",
        "s1 steer true",
    ];
    assert_eq!(finished(&mut client, "h1").await, expected);
    // What was only unloaded keeps what was done in it.
    client.ask(of_main("d1", "delete_session")).await;
    expected.insert(3, "d1 delete_session true");
    assert_eq!(finished(&mut client, "h2").await, expected);
    // What was deleted is gone, with all that.
    let cli = home.daemon.engine.attach(Access::local(), "cli");
    let session = cli.resolve("x").await.unwrap();
    let delete = Command::new(CommandId::new("cli-1").unwrap(), cli.source(), SessionCommand::Delete);
    cli.submit(session, delete).await.unwrap();
    assert_eq!(finished(&mut client, "h3").await, ["c1 fork true", "cli-1 delete_session true"]);
}

#[tokio::test]
async fn the_daemon_tells_how_it_is() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let metrics = client.ask(json!({ "id": "1", "type": "get_metrics" })).await;
    assert_eq!(metrics["data"]["sessionCount"], 1);
    let health = client.ask(json!({ "id": "2", "type": "health_check" })).await;
    assert_eq!(
        health["data"],
        json!({ "healthy": true, "issues": [], "hasOpenCircuit": false, "hasOpenBashCircuit": false })
    );
    let recovery = client.ask(json!({ "id": "3", "type": "get_startup_recovery" })).await;
    assert_eq!(recovery["data"]["initState"], "ready");
    let stored = client.ask(json!({ "id": "4", "type": "list_stored_sessions" })).await;
    assert_eq!(stored["data"]["sessions"][0]["fileExists"], false);
}

#[tokio::test]
async fn what_came_and_went_is_answered_again_as_the_first_time() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    let create = json!({ "id": "c1", "type": "create_session", "sessionId": "main" });
    let delete = json!({ "id": "d1", "type": "delete_session", "sessionId": "main" });
    client.ask(create.clone()).await;
    client.until(|frame| frame["type"] == "session_created").await;
    let again = client.ask(create.clone()).await;
    assert_eq!((&again["replayed"], &again["data"]["sessionId"]), (&json!(true), &json!("main")));
    assert_eq!(client.ask(delete.clone()).await["success"], true);
    let home = home.restart().await;
    let mut client = home.client().await;
    for (command, id) in [(create, "c1"), (delete, "d1")] {
        let again = client.ask(command).await;
        assert_eq!(
            (&again["id"], &again["success"], &again["replayed"]),
            (&json!(id), &json!(true), &json!(true)),
            "{again}"
        );
    }
    let history = client.ask(json!({ "id": "h1", "type": "get_command_history" })).await;
    assert_eq!(history["success"], true, "{history}");
}

#[tokio::test]
async fn a_read_waits_for_what_it_depends_on() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "one" })).await;
    script.work().await;
    client.send(json!({ "id": "r1", "type": "get_last_assistant_text", "sessionId": "main", "dependsOn": ["p1"] })).await;
    script.say(PartRole::Assistant, "1").await;
    script.done().await;
    assert_eq!(client.until_answer("r1").await.pop().unwrap()["data"]["text"], "1");
    let unknown = client
        .ask(json!({ "id": "r2", "type": "get_state", "sessionId": "main", "dependsOn": ["nobody"] }))
        .await;
    assert_eq!(unknown["error"], "Dependency 'nobody' is unknown");
}

#[tokio::test]
async fn a_new_session_begins_anew_for_all_who_read_it() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    turn(&mut client, &mut script, "p1", "one", "1").await;
    let count = async |client: &mut Client, id: &str, session: &Value| {
        let state = client.ask(json!({ "id": id, "type": "get_state", "sessionId": session })).await;
        state["data"]["messageCount"].as_u64().unwrap()
    };
    turn(&mut client, &mut script, "p2", "two", "2").await;
    let forked = client.ask(json!({ "id": "f1", "type": "fork", "sessionId": "main", "entryId": "3" })).await;
    assert_eq!(count(&mut client, "s1", &forked["data"]["sessionId"]).await, 2, "what it was forked with");
    let listed = client.ask(json!({ "id": "l1", "type": "list_sessions" })).await;
    let counts: Vec<_> = listed["data"]["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|info| info["messageCount"].clone())
        .collect();
    assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 6, "{listed}");

    let new = client.ask(json!({ "id": "n1", "type": "new_session", "sessionId": "main" })).await;
    assert_eq!(new["success"], true, "{new}");
    assert!(matches!(script.next().await, Given::Killed));
    assert_eq!(count(&mut client, "s2", &json!("main")).await, 0);
    let mut read = Vec::new();
    for kind in ["get_messages", "get_last_assistant_text", "get_fork_messages", "get_tree"] {
        let answer =
            client.ask(json!({ "id": format!("n-{kind}"), "type": kind, "sessionId": "main" })).await;
        read.push(answer["data"].clone());
    }
    let nothing = [
        json!({ "messages": [] }),
        json!({ "text": null }),
        json!({ "messages": [] }),
        json!({ "currentLeafId": null, "nodes": [] }),
    ];
    assert_eq!(read, nothing);
    let stats = async |client: &mut Client, id: &str| {
        let stats = client.ask(json!({ "id": id, "type": "get_session_stats", "sessionId": "main" })).await;
        ["userMessages", "assistantMessages", "totalMessages"]
            .map(|count| stats["data"][count].as_u64().unwrap())
    };
    assert_eq!(stats(&mut client, "t1").await, [0, 0, 0]);

    turn(&mut client, &mut script, "p3", "three", "3").await;
    assert_eq!(count(&mut client, "s3", &json!("main")).await, 2);
    assert_eq!(stats(&mut client, "t2").await, [1, 1, 2]);
    let said = client.ask(json!({ "id": "s4", "type": "get_fork_messages", "sessionId": "main" })).await;
    assert_eq!(
        said["data"]["messages"],
        json!([{ "entryId": "5", "text": "three" }]),
        "its place in the transcript"
    );

    // What a line of a shell gave is told to the agent, and nothing that a person said.
    client.send(json!({ "id": "b1", "type": "bash", "sessionId": "main", "command": "ls" })).await;
    script.work().await;
    let ran = Part::text(PartRole::User, "$ ls\na").with("subtype", "bashExecution").with("command", "ls");
    script.message(vec![ran]).await;
    script.done().await;
    client.until_answer("b1").await;
    assert_eq!(stats(&mut client, "t3").await, [1, 1, 3]);
    let said = client.ask(json!({ "id": "s5", "type": "get_fork_messages", "sessionId": "main" })).await;
    assert_eq!(said["data"]["messages"].as_array().unwrap().len(), 1);
    let tree = client.ask(json!({ "id": "s6", "type": "get_tree", "sessionId": "main" })).await;
    assert_eq!(tree["data"]["nodes"].as_array().unwrap().last().unwrap()["role"], "bashExecution");
    let fork = json!({ "id": "f1", "type": "fork", "sessionId": "main", "entryId": "7" });
    assert_eq!(client.ask(fork).await["success"], false);
}

#[tokio::test]
async fn a_session_is_created_once_under_a_key_and_once_what_it_depends_on_is_done() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    let keyed = |id: &str, name: &str| json!({ "id": id, "type": "create_session", "sessionId": name, "idempotencyKey": "once" });
    client.ask(keyed("c1", "main")).await;
    let again = client.ask(keyed("c2", "main")).await;
    assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)), "{again}");
    let other = client.ask(keyed("c3", "other")).await;
    let error = "Conflicting idempotencyKey 'once': previously used for 'create_session', now used for 'create_session'";
    assert_eq!(other["error"], error);

    // One that waits keeps nothing behind it waiting, and what is for the session that it brings waits with it.
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    client
        .send(json!({ "id": "c4", "type": "create_session", "sessionId": "next", "dependsOn": ["p1"] }))
        .await;
    client
        .send(json!({ "id": "n4", "type": "set_session_name", "sessionId": "next", "name": "behind", "dependsOn": ["c4"] }))
        .await;
    assert_eq!(client.ask(json!({ "id": "l1", "type": "list_sessions" })).await["success"], true);
    script.done().await;
    let mut answered = std::collections::BTreeSet::new();
    // Who waited may be answered before the one that was waited for.
    while answered.len() < 3 {
        let answer = client.until(|frame| frame["type"] == "response").await.pop().unwrap();
        assert_eq!(answer["success"], true, "{answer}");
        answered.insert(answer["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(answered.into_iter().collect::<Vec<_>>(), ["c4", "n4", "p1"]);

    let failed = client
        .ask(json!({ "id": "c5", "type": "create_session", "sessionId": "never", "dependsOn": ["nobody"] }))
        .await;
    assert_eq!(failed["error"], "Dependency 'nobody' is unknown");
}

#[tokio::test]
async fn sessions_that_others_bring_are_heard_of_by_who_may_see_them() {
    let (home, _script) = Home::new().await;
    let (mut client, mut ada) = (home.client().await, home.ada().await);
    let cli = home.daemon.engine.attach(Access::local(), "cli");
    let id = |name: &str| CommandId::new(name).unwrap();
    let create = CreateSession {
        kind: SessionKind::pi(),
        working_directory: "/".to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: Some("of the cli".to_owned()),
        alias: None,
    };
    let created = cli.create(id("cli-1"), create).await.unwrap();
    let Outcome::Done { response: Response::Created { session } } = created else { panic!("{created:?}") };
    let came = client.until(|frame| frame["type"] == "session_created").await.pop().unwrap();
    assert_eq!(came["data"]["sessionInfo"]["sessionName"], "of the cli");
    cli.submit(session, Command::new(id("cli-2"), cli.source(), SessionCommand::Delete)).await.unwrap();
    let went = client.until(|frame| frame["type"] == "session_deleted").await.pop().unwrap();
    assert_eq!(went["data"]["sessionId"], session.to_string());

    // Her own are told to the daemon's user, once; of his she hears nothing.
    ada.session("hers").await;
    let came = client.until(|frame| frame["type"] == "session_created").await;
    assert!(came.iter().all(|frame| frame["type"] == "session_created"), "{came:?}");
    let heard = ada.ask(json!({ "id": "x", "type": "health_check" })).await;
    assert_eq!(heard["success"], true);
    client
        .ask(json!({ "id": "d", "type": "delete_session", "sessionId": came[0]["data"]["sessionId"] }))
        .await;
    let went = ada.until(|frame| frame["type"] == "session_deleted").await;
    let kinds: Vec<_> = went.iter().map(|frame| (&frame["type"], &frame["data"]["sessionId"])).collect();
    assert_eq!(kinds, [(&json!("session_deleted"), &json!("hers"))]);
}

#[tokio::test]
async fn what_ran_when_the_daemon_was_lost_is_told_by_the_next() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    client.until(|frame| frame["event"]["type"] == "agent_start").await;
    let home = home.lost().await;
    let mut client = home.client().await;
    let recovery = client.ask(json!({ "id": "r", "type": "get_startup_recovery" })).await;
    assert_eq!(
        recovery["data"]["recoveredInFlight"],
        json!([{
            "commandId": "p1",
            "commandType": "prompt",
            "laneKey": "session:main",
            "lastPhase": "command_started",
            "reason": "Command did not finish before previous shutdown and was marked failed during recovery",
        }])
    );
    assert_eq!(recovery["data"]["recoveredInFlightFailures"], 1);
    let again =
        client.ask(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    assert_eq!((&again["success"], &again["replayed"]), (&json!(false), &json!(true)), "{again}");
    let mut ada = home.ada().await;
    let recovery = ada.ask(json!({ "id": "r", "type": "get_startup_recovery" })).await;
    assert_eq!(recovery["data"]["recoveredInFlight"], json!([]), "of others nothing");
}

#[tokio::test]
async fn a_session_file_is_loaded_and_a_session_is_exported_as_a_page() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.jsonl");
    let cwd = folder.path().display().to_string();
    let lines = [
        json!({ "type": "session", "version": 3, "id": "0", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd }),
        json!({
            "type": "message", "id": "a", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
            "message": { "role": "user", "content": "<one & two>", "timestamp": 0 },
        }),
        json!({
            "type": "message", "id": "b", "parentId": "a", "timestamp": "2026-01-01T00:00:02.000Z",
            "message": { "role": "assistant", "content": [{ "type": "text", "text": "three" }], "timestamp": 0 },
        }),
    ];
    std::fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
    client
        .send(json!({ "id": "l1", "type": "load_session", "sessionId": "old", "sessionPath": file.display().to_string() }))
        .await;
    let mut frames = client.until(|frame| frame["type"] == "session_created").await;
    for command in [
        json!({ "id": "m1", "type": "get_messages", "sessionId": "old" }),
        json!({ "id": "e1", "type": "export_html", "sessionId": "old", "outputPath": "page.html" }),
        json!({ "id": "e2", "type": "export_html", "sessionId": "old", "outputPath": "page.html" }),
    ] {
        let id = command["id"].as_str().unwrap().to_owned();
        client.send(command).await;
        frames.extend(client.until_answer(&id).await);
    }
    insta::assert_snapshot!(shown(&frames).replace(&cwd, "<folder>"));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("&lt;one &amp; two&gt;") && page.contains("three"), "{page}");
}

#[tokio::test]
async fn what_did_nothing_or_asks_no_more_is_answered_again_as_the_first_time() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let abort = json!({ "id": "ab", "type": "abort", "sessionId": "main" });
    assert_eq!(client.ask(abort.clone()).await["success"], true);
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    let again = client.ask(abort).await;
    assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)), "{again}");
    script.done().await;
    assert_eq!(client.until_answer("p1").await.pop().unwrap()["success"], true, "it was not aborted");

    let delete = json!({ "id": "d1", "type": "delete_session", "sessionId": "main" });
    assert_eq!(client.ask(delete.clone()).await["success"], true);
    client.ask(json!({ "id": "c2", "type": "create_session", "sessionId": "main" })).await;
    let again = client.ask(delete).await;
    assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)), "{again}");
    assert_eq!(
        client.ask(json!({ "id": "g", "type": "get_state", "sessionId": "main" })).await["success"],
        true
    );
}

#[tokio::test]
async fn sessions_of_one_name_are_told_apart_by_their_ids() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    for id in ["one", "two"] {
        client.session(id).await;
        let name =
            json!({ "id": format!("n-{id}"), "type": "set_session_name", "sessionId": id, "name": "work" });
        assert_eq!(client.ask(name).await["success"], true);
    }
    let listed = client.ask(json!({ "id": "l", "type": "list_sessions" })).await;
    let mut listed: Vec<_> = listed["data"]["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| [&session["sessionId"], &session["sessionName"]].map(|name| name.as_str().unwrap()))
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, [["one", "work"], ["two", "work"]]);
}

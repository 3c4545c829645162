//! `delete_session` unloads: the id is free for another session, and `load_session` has back what was there.

use mainstay_model::agent::QueuedPrompt;
use mainstay_model::{Access, Command, CommandId, Delivery, Part, PartRole, Prompt, SessionCommand};
use serde_json::{Value, json};

use crate::support::{Client, Home};
use mainstay_test_support::scripted_agent::{Given, Script};

fn of_main(id: &str, kind: &str) -> Value {
    json!({ "id": id, "type": kind, "sessionId": "main" })
}

fn load(id: &str, path: &Value, name: &str) -> Value {
    json!({ "id": id, "type": "load_session", "sessionPath": path, "sessionId": name })
}

async fn turn(client: &mut Client, script: &mut Script, id: &str, said: &str) {
    client.send(json!({ "id": id, "type": "prompt", "sessionId": "main", "message": said })).await;
    script.work().await;
    script.message(vec![Part::text(PartRole::User, said)]).await;
    script.done().await;
    assert_eq!(client.until_answer(id).await.pop().unwrap()["success"], true);
}

/// What a client is told that a session consists of.
async fn said(client: &mut Client, id: &str, name: &str) -> Vec<String> {
    let read = client.ask(json!({ "id": id, "type": "get_messages", "sessionId": name })).await;
    let messages = read["data"]["messages"].as_array().unwrap_or_else(|| panic!("{read}"));
    messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// The stored sessions, and which of them are loaded, by what they are called.
async fn stored(client: &mut Client, id: &str) -> (Vec<Value>, Vec<Value>) {
    let stored = client.ask(json!({ "id": format!("{id}-stored"), "type": "list_stored_sessions" })).await;
    let loaded = client.ask(json!({ "id": format!("{id}-loaded"), "type": "list_sessions" })).await;
    let sessions = |answer: &Value| answer["data"]["sessions"].as_array().unwrap().clone();
    let names = sessions(&loaded).into_iter().map(|session| session["sessionId"].clone()).collect();
    (sessions(&stored), names)
}

#[tokio::test]
async fn an_unloaded_session_frees_its_id_and_is_loaded_again_by_its_path() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    turn(&mut client, &mut script, "p1", "first").await;
    let deleted = client.ask(of_main("d1", "delete_session")).await;
    assert!(matches!(script.next().await, Given::Killed));
    assert_eq!(deleted["data"], json!({ "deleted": true }));
    assert_eq!(client.until(|frame| frame["type"] == "session_deleted").await.len(), 1);
    let gone = client.ask(of_main("g1", "get_state")).await;
    assert_eq!(gone["error"], "Session main not found");

    // Another has the id, and its events come to who asks for them.
    let created = client.ask(of_main("c2", "create_session")).await;
    assert_eq!(created["success"], true, "{created}");
    assert_eq!(client.ask(of_main("s2", "switch_session")).await["success"], true);
    turn(&mut client, &mut script, "p2", "second").await;
    assert_eq!(said(&mut client, "m2", "main").await, ["second"]);

    let (all, loaded) = stored(&mut client, "l").await;
    assert_eq!(loaded, ["main"]);
    let old = all.iter().find(|session| session["sessionId"] != "main").unwrap();
    let path = &old["sessionPath"];
    let by_id = json!({ "id": "g2", "type": "get_state", "sessionId": old["sessionId"] });
    assert_eq!(client.ask(by_id).await["success"], false, "nor by its whole id");
    let taken = client.ask(load("l0", path, "main")).await;
    assert_eq!(taken["error"], "Session main already exists");
    client.send(load("l1", path, "old")).await;
    let frames = client.until(|frame| frame["type"] == "session_created").await;
    let kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["command_accepted", "command_started", "command_finished", "response", "session_created"]
    );
    let answer = &frames[3]["data"];
    assert_eq!(
        (&answer["sessionId"], &answer["sessionInfo"]["messageCount"]),
        (&json!("old"), &json!(1)),
        "{answer}"
    );
    assert_eq!(said(&mut client, "m3", "old").await, ["first"]);
    assert_eq!(stored(&mut client, "k").await.1.len(), 2);
}

#[tokio::test]
async fn what_was_unloaded_and_loaded_is_answered_again_as_the_first_time_also_by_the_next_daemon() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.ask(of_main("d1", "delete_session")).await;
    // Without a folder of its own it would be created in another by each daemon here.
    let create = json!({ "id": "c2", "type": "create_session", "sessionId": "main", "cwd": "/" });
    assert_eq!(client.ask(create.clone()).await["success"], true);
    let (all, _) = stored(&mut client, "l").await;
    let path = all.iter().find(|session| session["sessionId"] != "main").unwrap()["sessionPath"].clone();
    assert_eq!(client.ask(load("l1", &path, "old")).await["success"], true);
    let mut home = home;
    for _ in 0..2 {
        // The daemon is lost; the store has all that was answered.
        home = home.lost().await;
        let mut client = home.client().await;
        let (all, _) = stored(&mut client, "k").await;
        let path = &all.iter().find(|session| session["sessionId"] == "old").unwrap()["sessionPath"];
        for again in [of_main("d1", "delete_session"), create.clone(), load("l1", path, "old")] {
            let answer = client.ask(again).await;
            assert_eq!((&answer["success"], &answer["replayed"]), (&json!(true), &json!(true)), "{answer}");
        }
        let other = json!({ "id": "d1", "type": "delete_session", "sessionId": "old" });
        let conflict = client.ask(other).await;
        assert!(conflict["error"].as_str().unwrap().starts_with("Conflicting id 'd1'"), "{conflict}");
        let (_, mut loaded) = stored(&mut client, "m").await;
        loaded.sort_by_key(Value::to_string);
        assert_eq!(loaded, ["main", "old"]);
    }
}

#[tokio::test]
async fn a_turn_that_runs_ends_with_its_session_and_other_protocols_still_have_it() {
    let (home, mut script) = Home::new().await;
    let (mut client, mut other) = (home.client().await, home.client().await);
    client.session("main").await;
    let heard = json!({ "id": "s", "type": "switch_session", "sessionId": "main" });
    assert_eq!(other.ask(heard).await["success"], true);
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    client.send(of_main("d1", "delete_session")).await;
    let mut answered: Vec<Value> = Vec::new();
    while answered.len() < 2 {
        answered.extend(client.until(|frame| frame["type"] == "response").await.pop());
    }
    assert!(answered.iter().all(|answer| answer["success"] == true), "{answered:?}");
    let went = other.until(|frame| frame["type"] == "session_deleted").await.pop().unwrap();
    assert_eq!(went["data"]["sessionId"], "main");

    // It is found by its name everywhere else, goes on there, and is deleted for good there.
    let cli = home.daemon.engine.attach(Access::local(), "cli");
    let session = cli.resolve("main").await.unwrap();
    assert!(cli.status(session).await.unwrap().session.unloaded_at.is_some());
    let id = |name: &str| CommandId::new(name).unwrap();
    let steer = QueuedPrompt { prompt: Prompt::text("more"), hears: Delivery::Steer };
    cli.submit(session, Command::new(id("cli-1"), cli.source(), SessionCommand::Start)).await.unwrap();
    cli.submit(session, Command::new(id("cli-2"), cli.source(), SessionCommand::Steer(steer))).await.unwrap();
    loop {
        if matches!(script.next().await, Given::Steered(_)) {
            break;
        }
    }
    cli.submit(session, Command::new(id("cli-3"), cli.source(), SessionCommand::Delete)).await.unwrap();
    client.ask(json!({ "id": "h", "type": "health_check" })).await;
    let (all, _) = stored(&mut client, "l").await;
    assert_eq!(all, [0; 0]);
}

#[tokio::test]
async fn what_is_somebody_elses_is_neither_unloaded_nor_loaded() {
    let (home, _script) = Home::new().await;
    let (mut client, mut ada) = (home.client().await, home.ada().await);
    client.session("main").await;
    client.ask(of_main("d1", "delete_session")).await;
    let path = stored(&mut client, "l").await.0[0]["sessionPath"].clone();
    let refused = ada.ask(load("l1", &path, "mine")).await;
    assert_eq!(refused["success"], false, "{refused}");
    assert_eq!(stored(&mut ada, "k").await, (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_session_is_loaded_once_what_it_depends_on_is_done() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.ask(of_main("d1", "delete_session")).await;
    let path = stored(&mut client, "l").await.0[0]["sessionPath"].clone();
    client.session("other").await;
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "other", "message": "go" })).await;
    script.work().await;
    let mut waits = load("l1", &path, "main");
    waits["dependsOn"] = json!(["p1"]);
    client.send(waits).await;
    client
        .send(json!({ "id": "n1", "type": "set_session_name", "sessionId": "main", "name": "back", "dependsOn": ["l1"] }))
        .await;
    assert_eq!(client.ask(of_main("g", "get_state")).await["success"], false);
    script.done().await;
    let mut answered = Vec::new();
    while answered.len() < 3 {
        let answer = client.until(|frame| frame["type"] == "response").await.pop().unwrap();
        assert_eq!(answer["success"], true, "{answer}");
        answered.push(answer["id"].as_str().unwrap().to_owned());
    }
    answered.sort();
    assert_eq!(answered, ["l1", "n1", "p1"]);
}

#[tokio::test]
async fn what_is_sent_again_under_its_key_is_answered_as_the_first_time_and_done_once() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let keyed = |mut command: Value| {
        command["idempotencyKey"] = format!("{}-once", command["type"].as_str().unwrap()).into();
        command
    };
    assert_eq!(client.ask(keyed(of_main("d1", "delete_session"))).await["success"], true);
    client.ask(of_main("c2", "create_session")).await;
    let again = client.ask(keyed(of_main("d2", "delete_session"))).await;
    assert_eq!((&again["id"], &again["replayed"]), (&json!("d2"), &json!(true)), "{again}");
    let (all, loaded) = stored(&mut client, "l").await;
    assert_eq!(loaded, ["main"], "it is another one");
    let path = &all.iter().find(|session| session["sessionId"] != "main").unwrap()["sessionPath"];
    let first = client.ask(keyed(load("l1", path, "old"))).await;
    let again = client.ask(keyed(load("l2", path, "old"))).await;
    assert_eq!((&again["replayed"], &again["data"]), (&json!(true), &first["data"]), "{again}");

    // The next daemon has it from the store.
    let home = home.lost().await;
    let mut client = home.client().await;
    let (all, _) = stored(&mut client, "k").await;
    let path = &all.iter().find(|session| session["sessionId"] == "old").unwrap()["sessionPath"];
    for again in [keyed(of_main("d3", "delete_session")), keyed(load("l3", path, "old"))] {
        let answer = client.ask(again).await;
        assert_eq!((&answer["success"], &answer["replayed"]), (&json!(true), &json!(true)), "{answer}");
    }
    let (_, mut loaded) = stored(&mut client, "m").await;
    loaded.sort_by_key(Value::to_string);
    assert_eq!(loaded, ["main", "old"]);
}

//! Commands that need no turn: sessions come and go, and what was said is read.

use mainstay_model::agent::Model;
use mainstay_model::{AgentNotice, AgentState, Part, PartRole, ThinkingLevel};
use serde_json::{Value, json};

use crate::scripted_agent::Script;
use crate::support::{Client, Home, shown};

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

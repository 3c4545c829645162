//! Each command id has one answer, whatever hindered the command; and each answer is told as upstream tells it.

use serde_json::{Value, json};

use crate::support::{Client, Home};

/// The kinds of frames up to the answer to a command, with it.
async fn told(client: &mut Client, command: Value) -> (Vec<String>, Value) {
    let id = command["id"].as_str().unwrap().to_owned();
    client.send(command).await;
    let mut frames = client.until_answer(&id).await;
    let kinds =
        frames.iter().filter(|frame| frame["data"]["commandId"] == id.as_str() || frame["id"] == id.as_str());
    let kinds = kinds.map(|frame| {
        let replayed = if frame["data"]["replayed"] == true { " again" } else { "" };
        format!("{}{replayed}", frame["type"].as_str().unwrap())
    });
    (kinds.collect(), frames.pop().unwrap())
}

const FIRST: [&str; 4] = ["command_accepted", "command_started", "command_finished", "response"];
const AGAIN: [&str; 2] = ["command_finished again", "response"];

/// What must be answered again as the first time, whatever has changed since.
#[tokio::test]
async fn a_refusal_is_an_outcome() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let commands = [
        ("Session late not found", json!({ "type": "prompt", "sessionId": "late", "message": "go" })),
        ("Session late not found", json!({ "type": "set_session_name", "sessionId": "late", "name": "x" })),
        ("Session late not found", json!({ "type": "get_state", "sessionId": "late" })),
        ("Session late not found", json!({ "type": "delete_session", "sessionId": "late" })),
        ("Session late not found", json!({ "type": "fork", "sessionId": "late", "entryId": "1" })),
        (
            "Session late not found for ifSessionVersion=0",
            json!({ "type": "abort", "sessionId": "late", "ifSessionVersion": 0 }),
        ),
        ("Session main already exists", json!({ "type": "create_session", "sessionId": "main" })),
        (
            "Dependency 'later' is unknown",
            json!({ "type": "create_session", "sessionId": "x", "dependsOn": ["later"] }),
        ),
        (
            "Dependency 'later' is unknown",
            json!({ "type": "get_state", "sessionId": "main", "dependsOn": ["later"] }),
        ),
        (
            "Command 'n9' cannot depend on itself",
            json!({ "type": "abort", "sessionId": "main", "dependsOn": ["n9"] }),
        ),
        (
            "No pending UI request with id 1",
            json!({ "type": "extension_ui_response", "sessionId": "main", "requestId": "1", "response": { "method": "cancelled" } }),
        ),
    ];
    let named = commands.into_iter().enumerate().map(|(number, (error, mut command))| {
        command["id"] = if error.contains("itself") { "n9".into() } else { format!("r{number}").into() };
        (error, command)
    });
    let commands: Vec<(&str, Value)> = named.collect();
    for (error, command) in &commands {
        let (frames, answer) = told(&mut client, command.clone()).await;
        assert_eq!(
            (&answer["error"], frames),
            (&json!(error), FIRST.map(str::to_owned).to_vec()),
            "{command}"
        );
    }
    client.ask(json!({ "id": "later", "type": "create_session", "sessionId": "late" })).await;
    for (error, command) in &commands {
        let (frames, answer) = told(&mut client, command.clone()).await;
        assert_eq!((&answer["error"], &answer["replayed"]), (&json!(error), &json!(true)), "{command}");
        assert_eq!(frames, AGAIN, "{command}");
    }
    // What would have changed something is kept for the next daemon too.
    let home = home.restart().await;
    let mut client = home.client().await;
    for (error, command) in commands.iter().filter(|(_, command)| command["type"] != "get_state") {
        let (frames, answer) = told(&mut client, command.clone()).await;
        assert_eq!((&answer["error"], &answer["replayed"]), (&json!(error), &json!(true)), "{command}");
        assert_eq!(frames, AGAIN, "{command}");
    }
    let taken = client.ask(json!({ "id": "r0", "type": "list_sessions" })).await;
    assert_eq!(
        taken["error"],
        "Conflicting id 'r0': previously used for 'another command', now used for 'list_sessions'"
    );
}

#[tokio::test]
async fn a_replay_and_a_conflict_are_finished_without_being_accepted() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    for command in [
        json!({ "id": "l", "type": "list_sessions" }),
        json!({ "id": "n", "type": "set_session_name", "sessionId": "main", "name": "a" }),
        json!({ "id": "c", "type": "create_session", "sessionId": "more" }),
    ] {
        assert_eq!(told(&mut client, command.clone()).await.0, FIRST, "{command}");
        let (frames, answer) = told(&mut client, command.clone()).await;
        assert_eq!(
            (frames, &answer["replayed"]),
            (AGAIN.map(str::to_owned).to_vec(), &json!(true)),
            "{command}"
        );
    }
    let (frames, answer) = told(&mut client, json!({ "id": "l", "type": "health_check" })).await;
    assert_eq!(
        answer["error"],
        "Conflicting id 'l': previously used for 'list_sessions', now used for 'health_check'"
    );
    assert_eq!(frames, ["command_finished", "response"]);
}

#[tokio::test]
async fn a_large_answer_is_the_same_when_it_is_asked_for_again() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client
        .send(json!({ "id": "p", "type": "prompt", "sessionId": "main", "message": "x".repeat(10_000) }))
        .await;
    script.work().await;
    script.say(mainstay_model::PartRole::User, &"x".repeat(10_000)).await;
    script.done().await;
    client.until_answer("p").await;
    let read = json!({ "id": "m", "type": "get_messages", "sessionId": "main" });
    let first = client.ask(read.clone()).await;
    client.send(json!({ "id": "q", "type": "prompt", "sessionId": "main", "message": "more" })).await;
    script.work().await;
    script.say(mainstay_model::PartRole::User, "more").await;
    script.done().await;
    client.until_answer("q").await;
    let again = client.ask(read).await;
    assert_eq!((&again["data"], &again["replayed"]), (&first["data"], &json!(true)));
}

#[tokio::test]
async fn reads_and_refusals_can_be_depended_on() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(json!({ "id": "read", "type": "list_sessions" })).await;
    let rename = |id: &str, on: &str| json!({ "id": id, "type": "set_session_name", "sessionId": "main", "name": id, "dependsOn": [on] });
    assert_eq!(client.ask(rename("n1", "read")).await["success"], true);
    assert_eq!(
        client
            .ask(json!({ "id": "g", "type": "get_state", "sessionId": "main", "dependsOn": ["read"] }))
            .await["success"],
        true
    );
    assert_eq!(
        client
            .ask(json!({ "id": "c", "type": "create_session", "sessionId": "b", "dependsOn": ["g"] }))
            .await["success"],
        true
    );

    client.ask(json!({ "id": "bad", "type": "get_state", "sessionId": "nowhere" })).await;
    client.ask(json!({ "id": "worse", "type": "abort", "sessionId": "nowhere" })).await;
    for (id, on) in [("n2", "bad"), ("n3", "worse")] {
        let answer = client.ask(rename(id, on)).await;
        assert_eq!(answer["error"], format!("Dependency '{on}' failed: Session nowhere not found"));
    }
    let unknown = client.ask(rename("n4", "nobody")).await;
    assert_eq!(unknown["error"], "Dependency 'nobody' is unknown");
}

#[tokio::test]
async fn what_waits_for_its_session_can_be_depended_on() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    client.send(json!({ "id": "p", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    client
        .send(json!({ "id": "c", "type": "create_session", "sessionId": "next", "dependsOn": ["p"] }))
        .await;
    client.send(json!({ "id": "n1", "type": "set_session_name", "sessionId": "next", "name": "one", "dependsOn": ["c"] })).await;
    client.send(json!({ "id": "n2", "type": "set_session_name", "sessionId": "next", "name": "two", "dependsOn": ["n1"] })).await;
    client.send(json!({ "id": "n3", "type": "set_session_name", "sessionId": "main", "name": "three", "dependsOn": ["n2"] })).await;
    assert_eq!(client.ask(json!({ "id": "l", "type": "list_sessions" })).await["success"], true);
    script.done().await;
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < 5 {
        let answer = client.until(|frame| frame["type"] == "response").await.pop().unwrap();
        answers.insert(answer["id"].as_str().unwrap().to_owned(), answer);
    }
    for (id, answer) in answers {
        assert_eq!(answer["success"], true, "{id}: {answer}");
    }
}

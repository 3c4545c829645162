//! Every command that an agent carries out: what the agent is given, and every frame its client gets.

use mainstay_model::agent::{JobSpec, WorkEnding, YieldReason};
use serde_json::{Value, json};

use crate::support::{Client, Home, shown};
use mainstay_test_support::scripted_agent::Script;

/// Sends a command, has the agent answer it so, and gives what it was given with all frames up to the answer.
async fn carried_out(client: &mut Client, script: &mut Script, command: Value, value: Value) -> String {
    let id = command["id"].as_str().unwrap().to_owned();
    client.send(command).await;
    let work: JobSpec = script.work().await;
    script.end(WorkEnding::Done { reason: YieldReason::EndTurn, value }).await;
    let frames = client.until_answer(&id).await;
    format!("{}\n{}\n", serde_json::to_string(&work).unwrap(), shown(&frames))
}

#[tokio::test]
async fn each_command_is_carried_out_and_told_in_its_own_words() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    let created = client.ask(json!({ "id": "c", "type": "create_session", "sessionId": "main" })).await;
    assert_eq!(created["success"], true);
    let model = json!({ "id": "m", "provider": "local" });
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGk=" });
    let commands = [
        (json!({ "type": "prompt", "message": "hello", "images": [image] }), json!(null)),
        (json!({ "type": "set_model", "provider": "local", "modelId": "m" }), model.clone()),
        (
            json!({ "type": "cycle_model", "direction": "backward" }),
            json!({ "model": model, "thinkingLevel": "off", "isScoped": false }),
        ),
        (json!({ "type": "cycle_model" }), json!(null)),
        (json!({ "type": "set_thinking_level", "level": "minimal" }), json!(null)),
        (json!({ "type": "cycle_thinking_level" }), json!({ "level": "low" })),
        (json!({ "type": "set_auto_compaction", "enabled": true }), json!(null)),
        (json!({ "type": "set_auto_retry", "enabled": false }), json!(null)),
        (
            json!({ "type": "compact", "customInstructions": "Keep names." }),
            json!({ "summary": "So far.", "firstKeptEntryId": "1", "tokensBefore": 9 }),
        ),
        (
            json!({ "type": "bash", "command": "ls" }),
            json!({ "exitCode": 1, "output": "no", "cancelled": false, "truncated": false }),
        ),
    ];
    let mut told = String::new();
    for (number, (mut command, value)) in commands.into_iter().enumerate() {
        command["id"] = format!("w{number}").into();
        command["sessionId"] = "main".into();
        told.push_str(&carried_out(&mut client, &mut script, command, value).await);
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn each_command_that_waits_for_none_is_told_in_its_own_words() {
    let (home, mut script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let running = json!({ "id": "p", "type": "prompt", "sessionId": "main", "message": "go" });
    client.send(running).await;
    script.work().await;
    client.until(|frame| frame["event"]["type"] == "turn_start").await;
    let commands = [
        json!({ "type": "steer", "message": "left" }),
        json!({ "type": "follow_up", "message": "then right", "idempotencyKey": "k" }),
        json!({ "type": "follow_up", "message": "then right", "idempotencyKey": "k" }),
        json!({ "type": "set_session_name", "name": "way", "ifSessionVersion": 2 }),
        json!({ "type": "abort_compaction" }),
        json!({ "type": "abort_bash" }),
        json!({ "type": "get_context_usage" }),
        json!({ "type": "switch_session" }),
        json!({ "type": "abort_retry", "dependsOn": ["w0"] }),
    ];
    let mut frames = Vec::new();
    for (number, mut command) in commands.into_iter().enumerate() {
        let id = format!("w{number}");
        command["id"] = id.as_str().into();
        command["sessionId"] = "main".into();
        client.send(command).await;
        frames.extend(client.until_answer(&id).await);
    }
    frames.retain(|frame| frame["type"] != "event" && frame["data"]["commandId"] != "p");
    insta::assert_snapshot!(shown(&frames));
}

//! What is refused, in upstream's words.

use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::support::{Home, quick, shown};

#[tokio::test]
async fn what_is_not_well_formed_is_answered_and_the_connection_goes_on() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    let mut answers = Vec::new();
    for line in [
        "{",
        "null",
        "\"list_sessions\"",
        "[]",
        "{\"type\":\"dance\",\"id\":\"x\"}",
        "{\"id\":\"anon:1\",\"type\":\"get_metrics\"}",
    ] {
        client.line(line).await;
        answers.push(client.frame().await);
    }
    insta::assert_snapshot!(shown(&answers));
    assert_eq!(
        client.ask(json!({ "id": "1", "type": "list_sessions" })).await["data"],
        json!({ "sessions": [] })
    );
}

#[tokio::test]
async fn what_cannot_be_done_says_why_in_upstreams_words() {
    let (home, _script) = Home::new().await;
    let mut client = home.client().await;
    client.session("main").await;
    let commands = [
        json!({ "id": "1", "type": "get_state", "sessionId": "gone" }),
        json!({ "id": "2", "type": "create_session", "sessionId": "main" }),
        json!({ "id": "3", "type": "set_session_name", "sessionId": "main", "name": "x", "ifSessionVersion": 7 }),
        json!({ "id": "4", "type": "get_state", "sessionId": "main", "ifSessionVersion": 7 }),
        json!({ "id": "5", "type": "set_session_name", "sessionId": "main", "name": "x", "dependsOn": ["nobody"] }),
        json!({ "id": "6", "type": "set_session_name", "sessionId": "main", "name": "x", "dependsOn": ["6"] }),
        json!({ "id": "1", "type": "abort", "sessionId": "main" }),
        json!({ "id": "11", "type": "abort", "sessionId": "main" }),
        json!({ "id": "create-main", "type": "abort", "sessionId": "main" }),
        json!({ "id": "7", "type": "navigate_tree", "sessionId": "main", "targetId": "1" }),
        json!({ "id": "8", "type": "get_tools", "sessionId": "main" }),
        json!({ "id": "9", "type": "load_session", "sessionPath": "/nowhere/to/be/found.jsonl" }),
        json!({ "id": "10", "type": "fork", "sessionId": "main", "entryId": "3" }),
    ];
    let mut answers: Vec<Value> = Vec::new();
    for command in commands {
        answers.push(client.ask(command).await);
    }
    insta::assert_snapshot!(shown(&answers));
}

#[tokio::test]
async fn limits_hold_and_say_so() {
    let limits =
        Limits { message_bytes: 300, connection_requests: 1, session_commands_per_minute: 2, ..quick() };
    let (home, mut script) = Home::with(limits).await;
    let mut client = home.client().await;
    client.session("main").await;
    client.line(&format!("{{\"type\":\"prompt\",\"message\":\"{}\"}}", "x".repeat(400))).await;
    let large = client.frame().await;
    assert!(large["error"].as_str().unwrap().starts_with("Message size "), "{large}");
    client.send(json!({ "id": "p1", "type": "prompt", "sessionId": "main", "message": "go" })).await;
    script.work().await;
    let full =
        client.ask(json!({ "id": "n1", "type": "set_session_name", "sessionId": "main", "name": "x" })).await;
    assert_eq!(full["error"], "Too many pending commands for this connection (max 1)");
    script.done().await;
    client.until_answer("p1").await;
    assert_eq!(
        client.ask(json!({ "id": "n2", "type": "set_session_name", "sessionId": "main", "name": "x" })).await
            ["success"],
        true
    );
    let limited =
        client.ask(json!({ "id": "n3", "type": "set_session_name", "sessionId": "main", "name": "y" })).await;
    assert_eq!(limited["error"], "Rate limit exceeded (2 commands/minute)");
    // What was answered before costs nothing.
    let again =
        client.ask(json!({ "id": "n2", "type": "set_session_name", "sessionId": "main", "name": "x" })).await;
    assert_eq!(again["replayed"], true);
}

#[tokio::test]
async fn reads_count_for_the_rates_and_what_is_refused_is_counted() {
    let limits =
        Limits { message_bytes: 1000, session_commands_per_minute: 3, commands_per_minute: 40, ..quick() };
    let (home, _script) = Home::with(limits).await;
    let mut client = home.client().await;
    client.session("main").await;
    let state = |id: &str| json!({ "id": id, "type": "get_state", "sessionId": "main" });
    // To hear of the session was a read, too.
    for id in ["s1", "s2"] {
        assert_eq!(client.ask(state(id)).await["success"], true);
    }
    assert_eq!(client.ask(state("s3")).await["error"], "Rate limit exceeded (3 commands/minute)");
    assert_eq!(client.ask(state("s1")).await["replayed"], true, "a replay is free");
    client.line(&"x".repeat(2000)).await;
    client.frame().await;
    let metrics = client.ask(json!({ "id": "m", "type": "get_metrics", "idempotencyKey": "k" })).await;
    let rejected = &metrics["data"]["commandsRejected"];
    assert_eq!([&rejected["rateLimit"], &rejected["messageSize"], &rejected["sessionLimit"]], [1, 1, 0]);
    assert_eq!(metrics["data"]["rateLimitUsage"]["globalCount"], 4, "{metrics}");
    assert_eq!(metrics["data"]["stores"]["replay"]["outcomeCount"], 3, "{metrics}");
    let mut number = 0;
    let refused = loop {
        number += 1;
        let answer = client.ask(json!({ "id": format!("l{number}"), "type": "list_sessions" })).await;
        if answer["success"] == false {
            break answer;
        }
        assert!(number < 40, "reads of all sessions are never refused");
    };
    assert_eq!(refused["error"], "Global rate limit exceeded (40 commands/minute)");
    assert_eq!(
        client.ask(json!({ "id": "d", "type": "delete_session", "sessionId": "main" })).await["success"],
        true
    );
}

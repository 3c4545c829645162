//! What an agent is told, word for word.

use std::fmt::Write;

use serde_json::json;

use crate::support::Home;

#[tokio::test]
async fn the_tools_are_described_in_few_words() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let tools = agent.service.list_all_tools().await.unwrap();
    let bytes = serde_json::to_string(&tools).unwrap().len();
    insta::with_settings!({ sort_maps => true }, {
        insta::assert_json_snapshot!("tools", tools);
    });
    assert!(bytes < 18_500, "the list of tools has {bytes} bytes");
    let tools = home.agent_named("codex-mcp-client").await.service.list_all_tools().await.unwrap();
    let bytes = serde_json::to_string(&tools).unwrap().len();
    assert!(bytes < 17_500, "the list of tools for a model has {bytes} bytes");
}

#[tokio::test]
async fn the_server_says_once_how_it_works() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let info = agent.service.peer_info().unwrap();
    insta::assert_snapshot!("instructions", info.instructions.clone().unwrap());
}

#[tokio::test]
async fn a_call_repeated_with_its_key_runs_once() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let call = json!({ "code": "tick", "idempotencyKey": "once" });
    let first = agent.call("send_code", call.clone()).await.structured;
    assert_eq!(agent.call("send_code", call).await.structured["bindings"], first["bindings"]);
    let another = agent.call("send_code", json!({ "code": "1 + 1", "idempotencyKey": "once" })).await;
    assert_eq!(another.structured["code"], json!("key_conflict"));
}

#[tokio::test]
async fn a_conversation_holds_what_matters_and_no_echo() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let calls = [
        ("get_status", json!({})),
        ("send_code", json!({ "code": "1 + 1" })),
        ("send_code", json!({ "code": "let x = 3" })),
        ("send_code", json!({ "code": "printfn \"hello\"" })),
        ("send_code", json!({ "code": "eprintfn \"careful\"" })),
        ("send_code", json!({ "code": "unused" })),
        ("send_code", json!({ "code": "oops" })),
        ("send_code", json!({ "code": "failwith \"boom\"" })),
        ("check_code", json!({ "code": "oops" })),
        ("check_code", json!({ "code": "1 + 1" })),
        ("scaffold_test", json!({ "name": "twice", "signature": "int -> int", "framework": "expecto" })),
        ("scaffold_test", json!({ "name": "twice", "signature": "int ->" })),
        ("review_code", json!({ "code": "if a then true else false" })),
        ("get_completions", json!({ "code": "List.m", "line": 1, "column": 7 })),
        ("explore_type", json!({ "name": "Dog" })),
        ("explore_namespace", json!({ "name": "Pets", "filter": "none" })),
        ("find_symbols", json!({ "text": "Dog", "limit": 1 })),
        ("get_values", json!({})),
        ("list_tests", json!({})),
        ("list_tests", json!({ "pattern": "none" })),
        ("run_tests", json!({ "pattern": "a", "timeoutMs": 2 })),
        ("run_tests", json!({ "timeoutMs": 0 })),
        ("get_recent_events", json!({ "since": 0, "count": 9 })),
        ("get_recent_events", json!({ "since": 9, "count": 200 })),
        ("get_recent_events", json!({ "count": 2 })),
        ("cancel_eval", json!({})),
        ("get_status", json!({})),
        ("reset_session", json!({})),
        ("hard_reset_session", json!({})),
        ("stop_session", json!({})),
        ("get_status", json!({})),
        ("list_sessions", json!({})),
        ("create_session", json!({ "name": "second" })),
    ];
    let mut transcript = String::new();
    for (tool, arguments) in calls {
        let reply = agent.call(tool, arguments.clone()).await;
        let error = if reply.is_error { " (error)" } else { "" };
        let id = reply.structured["sessionId"].as_str().unwrap_or("no session").to_owned();
        let listed = reply.structured["sessions"][0]["sessionId"].as_str().unwrap_or(&id).to_owned();
        let told = format!("{}\n{}", reply.structured, reply.text);
        let told = told.replace(&id, "SESSION").replace(&listed, "SESSION");
        let told = told.replace(&home.path().display().to_string(), "FOLDER");
        writeln!(transcript, "→ {tool} {arguments}{error}\n{told}\n").unwrap();
    }
    insta::assert_snapshot!("conversation", transcript);
}

#[tokio::test]
async fn a_verbose_status_says_where_the_code_runs_and_on_what() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let reply = agent.call("get_status", json!({ "verbose": true })).await;
    let details = &reply.structured["details"];
    assert_eq!(details["workingDirectory"], json!(home.folder("work")));
    assert_eq!(details["worker"]["kernel"], json!("F# 4.7"));
    assert_eq!(details["worker"]["residentBytes"], json!(1 << 20));
}

#[tokio::test]
async fn long_output_keeps_its_ends() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let reply = agent.send("flood 100000").await;
    let output = reply.structured["output"].as_str().unwrap();
    assert_eq!(reply.structured["outputCut"], json!(true));
    assert!(output.len() < 20_000 && output.contains("bytes left out") && output.ends_with(" end"));
}

#[tokio::test]
async fn what_is_printed_is_told_as_a_terminal_shows_it() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let reply = agent.send("printfn \"\r 50%|█ |\r100%|██|\n\u{1b}[1;32mgreen\u{1b}[0m\"").await;
    assert_eq!(reply.structured["output"], json!("100%|██|\ngreen\n"));
    let reply = agent.send("eprintfn \"a\r\u{1b}[Kb\"").await;
    assert_eq!(reply.structured["errorOutput"], json!("b\n"));
}

#[tokio::test]
async fn what_code_shows_is_told_as_text_and_pictures_are_shown() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let reply = agent.send("show \"a table\"").await;
    assert_eq!(reply.structured["output"], json!("a table\n[image/png, 4 bytes]\n"));
    assert!(reply.text.starts_with("a table\n[image/png, 4 bytes]\nok "), "{}", reply.text);
    assert_eq!(reply.pictures, [("image/png".to_owned(), "iVBORw==".to_owned())]);
    assert_eq!(agent.send("1 + 1").await.pictures, []);
}

#[tokio::test]
async fn completions_are_counted_where_there_are_too_many() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let reply = agent.call("get_completions", json!({ "code": "many", "line": 1, "column": 5 })).await;
    assert_eq!(reply.structured["items"].as_array().unwrap().len(), 100);
    assert_eq!(reply.structured["leftOut"], json!(50));
}

#[tokio::test]
async fn events_come_once_when_the_cursor_is_passed_on() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let mut since = agent.send("1 + 1").await.structured["seq"].clone();
    for _ in 0..3 {
        agent.send("let x = 3").await;
        let reply = agent.call("get_recent_events", json!({ "since": since })).await;
        let kinds: Vec<_> =
            reply.structured["events"].as_array().unwrap().iter().map(|e| e["kind"].clone()).collect();
        assert_eq!(kinds, ["evalRequested", "evalCompleted"]);
        since = reply.structured["cursor"].clone();
    }
    let reply = agent.call("get_recent_events", json!({ "since": since })).await;
    assert_eq!((&reply.structured["events"], &reply.structured["cursor"]), (&json!([]), &since));
}

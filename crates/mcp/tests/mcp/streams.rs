//! The stream itself: progress, its end, and the newest protocol.

use std::time::Duration;

use mainstay_model::Limits;
use rmcp::model::ProtocolVersion;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::support::{Agent, Home, Listener};

#[tokio::test]
async fn output_is_told_while_the_code_runs() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    agent.hears_progress().await;
    assert_eq!(agent.progress(), [(1.0, "waiting\n".to_owned())]);
    agent.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
}

#[tokio::test]
async fn all_that_was_shown_is_told_before_the_answer() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("show \"it\"").await;
    let mut heard = agent.service.service().heard.subscribe();
    let all = heard.wait_for(|heard| heard.len() == 2);
    let told: Vec<f64> =
        timeout(Duration::from_secs(10), all).await.unwrap().unwrap().iter().map(|(nth, _)| *nth).collect();
    assert_eq!(told, [1.0, 2.0]);
}

#[tokio::test]
async fn results_of_tests_are_told_once_and_while_the_run_goes_on() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let run = agent.call("run_tests", json!({ "pattern": "one by one" })).await;
    assert_eq!((&run.structured["passed"], run.structured.get("error")), (&json!(1), None));
    let mut heard = agent.service.service().heard.subscribe();
    let all = heard.wait_for(|heard| heard.len() == 3);
    let told: Vec<String> = timeout(Duration::from_secs(10), all)
        .await
        .unwrap()
        .unwrap()
        .iter()
        .map(|(_, said)| said.clone())
        .collect();
    assert_eq!(
        told,
        ["failed   adds (1 ms)", "running: 2 passed, 1 failed", "3 passed, 1 failed in 2 ms"],
        "and not the report, which is the answer"
    );
    let cut_off = agent.call("run_tests", json!({ "pattern": "cut off" })).await;
    assert!(cut_off.is_error && cut_off.text.contains("passed 2, failed 1"), "{cut_off:?}");
    assert_eq!((&cut_off.structured["success"], &cut_off.structured["passed"]), (&json!(false), &json!(2)));
}

#[tokio::test]
async fn a_session_that_takes_its_time_to_start_is_told_of() {
    let home = Home::new().await;
    let agent = home.agent_in("slow").await;
    assert_eq!(agent.send("1 + 1").await.structured["value"], json!("2"));
    assert_eq!(agent.progress(), [(1.0, "the session is getting ready".to_owned())]);
}

/// As in `printf … | mainstay mcp`.
#[tokio::test]
async fn all_that_was_asked_is_answered_after_the_input_has_ended() {
    let home = Home::new().await;
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "send_code", "arguments": {"code": "1 + 1"}}});
    for end in ["\n", ""] {
        let answers = printed_to(&home, format!("{OPENING}{call}{end}").as_bytes()).await;
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(answers[1]["result"]["structuredContent"]["value"], json!("2"));
    }
}

#[tokio::test]
async fn what_is_no_message_is_answered_in_its_place_and_the_rest_is_served() {
    let home = Home::with(Limits { message_bytes: 1000, ..Limits::default() }).await;
    let long = "x".repeat(2000);
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let mut input = format!("{OPENING}{{nonsense\n{long}\n\n").into_bytes();
    input.extend(b"\xff\xfe\n");
    let odd = json!({"jsonrpc": "2.0", "id": 7});
    let unknown = json!({"jsonrpc": "2.0", "method": "window/unheard"});
    input.extend(format!("[1]\n{odd}\n{unknown}\n{}\n", ping(8)).bytes());
    let answers = printed_to(&home, &input).await;
    let gist: Vec<_> = answers[1..]
        .iter()
        .map(|answer| {
            assert_eq!(answer["jsonrpc"], "2.0");
            json!([answer.get("id"), answer["error"]["code"], answer["error"]["message"]]).to_string()
        })
        .collect();
    insta::assert_debug_snapshot!(gist, @r#"
    [
        "[null,-32700,\"the line is no JSON: key must be a string at line 1 column 2\"]",
        "[null,-32600,\"the message is longer than `message-bytes` allows\"]",
        "[null,-32700,\"the line is no text: Unable to decode input as UTF8\"]",
        "[null,-32600,\"the line is no message of MCP: unrecognized JSON-RPC message\"]",
        "[7,-32600,\"the line is no message of MCP: unrecognized JSON-RPC message\"]",
        "[8,null,null]",
    ]
    "#);
}

/// The beginning of every conversation.
const OPENING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"printf","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// All that comes back for an input that ends.
async fn printed_to(home: &Home, input: &[u8]) -> Vec<Value> {
    let (stream, served) = home.stream(Some(home.folder("slow")));
    let (read, mut write) = tokio::io::split(stream);
    write.write_all(input).await.unwrap();
    write.shutdown().await.unwrap();
    let mut lines = BufReader::new(read).lines();
    let mut answers = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        answers.push(serde_json::from_str(&line).unwrap());
    }
    timeout(Duration::from_secs(10), served).await.unwrap().unwrap();
    answers
}

#[tokio::test]
async fn the_daemon_stops_though_a_client_is_there() {
    let home = Home::new().await;
    let (stream, served) = home.stream(None);
    let agent = Agent::over(stream).await;
    agent.call("list_sessions", json!({})).await;
    home.daemon.stop.cancel();
    home.daemon.shut_down().await;
    timeout(Duration::from_secs(10), served).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_runs_when_the_daemon_stops_is_answered() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    home.daemon.stop.cancel();
    home.daemon.shut_down().await;
    let answer = serde_json::to_value(running.await_response().await.unwrap()).unwrap();
    assert_eq!(answer["structuredContent"]["output"], json!("waiting\n"), "{answer}");
}

#[tokio::test]
async fn the_newest_protocol_needs_no_initialize() {
    let home = Home::new().await;
    let (stream, _) = home.stream(Some(home.folder("work")));
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let agent = Agent { service: Listener::default().serve_with_lifecycle(stream, lifecycle).await.unwrap() };
    assert_eq!(agent.send("1 + 1").await.structured["value"], json!("2"));
    let events = agent.call("get_recent_events", json!({ "count": 2 })).await;
    assert_eq!(events.structured["events"][0]["by"], json!("mcp:tester"));
}

//! Every call is answered in time, what it began goes on, and what came of it is found.

use std::path::Path;
use std::sync::Arc;

use mainstay_gateway::mcp::{Settings, Shared};
use mainstay_model::{EventBody, Seq, SessionState};
use serde_json::{Value, json};

use crate::scripted::release;
use crate::support::{Agent, Home, Reply};

/// Runs code that does not end, and gives the call's id.
async fn left_running(agent: &Agent) -> Value {
    let still = agent.call("send_code", json!({ "code": "wait", "wait": 0 })).await;
    assert_eq!((still.is_error, &still.structured["running"]), (false, &json!(true)), "{still:?}");
    let id = still.structured["id"].clone();
    assert!(
        still.text.contains("still running") && still.text.contains(id.as_str().unwrap()),
        "{}",
        still.text
    );
    id
}

async fn result(agent: &Agent, id: &Value, wait: u32) -> Reply {
    agent.call("get_result", json!({ "id": id, "wait": wait })).await
}

#[tokio::test]
async fn a_call_is_answered_after_its_wait_and_its_code_goes_on() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    let still = result(&agent, &id, 0).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["running"]["id"], id, "{status:?}");
    agent.call("cancel_eval", json!({})).await;
    let ended = result(&agent, &id, 10).await;
    assert_eq!((ended.is_error, &ended.structured["output"]), (true, &json!("waiting\n")), "{ended:?}");
}

#[tokio::test]
async fn what_is_printed_so_far_is_told_with_that_it_still_runs() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    let mut events = home.local().subscribe(home.session().await, Seq(0)).await.unwrap();
    while !matches!(events.next().await.unwrap().body, EventBody::OutputProduced { .. }) {}
    let still = result(&agent, &id, 0).await;
    assert_eq!(still.structured["output"], json!("waiting\n"), "{still:?}");
    assert!(still.text.starts_with("waiting\nstill running after "), "{}", still.text);
    agent.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn the_next_answer_says_once_that_a_call_which_was_left_has_ended() {
    let home = Home::new().await;
    let (agent, other) = (home.agent().await, home.agent().await);
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    other.call("cancel_eval", json!({})).await;
    home.reaches("Ready").await;
    assert!(!other.send("1 + 1").await.text.contains("note:"), "it is news for who left it");
    let told = agent.send("1 + 1").await.text;
    let note = format!(
        "note: send_code of before has ended meanwhile, failed: get_result {} tells it\n",
        id.as_str().unwrap()
    );
    assert!(told.starts_with(&note), "{told}");
    assert!(!agent.send("1 + 1").await.text.contains("note:"));
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["ended"][0]["id"], id, "{status:?}");
    result(&agent, &id, 0).await;
    assert_eq!(agent.call("get_status", json!({})).await.structured.get("ended"), None);
}

#[tokio::test]
async fn what_came_of_a_call_is_found_in_the_log_once_nothing_else_knows_it() {
    let mut home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let id = left_running(&agent).await;
    home.reaches("Evaluating").await;
    home.daemon.mcp = Arc::new(Shared::new(Settings::default()));
    let after = home.agent().await;
    let still = result(&after, &id, 0).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    after.call("cancel_eval", json!({})).await;
    let ended = result(&after, &id, 10).await;
    assert_eq!((ended.is_error, &ended.structured["output"]), (true, &json!("waiting\n")), "{ended:?}");
    let unknown = result(&after, &json!("nobody"), 0).await;
    assert_eq!(unknown.structured["code"], json!("command_not_found"));
}

#[tokio::test]
async fn a_session_that_takes_long_to_get_ready_is_waited_for_too() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let held = home.folder("held");
    let create = json!({ "workingDirectory": held, "wait": 0 });
    let still = agent.call("create_session", create).await;
    assert_eq!(still.structured["running"], json!(true), "{still:?}");
    release(Path::new(&held));
    let ready = result(&agent, &still.structured["id"], 10).await;
    assert_eq!(ready.structured["state"], json!(SessionState::Ready.name()), "{ready:?}");
}

#[tokio::test]
async fn what_a_client_gives_up_at_its_limit_goes_on_and_what_its_user_cancels_does_not() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let given_up = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    given_up.cancel(Some("McpError: MCP error -32001: Request timed out".to_owned())).await.unwrap();
    let status = agent.call("get_status", json!({})).await;
    assert_eq!(status.structured["state"], json!("Evaluating"), "{status:?}");
    let id = status.structured["running"]["id"].clone();
    agent.call("cancel_eval", json!({})).await;
    assert_eq!(result(&agent, &id, 10).await.structured["output"], json!("waiting\n"));
}

#[tokio::test]
async fn what_is_no_number_of_seconds_is_refused() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for wait in [json!(-1), json!("long"), json!(100_000)] {
        let refused = agent.call("send_code", json!({ "code": "1 + 1", "wait": wait })).await;
        assert_eq!(refused.structured["code"], json!("invalid_argument"), "{wait}");
    }
}

//! Stopping code: by the tool, and by cancelling the request that runs it.

use std::path::Path;

use mainstay_engine::Cursor;
use mainstay_model::{EventBody, EventFilter};
use serde_json::json;

use crate::support::{Agent, Home};
use mainstay_test_support::scripted_kernel::release;

#[tokio::test]
async fn cancel_eval_says_how_the_code_ended() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("let a = 3").await;
    for (code, ending) in [("wait", "yielded"), ("spin", "killed")] {
        let running = ann.begin("send_code", json!({ "code": code })).await;
        home.reaches("Evaluating").await;
        let cancelled = bob.call("cancel_eval", json!({})).await;
        let session = home.session().await.short();
        assert_eq!(cancelled.structured, json!({ "sessionId": session, "state": "Ready", "ending": ending }));
        running.await_response().await.unwrap();
    }
    assert_eq!(ann.send("names").await.structured["value"], json!("\"a\""));
}

#[tokio::test]
async fn an_eval_that_was_cancelled_is_an_error_with_what_it_printed() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    let cancel = async {
        ann.hears_progress().await;
        bob.call("cancel_eval", json!({})).await
    };
    let (reply, _) = tokio::join!(ann.send("wait"), cancel);
    assert!(reply.is_error);
    assert_eq!(reply.structured["output"], json!("waiting\n"));
    assert_eq!(reply.structured["error"]["kind"], json!("Cancelled"));
    assert!(reply.text.contains("Cancelled: the eval was cancelled by mcp:tester\n"), "{}", reply.text);
}

#[tokio::test]
async fn a_session_whose_creation_its_user_cancels_is_withdrawn() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let first = agent.send("let a = 3").await.session();
    let held = home.folder("held");
    let local = home.local();
    let mut news = local
        .follow(Cursor::Log { after: local.last_position().await.unwrap() }, EventFilter::default())
        .await
        .unwrap();
    let creating = agent.begin("create_session", json!({ "workingDirectory": held })).await;
    while !matches!(news.next().await.unwrap().body, EventBody::WarmUpStarted { .. }) {}
    creating.cancel(Some("the user pressed Esc".to_owned())).await.unwrap();
    while !matches!(news.next().await.unwrap().body, EventBody::SessionDeleted) {}
    release(Path::new(&held));
    assert_eq!(agent.send("names").await.session(), first);
    let sessions = agent.call("list_sessions", json!({ "all": true })).await;
    assert_eq!(sessions.structured["sessions"].as_array().unwrap().len(), 1, "{sessions:?}");
}

#[tokio::test]
async fn what_ended_behind_a_client_that_is_gone_is_told_to_who_comes_next() {
    let home = Home::new().await;
    let (stream, has_gone) = home.watched_stream("work");
    let ann = Agent::over(stream).await;
    let session = ann.send("1 + 1").await.session();
    let running = ann.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    drop((running, ann));
    has_gone.await.unwrap();
    let id = home.agent().await.call("get_status", json!({})).await.structured["running"]["id"].clone();
    let note = format!(
        "note: send_code of mcp:tester, whose client is gone, has ended in session {session}, failed: get_result {} tells it\n",
        id.as_str().unwrap()
    );
    home.agent().await.call("cancel_eval", json!({})).await;
    home.reaches("Ready").await;
    // Its call ends after its code.
    while !home.agent().await.call("list_sessions", json!({})).await.text.starts_with(&note) {}
    let elsewhere = home.agent_in("elsewhere").await;
    assert!(!elsewhere.call("list_sessions", json!({})).await.text.contains("note:"));
    let next = home.agent().await;
    let told = next.call("get_result", json!({ "id": id })).await;
    assert_eq!(told.structured["output"], json!("waiting\n"), "{told:?}");
    assert!(told.text.starts_with(&note), "{}", told.text);
    let last = home.agent().await.call("list_sessions", json!({})).await;
    assert!(!last.text.contains("note:"), "it was told: {}", last.text);
}

#[tokio::test]
async fn who_does_not_wait_behind_other_code_hears_that_this_waits_for_its_turn() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    ann.call("send_code", json!({ "code": "wait", "wait": 0 })).await;
    home.reaches("Evaluating").await;
    let waits = bob.call("send_code", json!({ "code": "1 + 1", "wait": 0 })).await;
    assert!(waits.text.contains("other code runs; this waits for its turn"), "{}", waits.text);
    ann.call("cancel_eval", json!({})).await;
    let ended = bob.call("get_result", json!({ "id": waits.structured["id"] })).await;
    assert_eq!(ended.structured["value"], json!("2"), "{ended:?}");
}

#[tokio::test]
async fn a_cancelled_request_stops_its_code() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    let running = agent.begin("send_code", json!({ "code": "spin" })).await;
    home.reaches("Evaluating").await;
    running.cancel(Some("the user pressed Esc".to_owned())).await.unwrap();
    home.reaches("Ready").await;
    let events = agent.call("get_recent_events", json!({ "count": 4 })).await;
    let kinds: Vec<_> =
        events.structured["events"].as_array().unwrap().iter().map(|e| e["kind"].clone()).collect();
    assert_eq!(kinds, ["cancelRequested", "evalCancelled", "warmUpStarted", "warmUpCompleted"]);
}

#[tokio::test]
async fn a_request_cancelled_at_once_leaves_nothing_running() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("1 + 1").await;
    for _ in 0..30 {
        let running = agent.begin("send_code", json!({ "code": "wait" })).await;
        running.cancel(None).await.unwrap();
        let status = agent.call("get_status", json!({ "wait": 10 })).await;
        assert_eq!(status.structured["state"], json!("Ready"));
    }
}

#[tokio::test]
async fn an_agent_hears_once_that_a_rebuilt_session_is_not_what_it_was() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("tick").await;
    let running = ann.begin("send_code", json!({ "code": "spin" })).await;
    home.reaches("Evaluating").await;
    bob.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
    home.reaches("Ready").await;
    let told = json!("the session was rebuilt and is not quite what it was: #4 gave another `tick` (now 1)");
    assert_eq!(ann.call("get_status", json!({})).await.structured["rebuilt"], told);
    let reply = ann.send("1 + 1").await;
    assert_eq!(reply.structured["rebuilt"], told);
    assert!(reply.text.starts_with("note: the session was rebuilt"), "{}", reply.text);
    assert_eq!(ann.send("1 + 1").await.structured.get("rebuilt"), None);
}

#[tokio::test]
async fn a_request_cancelled_while_the_session_warms_up_runs_nothing() {
    let home = Home::new().await;
    let agent = home.agent_in("slow").await;
    let running = agent.begin("send_code", json!({ "code": "1 + 1" })).await;
    while agent.call("get_status", json!({})).await.structured["state"] != json!("WarmingUp") {}
    running.cancel(None).await.unwrap();
    let status = agent.call("get_status", json!({ "wait": 10 })).await;
    assert_eq!((&status.structured["state"], &status.structured["evals"]), (&json!("Ready"), &json!(0)));
}

#[tokio::test]
async fn code_whose_client_has_gone_is_told_of_with_the_first_answer_and_in_the_status() {
    let home = Home::new().await;
    let earlier = home.agent().await;
    assert!(!earlier.send("1 + 1").await.text.contains("is gone"));
    let ann = home.agent().await;
    let running = ann.begin("send_fsharp_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let status = earlier.call("get_fsi_status", json!({})).await;
    assert_eq!(status.structured["running"].get("clientGone"), None, "it is there: {status:?}");

    let mut departures = home.local().departures();
    departures.mark_unchanged();
    drop((running, ann));
    departures.changed().await.unwrap();
    let session = home.session().await.short();
    for (agent, is_first) in [(home.agent().await, true), (earlier, false)] {
        let status = agent.call("get_fsi_status", json!({})).await;
        let note = format!("still runs in session {session}, and its client is gone; cancel_eval");
        assert_eq!(status.text.contains(&note), is_first, "{}", status.text);
        assert!(status.text.contains(" s, by mcp:tester, its client is gone"), "{}", status.text);
        assert_eq!(status.structured["running"]["clientGone"], json!(true));
        let again = agent.call("get_fsi_status", json!({})).await;
        assert!(!again.text.contains(&note), "{}", again.text);
    }
    let last = home.agent().await;
    let cancelled = last.call("cancel_eval", json!({})).await;
    assert!(cancelled.text.contains("its client is gone"), "{}", cancelled.text);
    assert_eq!(cancelled.structured["ending"], json!("yielded"));
    assert!(!home.agent().await.call("get_fsi_status", json!({})).await.text.contains("still runs"));
}

#[tokio::test]
async fn an_agent_that_goes_leaves_its_code_running() {
    let home = Home::new().await;
    let (stream, has_gone) = home.watched_stream("work");
    let ann = Agent::over(stream).await;
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    drop(running);
    drop(ann);
    has_gone.await.unwrap();
    let bob = home.agent().await;
    let cancelled = bob.call("cancel_eval", json!({})).await;
    assert_eq!(cancelled.structured["ending"], json!("yielded"));
    let events = bob.call("get_recent_events", json!({ "count": 2 })).await;
    let told: Vec<_> =
        events.structured["events"].as_array().unwrap().iter().map(|e| e["kind"].clone()).collect();
    assert_eq!(told, ["cancelRequested", "evalCancelled"], "no one but bob cancelled it");
}

#[tokio::test]
async fn waiting_for_the_status_ends_with_the_code() {
    let home = Home::new().await;
    let (ann, bob) = (home.agent().await, home.agent().await);
    ann.send("1 + 1").await;
    let running = ann.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let busy = bob.call("get_status", json!({ "wait": 0 })).await;
    assert_eq!(busy.structured["state"], json!("Evaluating"));
    let (idle, _) =
        tokio::join!(bob.call("get_status", json!({ "wait": 30 })), ann.call("cancel_eval", json!({})));
    assert_eq!(idle.structured["state"], json!("Ready"));
    running.await_response().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_merge_stops_the_code_that_runs_and_runs_nothing_more() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.call("create_session", json!({ "name": "ideas" })).await;
    agent.send("printfn \"first\"").await;
    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    running.cancel(None).await.unwrap();
    agent.call("get_status", json!({ "wait": 10 })).await;
    agent.send("let z = 1").await;
    agent.call("create_session", json!({ "name": "lab" })).await;
    let entries = json!({ "from": "ideas", "entries": "1-6" });
    let before = agent.progress().len();
    let merging = agent.begin("merge_session", entries).await;
    agent.hears_after(before, "first\n").await;
    agent.hears_after(before, "waiting\n").await;
    merging.cancel(None).await.unwrap();
    let status = agent.call("get_status", json!({ "wait": 10 })).await;
    assert_eq!(status.structured["state"], json!("Ready"));
    let events = agent.call("get_recent_events", json!({ "count": 9 })).await;
    let events = events.structured["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["kind"] == "evalCancelled"), "{events:?}");
    assert_eq!(
        agent.send("names").await.structured["value"],
        json!("\"\""),
        "what was behind it did not run"
    );
}

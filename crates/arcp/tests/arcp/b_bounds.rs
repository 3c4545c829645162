//! Dialect B: what is bounded, what is counted, and what a client is told at the edges.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::b::{hello, is_end, opened, resumed, submit};
use crate::support::{Home, Peer};

async fn end_of(peer: &mut Peer, input: Value) -> Value {
    submit(peer, input).await;
    peer.until_it(is_end).await.pop().unwrap()
}

/// How a session is answered that is resumed with this number.
async fn answer_to_resume(home: &Home, welcome: &Value, last: u64) -> Value {
    let mut peer = home.connect().await;
    peer.send(json!({
        "type": "session.resume",
        "payload": {
            "session_id": welcome["session_id"], "resume_token": welcome["resume_token"],
            "last_event_seq": last, "auth": { "scheme": "bearer", "token": "secret" },
        },
    }))
    .await;
    peer.until_it(|envelope| matches!(envelope["type"].as_str(), Some("session.error"))).await.pop().unwrap()
}

#[tokio::test]
async fn a_session_whose_messages_are_counted_otherwise_is_not_resumed() {
    let mut home = Home::new().await;
    let change_of_count = |state: &mut Value| {
        let seq = state["counted"]["seq"].as_u64().unwrap();
        state["counted"]["seq"] = json!(seq + 1);
    };
    let change_of_version = |state: &mut Value| state["foldVersion"] = json!(0);
    let changes: [&dyn Fn(&mut Value); 2] = [&change_of_count, &change_of_version];
    for change in changes {
        let (mut peer, welcome) = opened(&home).await;
        let last = end_of(&mut peer, home.code("1")).await["event_seq"].as_u64().unwrap();
        drop(peer);
        // Once it was resumed, what it was told is counted.
        let (peer, welcome_again, _) = resumed(&home, &welcome, last, last).await;
        drop(peer);
        // The daemon that stored it at the loss of its connection is gone.
        home.restart().await;
        let session = welcome["session_id"].as_str().unwrap();
        assert_eq!(home.stored(session).await["counted"]["seq"], last);
        home.change_stored(session, change).await;
        let answer = answer_to_resume(&home, &welcome_again, last).await;
        assert_eq!(answer["payload"]["code"], "RESUME_WINDOW_EXPIRED");
    }
}

#[tokio::test]
async fn subscriptions_that_were_left_leave_room_for_others() {
    let settings = Settings { subscriptions: 2, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut one, _) = opened(&home).await;
    submit(&mut one, home.code("wait")).await;
    let job = one.first("job.accepted").await["payload"]["job_id"].clone();
    let (mut other, _) = opened(&home).await;
    // So many changes are kept for a client that acknowledges nothing.
    for _ in 0..4 {
        other.send(json!({ "type": "job.subscribe", "payload": { "job_id": job } })).await;
        other.first("job.subscribed").await;
        other.send(json!({ "type": "job.unsubscribe", "payload": { "job_id": job } })).await;
    }
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": job } })).await;
    let refused = other.first("session.error").await;
    assert_eq!(refused["payload"]["details"]["code"], "too_many_requests", "{refused}");
}

#[tokio::test]
async fn a_job_that_runs_is_told_of_as_running_to_who_joins_it() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    submit(&mut one, home.code("wait")).await;
    let told = one.until_it(|envelope| envelope["payload"]["body"]["phase"] == "running").await;
    let job = told[0]["payload"]["job_id"].clone();
    one.until_it(|envelope| envelope["payload"]["kind"] == "log").await;
    let (mut other, _) = opened(&home).await;
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": job } })).await;
    assert_eq!(other.first("job.subscribed").await["payload"]["current_status"], "running");
    other.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    let jobs = other.first("session.jobs").await["payload"]["jobs"].clone();
    assert_eq!(jobs[0]["status"], "running", "{jobs}");
}

#[tokio::test]
async fn a_job_that_was_acknowledged_is_not_cancelled_as_one_that_has_ended() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let mut last = json!(null);
    let mut first = json!(null);
    for _ in 0..250 {
        last = end_of(&mut peer, home.code("printfn \"text\"")).await;
        if first.is_null() {
            first = last["job_id"].clone();
        }
    }
    peer.send(json!({ "type": "session.ack", "payload": { "last_processed_seq": last["event_seq"] } })).await;
    peer.send(json!({ "type": "job.cancel", "job_id": first, "payload": {} })).await;
    let refused = peer.first("session.error").await;
    assert_eq!(refused["payload"]["code"], "INVALID_REQUEST", "{refused}");
    assert_eq!(refused["payload"]["message"], "the job has ended");
}

#[tokio::test]
async fn the_sessions_of_a_principal_are_bounded_and_those_in_use_are_kept() {
    let settings = Settings { sessions: 2, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (kept, in_use) = opened(&home).await;
    let (lost, left) = opened(&home).await;
    drop(lost);
    let opened_later = [opened(&home).await, opened(&home).await];
    let answer = answer_to_resume(&home, &left, 0).await;
    assert_eq!(answer["payload"]["code"], "RESUME_WINDOW_EXPIRED");
    drop((kept, opened_later));
    resumed(&home, &in_use, 0, 0).await;
}

#[tokio::test]
async fn a_flood_of_submissions_is_read_as_it_is_answered_and_each_job_ends() {
    let settings = Settings { unanswered_submissions: 1, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, _) = opened(&home).await;
    for _ in 0..50 {
        submit(&mut peer, home.code("1")).await;
    }
    for _ in 0..50 {
        let end = peer.until_it(is_end).await.pop().unwrap();
        assert_eq!(end["type"], "job.result", "{end}");
    }
}

/// A client that says of itself what the Python SDK alone says.
async fn opened_as_python_sdk(home: &Home) -> Peer {
    let mut hello = hello("secret");
    hello["payload"]["capabilities"]["agents"] = json!([]);
    let mut peer = home.connect().await;
    peer.send(hello).await;
    peer.first("session.welcome").await;
    peer
}

#[tokio::test]
async fn the_python_sdk_is_told_no_error_of_a_cancel_that_comes_too_late() {
    let home = Home::new().await;
    let mut peer = opened_as_python_sdk(&home).await;
    let job = end_of(&mut peer, home.code("1")).await["job_id"].clone();
    peer.send(json!({ "type": "job.cancel", "job_id": job, "payload": {} })).await;
    peer.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    assert_eq!(peer.next().await.unwrap()["type"], "session.jobs");
}

#[tokio::test]
async fn the_python_sdk_is_told_of_what_it_subscribed_to_once_it_has_answered() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    let job = end_of(&mut one, home.code("printfn \"a\"")).await["job_id"].clone();
    let mut peer = opened_as_python_sdk(&home).await;
    peer.send(json!({ "type": "job.subscribe", "payload": { "job_id": job, "history": true } })).await;
    peer.first("job.subscribed").await;
    let ping = peer.next().await.unwrap();
    assert_eq!(ping["type"], "session.ping");
    // What happens meanwhile is told behind it.
    end_of(&mut one, home.code("printfn \"b\"")).await;
    let nonce = &ping["payload"]["nonce"];
    let pong = json!({ "ping_nonce": nonce, "received_at": "2026-05-13T19:42:13Z" });
    peer.send(json!({ "type": "session.pong", "payload": pong })).await;
    let told = peer.until_it(is_end).await;
    assert!(told.iter().any(|envelope| envelope["payload"]["body"]["message"] == "a\n"), "{told:#?}");
}

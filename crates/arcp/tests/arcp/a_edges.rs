//! Dialect A at the edges: what was deleted, what comes twice, what comes at once.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, open, opened, opened_with};
use crate::support::{Home, Peer};

pub(crate) async fn keyed(peer: &mut Peer, home: &Home, code: &str, key: &str) -> String {
    let payload = json!({ "tool": "fsharp", "arguments": home.code(code) });
    peer.send(json!({
        "arcp": "1.0", "type": "tool.invoke", "idempotency_key": key, "trace_id": "t", "payload": payload,
    }))
    .await
}

/// Opens a connection that comes back to a session.
async fn back(home: &Home, session: &str) -> Peer {
    let mut open = open("secret");
    open["session_id"] = json!(session);
    let (peer, again) = opened_with(home, open).await;
    assert_eq!(again, session);
    peer
}

async fn resume(peer: &mut Peer, session: &str, after: &Value) {
    let payload = json!({ "after_message_id": after });
    peer.send(json!({ "arcp": "1.0", "type": "resume", "session_id": session, "payload": payload })).await;
}

fn observed(envelope: &Value) -> &Value {
    &envelope["payload"]["event"]
}

#[tokio::test]
async fn a_session_whose_past_was_deleted_says_so_once_and_goes_on() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    ask(&mut peer, "subscribe", json!({ "filter": { "session_id": [session] } })).await;
    peer.first("subscribe.accepted").await;
    keyed(&mut peer, &home, "1", "key").await;
    peer.until_it(is_end).await;
    keyed(&mut peer, &home, "1", "key").await;
    let last = peer.until_it(is_end).await.pop().unwrap()["id"].clone();
    drop(peer);
    home.delete_sessions().await;
    let mut peer = home.connect().await;
    let mut open = open("secret");
    open["session_id"] = json!(session);
    peer.send(open).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS");
    assert_eq!(peer.first("session.accepted").await["payload"]["session_id"], session);
    resume(&mut peer, &session, &last).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS");
    // Its observer is still there.
    invoke(&mut peer, home.code("1")).await;
    let told = peer.until_it(|envelope| is_end(observed(envelope))).await;
    let nacks = told.iter().filter(|envelope| envelope["type"] == "nack").count();
    assert_eq!(nacks, 0, "{told:#?}");
}

#[tokio::test]
async fn the_past_of_an_observer_may_have_been_deleted() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    invoke(&mut one, home.code("1")).await;
    let since = one.first("job.started").await["id"].clone();
    one.until_it(is_end).await;
    home.delete_sessions().await;
    let (mut watcher, _) = opened(&home).await;
    ask(&mut watcher, "subscribe", json!({ "since": { "after_message_id": since } })).await;
    let told = watcher
        .until_it(|envelope| observed(envelope)["payload"]["type"] == "subscription.backfill_complete")
        .await;
    assert_eq!(told[0]["type"], "subscribe.accepted");
}

#[tokio::test]
async fn two_clients_that_want_each_others_sessions_both_get_one() {
    let home = Home::new().await;
    let ((mut one, first), (mut other, second)) = (opened(&home).await, opened(&home).await);
    for (peer, session) in [(&mut one, &first), (&mut other, &second)] {
        invoke(peer, home.code("1")).await;
        peer.until_it(is_end).await;
        ask(peer, "ping", json!({})).await;
        peer.first("pong").await;
        assert!(session.starts_with("sess_"));
    }
    let none = json!(null);
    tokio::join!(resume(&mut one, &second, &none), resume(&mut other, &first, &none));
    for (mut peer, wanted) in [(one, second), (other, first)] {
        // Whose session was taken before its request was read is closed, and comes back.
        loop {
            match peer.next().await {
                Some(told) if is_end(&told) => break,
                Some(_) => {}
                None => {
                    peer = back(&home, &wanted).await;
                    resume(&mut peer, &wanted, &none).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_asked_before_a_resume_that_is_refused_is_told() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    invoke(&mut peer, home.code("1")).await;
    resume(&mut peer, "sess_other", &json!(null)).await;
    let mut left = vec!["nack", "job.accepted", "job.completed"];
    while !left.is_empty() {
        let told = peer.next().await.unwrap();
        left.retain(|kind| told["type"] != *kind);
    }
}

#[tokio::test]
async fn a_session_in_which_something_was_asked_can_be_resumed_after_its_client_went_to_another() {
    let home = Home::new().await;
    let (mut peer, old) = opened(&home).await;
    drop(peer);
    (peer, _) = opened(&home).await;
    let used = {
        invoke(&mut peer, home.code("1")).await;
        peer.until_it(is_end).await.pop().unwrap()
    };
    resume(&mut peer, &old, &json!(null)).await;
    ask(&mut peer, "ping", json!({})).await;
    peer.first("pong").await;
    let session = used["session_id"].as_str().unwrap();
    let mut again = back(&home, session).await;
    resume(&mut again, session, &json!(null)).await;
    assert_eq!(again.until_it(is_end).await.pop().unwrap()["id"], used["id"]);
}

#[tokio::test]
async fn a_key_of_another_session_is_answered_as_this_sessions_own() {
    let home = Home::new().await;
    let ((mut one, _), (mut other, session)) = (opened(&home).await, opened(&home).await);
    keyed(&mut one, &home, "1", "ended").await;
    let first = one.until_it(is_end).await.pop().unwrap();
    let message = keyed(&mut other, &home, "1", "ended").await;
    let end = other.until_it(is_end).await.pop().unwrap();
    assert_eq!(end["job_id"], first["job_id"]);
    let said = (&end["session_id"], &end["correlation_id"], &end["trace_id"]);
    assert_eq!(said, (&json!(session), &json!(message), &json!("t")));
    // The same while it runs.
    keyed(&mut one, &home, "wait", "runs").await;
    one.until_it(|envelope| envelope["payload"]["data"] == "waiting\n").await;
    let message = keyed(&mut other, &home, "wait", "runs").await;
    let job = other.first("job.accepted").await["job_id"].clone();
    ask(&mut other, "cancel", json!({ "target": "job", "target_id": job })).await;
    other.first("cancel.accepted").await;
    let told = other.until_it(is_end).await;
    let end = told.last().unwrap();
    assert_eq!((&end["type"], &end["correlation_id"]), (&json!("job.cancelled"), &json!(message)));
    assert!(told.iter().any(|envelope| envelope["type"] == "stream.close"), "{told:#?}");
}

#[tokio::test]
async fn a_message_has_the_same_id_whatever_its_reader_can_do() {
    let home = Home::new().await;
    let mut plain = open("secret");
    plain["payload"]["capabilities"] = json!({ "durable_jobs": true });
    let (mut one, _) = opened_with(&home, plain).await;
    let (mut watcher, _) = opened(&home).await;
    ask(&mut watcher, "subscribe", json!({})).await;
    watcher.first("subscribe.accepted").await;
    invoke(&mut one, home.code("printfn \"a\"")).await;
    let told = one.until_it(is_end).await;
    let observed: Vec<_> =
        watcher.until_it(|envelope| is_end(observed(envelope))).await.iter().map(observed).cloned().collect();
    for kind in ["job.accepted", "job.started", "job.completed"] {
        let id_in = |all: &[Value]| {
            all.iter().find(|envelope| envelope["type"] == kind).unwrap_or_else(|| panic!("{kind}"))["id"]
                .clone()
        };
        assert_eq!(id_in(&told), id_in(&observed), "{kind}");
    }
}

#[tokio::test]
async fn an_observer_that_comes_late_is_told_that_a_question_was_answered() {
    let home = Home::new().await;
    let (mut one, session) = opened(&home).await;
    invoke(&mut one, home.code("number")).await;
    let question = one.first("human.input.request").await["id"].clone();
    let since = json!({ "after_message_id": one_id_behind(&mut one).await });
    let filter = json!({ "session_id": [session] });
    let (mut late, _) = opened(&home).await;
    ask(&mut late, "subscribe", json!({ "filter": filter })).await;
    late.first("subscribe.accepted").await;
    let value = json!({ "value": 3 });
    let answer = json!({
        "arcp": "1.0", "id": "answer", "type": "human.input.response", "correlation_id": question,
        "payload": value,
    });
    for _ in 0..2 {
        late.send(answer.clone()).await;
        assert_eq!(
            late.first("ack").await["correlation_id"],
            "answer",
            "it is taken once, and answered twice"
        );
    }
    let mut told = one.until_it(is_end).await;
    told.retain(|envelope| envelope["type"] != "pong");
    let (mut past, _) = opened(&home).await;
    ask(&mut past, "subscribe", json!({ "filter": filter, "since": since })).await;
    let complete =
        |envelope: &Value| observed(envelope)["payload"]["type"] == "subscription.backfill_complete";
    let behind: Vec<_> = past.until_it(complete).await.iter().map(observed).cloned().collect();
    // It begins with the acceptance of the subscription, and the question.
    assert_eq!(behind[2..behind.len() - 1], told[..]);
}

/// The id of the last event that was told of a job, which a question is not.
async fn one_id_behind(peer: &mut Peer) -> Value {
    ask(peer, "resume", json!({})).await;
    let told = peer.until("human.input.request").await;
    told.iter().rev().find(|envelope| envelope["id"].as_str().unwrap().starts_with("evt_")).unwrap()["id"]
        .clone()
}

#[tokio::test]
async fn a_subscription_that_is_asked_for_twice_is_one() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    let subscribe = json!({
        "arcp": "1.0", "id": "again", "type": "subscribe", "payload": { "filter": { "session_id": [session] } },
    });
    peer.send(subscribe.clone()).await;
    let first = peer.first("subscribe.accepted").await["payload"].clone();
    peer.send(subscribe).await;
    assert_eq!(peer.first("subscribe.accepted").await["payload"], first);
    invoke(&mut peer, home.code("1")).await;
    peer.until_it(|envelope| is_end(observed(envelope))).await;
    ask(&mut peer, "ping", json!({})).await;
    let rest = peer.until("pong").await;
    assert!(!rest.iter().any(|envelope| envelope["type"] == "subscribe.event"), "{rest:#?}");
}

#[tokio::test]
async fn what_is_observed_is_bounded_and_room_comes_back() {
    let settings = Settings { observers: 2, subscriptions: 1, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, _) = opened(&home).await;
    for _ in 0..10 {
        ask(&mut peer, "subscribe", json!({})).await;
        let subscription = peer.first("subscribe.accepted").await["payload"]["subscription_id"].clone();
        ask(&mut peer, "unsubscribe", json!({ "subscription_id": subscription })).await;
        peer.first("ack").await;
    }
    for _ in 0..2 {
        ask(&mut peer, "subscribe", json!({})).await;
        peer.first("subscribe.accepted").await;
    }
    ask(&mut peer, "subscribe", json!({})).await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "RESOURCE_EXHAUSTED");
    for filter in [json!({ "types": vec!["a"; 65] }), json!({ "job_id": ["j".repeat(257)] })] {
        ask(&mut peer, "subscribe", json!({ "filter": filter })).await;
        assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn a_session_that_is_closed_with_its_jobs_tells_of_their_ends_first() {
    let home = Home::new().await;
    // The submission may not be accepted yet when the session is to be closed.
    for (wish, code, last) in [("cancel", "wait", "job.cancelled"), ("complete", "1", "job.completed")] {
        let (mut peer, _) = opened(&home).await;
        invoke(&mut peer, home.code(code)).await;
        ask(&mut peer, "session.close", json!({ "jobs": wish })).await;
        let told = peer.until("session.close").await;
        let kinds: Vec<_> = told.iter().map(|envelope| envelope["type"].as_str().unwrap()).collect();
        assert_eq!(kinds[kinds.len() - 2], last, "{kinds:?}");
        assert_eq!(peer.next().await, None);
    }
    let (mut peer, session) = opened(&home).await;
    invoke(&mut peer, home.code("wait")).await;
    peer.until_it(|envelope| envelope["payload"]["data"] == "waiting\n").await;
    ask(&mut peer, "cancel", json!({ "target": "session", "target_id": session })).await;
    peer.first("cancel.accepted").await;
    let told = peer.until("session.evicted").await;
    assert!(told.iter().any(|envelope| envelope["type"] == "job.cancelled"), "{told:#?}");
}

#[tokio::test]
async fn what_was_told_long_ago_is_lost_and_memory_is_bounded() {
    let settings = Settings { retained_messages: 600, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, session) = opened(&home).await;
    let mut told = Vec::new();
    for _ in 0..500 {
        invoke(&mut peer, home.code("1")).await;
        told.extend(peer.until_it(is_end).await);
    }
    drop(peer);
    let mut peer = back(&home, &session).await;
    ask(&mut peer, "ping", json!({})).await;
    peer.first("pong").await;
    let stored = home.stored(&session).await;
    assert!(stored["base"]["seq"].as_u64().unwrap() >= 1000, "{}", stored["base"]);
    resume(&mut peer, &session, &told[0]["id"]).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS");
    let mut again = back(&home, &session).await;
    resume(&mut again, &session, &told[told.len() - 100]["id"]).await;
    let last = told.last().unwrap()["id"].clone();
    again.until_it(|envelope| envelope["id"] == last).await;
}

#[tokio::test]
async fn what_names_another_session_or_an_empty_key_is_refused() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    peer.send(json!({ "arcp": "1.0", "type": "ping", "session_id": "sess_other", "payload": {} })).await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_ARGUMENT");
    keyed(&mut peer, &home, "1", "").await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_ARGUMENT");
}

#[tokio::test]
async fn who_comes_back_is_told_what_it_missed_before_what_is_new() {
    let home = Home::new().await;
    let (mut watcher, _) = opened(&home).await;
    ask(&mut watcher, "subscribe", json!({})).await;
    watcher.first("subscribe.accepted").await;
    let (mut peer, session) = opened(&home).await;
    invoke(&mut peer, home.code("wait")).await;
    let started = peer.first("job.started").await;
    drop(peer);
    let mut peer = back(&home, &session).await;
    // This is new, and the client has not said yet that it missed something.
    home.cancel_jobs().await;
    watcher.until_it(|envelope| is_end(observed(envelope))).await;
    ask(&mut peer, "ping", json!({})).await;
    assert_eq!(peer.next().await.unwrap()["type"], "pong");
    resume(&mut peer, &session, &started["id"]).await;
    let told = peer.until_it(is_end).await;
    assert_eq!(told[0]["type"], "stream.open", "{told:#?}");
}

#[tokio::test]
async fn who_comes_back_and_asks_nothing_is_told_what_is_new_in_the_end() {
    let settings = Settings { handshake_ms: 100, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, session) = opened(&home).await;
    invoke(&mut peer, home.code("wait")).await;
    peer.first("job.started").await;
    drop(peer);
    let mut peer = back(&home, &session).await;
    home.cancel_jobs().await;
    peer.until_it(is_end).await;
}

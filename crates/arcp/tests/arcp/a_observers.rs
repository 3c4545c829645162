//! Dialect A: observers, and both dialects side by side in one session of the engine.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, opened, opened_with};
use crate::b;
use crate::support::{Home, Peer};

async fn observe(peer: &mut Peer, payload: Value) -> Value {
    ask(peer, "subscribe", payload).await;
    peer.first("subscribe.accepted").await["payload"]["subscription_id"].clone()
}

/// What observers are told, without the envelopes in which they are told it.
fn events(envelopes: &[Value]) -> Vec<Value> {
    let event = |envelope: &Value| envelope["payload"]["event"].clone();
    envelopes.iter().filter(|envelope| envelope["type"] == "subscribe.event").map(event).collect()
}

fn has_observed_an_end(envelope: &Value) -> bool {
    is_end(&envelope["payload"]["event"])
}

fn is_complete(envelope: &Value) -> bool {
    envelope["payload"]["event"]["payload"]["type"] == "subscription.backfill_complete"
}

#[tokio::test]
async fn an_observer_is_told_what_others_are_told_whatever_their_dialect() {
    let home = Home::new().await;
    let (mut watcher, _) = opened(&home).await;
    let all = observe(&mut watcher, json!({})).await;
    let (mut one, _) = opened(&home).await;
    invoke(&mut one, home.code("printfn \"a\"")).await;
    let told: Vec<_> = one.until_it(is_end).await;
    let told: Vec<_> = told.into_iter().filter(|envelope| envelope["type"] != "job.heartbeat").collect();
    let observed = watcher.until_it(has_observed_an_end).await;
    assert!(observed.iter().all(|envelope| envelope["subscription_id"] == all));
    assert_eq!(events(&observed), told);
    let (mut other, welcome) = b::opened(&home).await;
    b::submit(&mut other, home.code("printfn \"b\"")).await;
    other.until_it(b::is_end).await;
    let observed = events(&watcher.until_it(has_observed_an_end).await);
    assert!(observed.iter().all(|event| event["session_id"] == welcome["session_id"]));
    assert!(observed.iter().any(|event| event["payload"]["data"] == "b\n"), "{observed:#?}");
}

#[tokio::test]
async fn the_past_of_an_observer_ends_with_a_mark_and_is_told_again_over_restarts() {
    let mut home = Home::new().await;
    let (mut one, session) = opened(&home).await;
    let mut told = Vec::new();
    for code in ["printfn \"a\"", "printfn \"b\""] {
        invoke(&mut one, home.code(code)).await;
        told.extend(one.until_it(is_end).await);
    }
    told.retain(|envelope| envelope["type"] != "job.heartbeat");
    let (mut watcher, watching) = opened(&home).await;
    let filter = json!({ "session_id": [session] });
    // It begins behind what was told when the first job began, so that this job is known from before.
    let since = told.iter().find(|envelope| envelope["type"] == "job.started").unwrap()["id"].clone();
    let behind = told.iter().position(|envelope| envelope["id"] == since).unwrap() + 1;
    observe(&mut watcher, json!({ "filter": filter, "since": { "after_message_id": since } })).await;
    let mut observed = watcher.until_it(is_complete).await;
    let past = events(&observed);
    assert_eq!(past[..past.len() - 1], told[behind..]);
    invoke(&mut one, home.code("printfn \"c\"")).await;
    one.until_it(is_end).await;
    observed.extend(watcher.until_it(has_observed_an_end).await);
    observed.retain(|envelope| envelope["type"] == "subscribe.event");
    drop(watcher);
    home.restart().await;
    let mut again = home.connect().await;
    let mut open = crate::a::open("secret");
    open["session_id"] = json!(watching);
    again.send(open).await;
    let first = observed[0]["id"].clone();
    again
        .send(json!({
            "arcp": "1.0", "type": "resume", "session_id": watching, "payload": { "after_message_id": first },
        }))
        .await;
    let last = observed.last().unwrap()["id"].clone();
    let rest = again.until_it(|envelope| envelope["id"] == last).await;
    let rest: Vec<_> = rest.into_iter().filter(|envelope| envelope["type"] == "subscribe.event").collect();
    assert_eq!(rest, observed[1..]);
}

#[tokio::test]
async fn filters_let_through_what_all_of_their_conditions_allow() {
    let home = Home::new().await;
    let (mut one, session) = opened(&home).await;
    let (mut watcher, _) = opened(&home).await;
    let critical = observe(&mut watcher, json!({ "filter": { "min_priority": "critical" } })).await;
    let started =
        observe(&mut watcher, json!({ "filter": { "types": ["job.started", "stream.chunk"] } })).await;
    observe(&mut watcher, json!({ "filter": { "session_id": [session], "trace_id": ["no-such"] } })).await;
    invoke(&mut one, home.code("printfn \"a\"")).await;
    one.until_it(is_end).await;
    let observed = watcher.until_it(has_observed_an_end).await;
    let seen: Vec<_> = observed
        .iter()
        .filter(|envelope| envelope["type"] == "subscribe.event")
        .map(|envelope| (envelope["subscription_id"].clone(), envelope["payload"]["event"]["type"].clone()))
        .collect();
    let expected = [(&started, "job.started"), (&started, "stream.chunk"), (&critical, "job.completed")];
    assert_eq!(seen, expected.map(|(subscription, kind)| (subscription.clone(), json!(kind))));
}

#[tokio::test]
async fn a_session_of_the_engine_is_observed_with_all_jobs_in_it() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    invoke(&mut one, home.code("1")).await;
    one.until_it(is_end).await;
    let (mut watcher, _) = opened(&home).await;
    observe(&mut watcher, json!({ "filter": { "session_id": [home.only_session().await] } })).await;
    invoke(&mut one, home.code_in("elsewhere", "1")).await;
    one.until_it(is_end).await;
    invoke(&mut one, home.code("printfn \"a\"")).await;
    let told = one.until_it(is_end).await;
    assert_eq!(events(&watcher.until_it(has_observed_an_end).await), told);
}

#[tokio::test]
async fn an_observer_that_comes_while_a_job_runs_is_told_of_its_end_and_none_after_it_has_gone() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    invoke(&mut one, home.code("wait")).await;
    let job = one.first("job.started").await["job_id"].clone();
    let (mut watcher, _) = opened(&home).await;
    let subscription = observe(&mut watcher, json!({ "filter": { "job_id": [job] } })).await;
    ask(&mut one, "cancel", json!({ "target": "job", "target_id": job })).await;
    let end = watcher.until_it(has_observed_an_end).await.pop().unwrap();
    assert_eq!(end["payload"]["event"]["type"], "job.cancelled");
    ask(&mut watcher, "unsubscribe", json!({ "subscription_id": subscription })).await;
    watcher.first("ack").await;
    ask(&mut watcher, "unsubscribe", json!({ "subscription_id": subscription })).await;
    assert_eq!(watcher.next().await.unwrap()["payload"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn both_dialects_share_a_session_and_keys_and_go_on_over_a_restart() {
    let mut home = Home::new().await;
    let (mut one, session) = opened(&home).await;
    let (mut other, welcome) = b::opened(&home).await;
    invoke(&mut one, home.code("let x = 3")).await;
    let mut told_a = one.until_it(is_end).await;
    b::submit(&mut other, home.code("names")).await;
    let mut told_b = other.until_it(b::is_end).await;
    assert_eq!(told_b.last().unwrap()["payload"]["result"]["value"], "\"x\"", "it is the same session");
    home.restart().await;
    invoke_again(&home, &session, &mut told_a).await;
    let last = told_b.last().unwrap()["event_seq"].as_u64().unwrap();
    let (mut other, _, rest) = b::resumed(&home, &welcome, last, last).await;
    assert_eq!(rest, Vec::<Value>::new());
    b::submit(&mut other, home.code("printfn \"b\"")).await;
    told_b.extend(other.until_it(b::is_end).await);
    let seqs = b::seqs(&told_b);
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

/// Comes back to a session of dialect A, and runs one job more in it.
async fn invoke_again(home: &Home, session: &str, told: &mut Vec<Value>) {
    let mut open = crate::a::open("secret");
    open["session_id"] = json!(session);
    let mut peer = home.connect().await;
    peer.send(open).await;
    peer.first("session.accepted").await;
    let last = told.last().unwrap()["id"].clone();
    ask(&mut peer, "resume", json!({ "after_message_id": last })).await;
    invoke(&mut peer, home.code("printfn \"a\"")).await;
    let rest = peer.until_it(is_end).await;
    assert_eq!(rest[0]["type"], "job.accepted", "{rest:#?}");
    told.extend(rest);
}

#[tokio::test]
async fn an_observer_that_lies_too_far_behind_is_told_where_to_go_on_and_loses_nothing() {
    let settings = Settings { observer_lag: 5, ..Settings::default() };
    let mut home = Home::with(settings, Limits::default()).await;
    let (mut watcher, watching) = opened(&home).await;
    let subscription = observe(&mut watcher, json!({})).await;
    let (mut one, _) = opened(&home).await;
    invoke(&mut one, home.code("printfn \"a\"")).await;
    one.until_it(is_end).await;
    let seen = watcher.until_it(has_observed_an_end).await;
    drop(watcher);
    // What happens from here on is not told before it asks for something.
    let mut watcher = home.connect().await;
    let mut open = crate::a::open("secret");
    open["session_id"] = json!(watching);
    watcher.send(open).await;
    watcher.first("session.accepted").await;
    invoke(&mut one, home.code("drip")).await;
    let told = one.until_it(is_end).await;
    let told: Vec<_> = told.into_iter().filter(|envelope| envelope["type"] != "job.heartbeat").collect();
    ask(&mut watcher, "unsubscribe", json!({ "subscription_id": "sub_x" })).await;
    let closed = watcher.first("subscribe.closed").await;
    assert_eq!(closed["subscription_id"], subscription);
    assert_eq!(closed["payload"]["code"], "BACKPRESSURE_OVERFLOW");
    let since = json!({ "after_message_id": closed["payload"]["after_message_id"] });
    observe(&mut watcher, json!({ "since": since })).await;
    let mut missed = events(&watcher.until_it(is_complete).await);
    missed.pop();
    assert_eq!(missed, told);
    // It stays closed, and is told again so.
    home.restart().await;
    let last = seen.last().unwrap()["id"].as_str().unwrap();
    let mut again = crate::a::resumed(&home, &watching, last).await;
    assert_eq!(again.first("subscribe.closed").await, closed);
    again.until_it(is_complete).await;
    ask(&mut again, "unsubscribe", json!({ "subscription_id": subscription })).await;
    assert_eq!(again.first("nack").await["payload"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn an_observer_does_not_lie_behind_what_it_may_not_see() {
    let settings = Settings { observer_lag: 5, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let mut open = crate::a::open("hers");
    let (mut watcher, watching) = opened_with(&home, open.clone()).await;
    observe(&mut watcher, json!({})).await;
    invoke(&mut watcher, home.code("printfn \"a\"")).await;
    let seen = watcher.until_it(has_observed_an_end).await;
    drop(watcher);
    open["session_id"] = json!(watching);
    let (mut watcher, _) = opened_with(&home, open).await;
    // The first sign of life of its transport comes before this, so that nothing but the client has the session look how far it lies behind.
    ask(&mut watcher, "ping", json!({})).await;
    watcher.first("pong").await;
    let before_last = seen.iter().rfind(|envelope| envelope["type"] == "stream.chunk").unwrap()["id"].clone();
    ask(&mut watcher, "resume", json!({ "after_message_id": before_last })).await;
    watcher.until_it(has_observed_an_end).await;
    let (mut one, _) = opened(&home).await;
    for _ in 0..3 {
        invoke(&mut one, home.code_in("elsewhere", "drip")).await;
        one.until_it(is_end).await;
    }
    for _ in 0..2 {
        ask(&mut watcher, "ping", json!({})).await;
        let told = watcher.until("pong").await;
        assert!(!told.iter().any(|envelope| envelope["type"] == "subscribe.closed"), "{told:#?}");
    }
    invoke(&mut watcher, home.code("1")).await;
    watcher.until_it(has_observed_an_end).await;
}

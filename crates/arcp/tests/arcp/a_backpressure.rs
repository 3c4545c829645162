//! Dialect A: streams that their reader slows down.

use mainstay_arcp::Settings;
use mainstay_model::{Limits, PartRole};
use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, opened, resumed};
use crate::a_edges::keyed;
use crate::support::{AgentHome, Home, Peer};

/// What the job prints that waits, a chunk for each line.
const DRIPS: &str = "0\n1\n2\n3\n4\n";

/// A client with a session in which a job waits for its turn that will print much, and what that prints stands still.
struct Waiting {
    peer: Peer,
    session: String,
    /// The job that runs before.
    before: Value,
    job: Value,
    stream: String,
}

async fn waiting(home: &Home) -> Waiting {
    let (mut peer, session) = opened(home).await;
    invoke(&mut peer, home.code("wait")).await;
    let before = peer.first("stream.chunk").await["job_id"].clone();
    invoke(&mut peer, home.code("drip")).await;
    let job = peer.first("job.accepted").await["job_id"].clone();
    let stream = format!("str_{}_text", job.as_str().unwrap().trim_start_matches("job_"));
    slow_down(&mut peer, &stream, json!({ "desired_rate_per_second": 0 })).await;
    Waiting { peer, session, before, job, stream }
}

async fn slow_down(peer: &mut Peer, stream: &str, wish: Value) {
    peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": stream, "payload": wish })).await;
    peer.first("ack").await;
}

/// Has the job before end, and other jobs run meanwhile; gives what was told up to the end of the last.
async fn others_run(waiting: &mut Waiting, home: &Home) -> Vec<Value> {
    let Waiting { peer, before, .. } = waiting;
    ask(peer, "cancel", json!({ "target": "job", "target_id": before })).await;
    let mut told = peer.until("stream.open").await;
    // It waits in the same session, so it runs once what is printed before has been printed.
    let id = invoke(peer, home.code("1 + 1")).await;
    told.extend(peer.until_it(|envelope| is_end(envelope) && envelope["correlation_id"] == id).await);
    told
}

fn of<'a>(told: &'a [Value], job: &Value) -> Vec<&'a Value> {
    let is_of_job = |envelope: &&Value| envelope["job_id"] == *job && envelope["type"] != "job.heartbeat";
    told.iter().filter(is_of_job).collect()
}

/// All that these messages printed.
fn text(told: &[&Value]) -> String {
    told.iter().filter_map(|envelope| envelope["payload"]["data"].as_str()).collect()
}

fn kinds<'a>(told: &[&'a Value]) -> Vec<&'a str> {
    told.iter().map(|envelope| envelope["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_stream_waits_with_its_job_and_holds_up_nothing_else() {
    let home = Home::new().await;
    let mut waiting = waiting(&home).await;
    let told = others_run(&mut waiting, &home).await;
    let Waiting { mut peer, job, stream, .. } = waiting;
    assert_eq!(kinds(&of(&told, &job)), ["job.started", "stream.open"]);
    ask(&mut peer, "ping", json!({})).await;
    assert_eq!(peer.first("pong").await["type"], "pong");
    slow_down(&mut peer, &stream, json!({ "desired_rate_per_second": 10_000, "reason": "caught up" })).await;
    let rest = peer.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
    let rest = of(&rest, &job);
    let mut expected = ["stream.chunk", "event.emit"].repeat(5);
    expected.extend(["stream.close", "job.completed"]);
    assert_eq!(kinds(&rest), expected);
    assert_eq!(text(&rest), DRIPS);
    // What is told now is told at once again.
    invoke(&mut peer, home.code("printfn \"a\"")).await;
    assert_eq!(peer.until_it(is_end).await.last().unwrap()["type"], "job.completed");
}

#[tokio::test]
async fn a_stream_that_is_cancelled_while_it_waits_holds_up_its_job_no_more() {
    let home = Home::new().await;
    let mut waiting = waiting(&home).await;
    let told = others_run(&mut waiting, &home).await;
    let Waiting { mut peer, session, job, stream, .. } = waiting;
    let opened = of(&told, &job)[1]["id"].as_str().unwrap().to_owned();
    ask(&mut peer, "cancel", json!({ "target": "stream", "target_id": stream })).await;
    let told = peer.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
    let mut expected = vec!["stream.error"];
    expected.extend(["event.emit"; 5]);
    expected.push("job.completed");
    assert_eq!(kinds(&of(&told, &job)), expected);
    let mut again = resumed(&home, &session, &opened).await;
    let told = again.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
    assert_eq!(kinds(&of(&told, &job)), expected[1..]);
}

#[tokio::test]
async fn what_waits_is_told_after_the_connection_is_lost_also_by_the_next_daemon() {
    let mut home = Home::new().await;
    let mut waiting = waiting(&home).await;
    let told = others_run(&mut waiting, &home).await;
    let Waiting { peer, session, job, .. } = waiting;
    let last = told.last().unwrap()["id"].as_str().unwrap().to_owned();
    drop(peer);
    let mut before = Vec::new();
    for restarts in [false, true] {
        if restarts {
            home.restart().await;
        }
        let mut again = resumed(&home, &session, &last).await;
        let rest = again.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
        let rest: Vec<_> = of(&rest, &job).into_iter().cloned().collect();
        let told: Vec<_> = rest.iter().collect();
        assert_eq!(text(&told), DRIPS);
        assert!(before.is_empty() || before == rest, "the same is told again");
        before = rest;
        drop(again);
    }
}

#[tokio::test]
async fn what_was_told_late_is_told_again_behind_what_was_told_before_it() {
    let home = Home::new().await;
    let mut waiting = waiting(&home).await;
    let told = others_run(&mut waiting, &home).await;
    let Waiting { mut peer, session, job, stream, .. } = waiting;
    slow_down(&mut peer, &stream, json!({})).await;
    let late = peer.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
    let late: Vec<_> = of(&late, &job).into_iter().cloned().collect();
    invoke(&mut peer, home.code("1")).await;
    let last = peer.until_it(is_end).await.pop().unwrap();
    // It processed only what came before what was late.
    let mut again = resumed(&home, &session, told.last().unwrap()["id"].as_str().unwrap()).await;
    let rest = again.until_it(|envelope| envelope["id"] == last["id"]).await;
    let rest: Vec<_> = of(&rest, &job).into_iter().cloned().collect();
    assert_eq!(rest, late);
}

#[tokio::test]
async fn an_observer_that_comes_while_a_stream_waits_and_one_that_is_slow_are_told_all_in_order() {
    let home = Home::new().await;
    let mut waiting = waiting(&home).await;
    let told = others_run(&mut waiting, &home).await;
    let Waiting { mut peer, job, .. } = waiting;
    let started = of(&told, &job)[0]["id"].clone();
    ask(
        &mut peer,
        "subscribe",
        json!({ "since": { "after_message_id": started }, "filter": { "job_id": [job] } }),
    )
    .await;
    let is_complete = |envelope: &Value| {
        envelope["payload"]["event"]["payload"]["type"] == "subscription.backfill_complete"
    };
    let told = peer.until_it(is_complete).await;
    let own: Vec<_> = of(&told, &job).into_iter().cloned().collect();
    let events: Vec<_> = told.iter().map(|envelope| envelope["payload"]["event"].clone()).collect();
    let observed: Vec<_> = of(&events, &job).into_iter().cloned().collect();
    assert_eq!(own, observed[1..], "the stream was opened before it waited");
    assert_eq!(text(&own.iter().collect::<Vec<_>>()), DRIPS);
}

#[tokio::test]
async fn a_stream_that_is_not_there_is_not_slowed_down_and_a_session_that_is_closed_waits_for_none() {
    let home = Home::new().await;
    let mut waiting = waiting(&home).await;
    others_run(&mut waiting, &home).await;
    let Waiting { mut peer, job, .. } = waiting;
    peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": "str_x", "payload": {} })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
    ask(&mut peer, "session.close", json!({ "jobs": "complete" })).await;
    let told = peer.until("session.close").await;
    assert_eq!(kinds(&of(&told, &job)).last(), Some(&"job.completed"));
}

#[tokio::test]
async fn a_stream_that_is_stopped_while_its_session_closes_is_told_before_the_end() {
    let home = Home::new().await;
    let Waiting { mut peer, before, job, stream, .. } = waiting(&home).await;
    ask(&mut peer, "session.close", json!({ "jobs": "complete" })).await;
    slow_down(&mut peer, &stream, json!({ "desired_rate_per_second": 0 })).await;
    ask(&mut peer, "cancel", json!({ "target": "job", "target_id": before })).await;
    let told = peer.until("session.close").await;
    let told = of(&told, &job);
    assert_eq!((text(&told).as_str(), kinds(&told).last()), (DRIPS, Some(&"job.completed")));
}

#[tokio::test]
async fn what_waits_is_told_before_it_could_be_told_no_more() {
    // The changes that are kept are four for each subscription.
    let settings = Settings { subscriptions: 1, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let mut waiting = waiting(&home).await;
    others_run(&mut waiting, &home).await;
    let Waiting { mut peer, job, .. } = waiting;
    let mut told = Vec::new();
    for _ in 0..6 {
        // Each but the first is a change: a job that has ended is told once more.
        let id = keyed(&mut peer, &home, "1", "key").await;
        let is_it = |envelope: &Value| is_end(envelope) && envelope["job_id"] != job;
        told.extend(peer.until_it(is_it).await);
        assert!(told.iter().any(|envelope| envelope["correlation_id"] == id), "{told:#?}");
    }
    let told = of(&told, &job);
    assert_eq!((text(&told).as_str(), kinds(&told).last()), (DRIPS, Some(&"job.completed")));
}

#[tokio::test]
async fn a_client_is_heard_while_it_is_told_what_has_waited() {
    let mut home = AgentHome::new().await;
    let (mut watcher, _) = opened(&home.home).await;
    ask(&mut watcher, "subscribe", json!({})).await;
    watcher.first("subscribe.accepted").await;
    let (mut peer, _) = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let job = peer.first("job.accepted").await["job_id"].clone();
    let stream = format!("str_{}_text", job.as_str().unwrap().trim_start_matches("job_"));
    slow_down(&mut peer, &stream, json!({ "desired_rate_per_second": 0 })).await;
    home.script.work().await;
    for _ in 0..400 {
        home.script.say(PartRole::Assistant, &"x".repeat(5000)).await;
    }
    home.script.done().await;
    watcher.until_it(|envelope| is_end(&envelope["payload"]["event"])).await;
    peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": stream, "payload": {} })).await;
    ask(&mut peer, "ping", json!({})).await;
    let told = peer.until("pong").await;
    assert!(!told.iter().any(is_end), "all was told before the ping was heard");
    let rest = peer.until_it(is_end).await;
    assert_eq!(text(&of(&told, &job)).len() + text(&of(&rest, &job)).len(), 400 * 5000);
}

#[tokio::test]
async fn a_refusal_names_the_next_step() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": "str_x", "payload": {} })).await;
    let nack = peer.first("nack").await;
    assert!(nack["payload"]["details"]["next_step"].as_str().unwrap().contains("stream.open"), "{nack}");
}

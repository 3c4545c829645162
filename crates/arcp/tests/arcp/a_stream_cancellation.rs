//! Dialect A: streams that a client wants to be told no more of. Source: draft-arcp-01, 10.4.

use mainstay_model::PartRole;
use serde_json::{Value, json};

use crate::a::{ask, is_end, opened, resumed};
use crate::support::{AgentHome, Peer};

/// Cancels a stream, and gives what answers that in so many messages.
async fn cancel(peer: &mut Peer, message: &str, stream: &Value, answers: usize) -> Vec<Value> {
    let payload = json!({ "target": "stream", "target_id": stream });
    peer.send(json!({ "arcp": "1.0", "type": "cancel", "id": message, "payload": payload })).await;
    let mut told = Vec::new();
    while told.len() < answers {
        told.push(peer.until_it(|envelope| envelope["correlation_id"] == message).await.pop().unwrap());
    }
    told
}

/// Cancels a stream that is open.
async fn cancelled(peer: &mut Peer, message: &str, job: &Value, stream: &Value) {
    let told = cancel(peer, message, stream, 2).await;
    let kinds: Vec<_> = told.iter().map(|envelope| envelope["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["cancel.accepted", "stream.error"]);
    let error = &told[1];
    assert_eq!((&error["stream_id"], &error["job_id"]), (stream, job));
    assert_eq!(error["payload"]["code"], "CANCELLED");
}

/// Why a stream is not cancelled.
async fn refusal(peer: &mut Peer, message: &str, stream: &Value) -> (String, String) {
    let refused = cancel(peer, message, stream, 1).await.pop().unwrap();
    assert_eq!(refused["type"], "cancel.refused");
    let text = |name: &str| refused["payload"][name].as_str().unwrap().to_owned();
    (text("reason"), text("code"))
}

/// What belongs to a stream, of what was told to the job's session.
fn of_stream(told: &[Value], stream: &Value) -> Vec<Value> {
    told.iter().filter(|envelope| envelope["stream_id"] == *stream).cloned().collect()
}

/// What was told to an observer.
fn observed(told: &[Value]) -> Vec<Value> {
    told.iter().map(|envelope| envelope["payload"]["event"].clone()).collect()
}

fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter().map(|envelope| envelope["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_stream_that_is_cancelled_is_told_no_more_while_its_job_and_other_clients_go_on() {
    let mut home = AgentHome::new().await;
    let (mut watcher, _) = opened(&home.home).await;
    ask(&mut watcher, "subscribe", json!({})).await;
    watcher.first("subscribe.accepted").await;
    let (mut peer, session) = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let accepted = peer.first("job.accepted").await;
    let job = &accepted["job_id"];
    let text = peer.first("stream.open").await["stream_id"].clone();
    let thoughts = peer.first("stream.open").await["stream_id"].clone();
    home.script.work().await;
    home.script.say(PartRole::Thinking, "first").await;
    peer.first("stream.chunk").await;
    watcher.until_it(|told| told["payload"]["event"]["type"] == "stream.chunk").await;
    // Each client cancels another stream: one of its own job, one of a job that it observes.
    cancelled(&mut peer, "mine", job, &thoughts).await;
    cancelled(&mut watcher, "theirs", job, &text).await;
    let ended = ("already_terminal".to_owned(), "FAILED_PRECONDITION".to_owned());
    assert_eq!(refusal(&mut peer, "again", &thoughts).await, ended);
    // The same message has the same answer.
    cancelled(&mut peer, "mine", job, &thoughts).await;
    peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": thoughts, "payload": {} })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND", "nothing is there to slow down");
    home.script.say(PartRole::Thinking, "second").await;
    home.script.say(PartRole::Assistant, "hello").await;
    home.script.done().await;
    let told = peer.until_it(is_end).await;
    assert_eq!(told.last().unwrap()["type"], "job.completed");
    assert_eq!(of_stream(&told, &thoughts), Vec::<Value>::new());
    assert_eq!(kinds(&of_stream(&told, &text)), ["stream.chunk", "stream.close"]);
    let told = observed(&watcher.until_it(|envelope| is_end(&envelope["payload"]["event"])).await);
    assert_eq!(of_stream(&told, &text), Vec::<Value>::new());
    assert_eq!(kinds(&of_stream(&told, &thoughts)), ["stream.chunk", "stream.close"]);
    assert_eq!(refusal(&mut peer, "late", &text).await, ended, "the job has ended");
    // The session remembers it over lost connections, and under the next daemon.
    for restarts in [false, true] {
        if restarts {
            home.home.restart().await;
        }
        let mut again = resumed(&home.home, &session, accepted["id"].as_str().unwrap()).await;
        let told = again.until_it(is_end).await;
        assert_eq!(of_stream(&told, &thoughts), Vec::<Value>::new());
        assert_eq!(kinds(&of_stream(&told, &text)), ["stream.open", "stream.chunk", "stream.close"]);
        cancelled(&mut again, "mine", job, &thoughts).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_not_told_of_is_not_cancelled() {
    let home = AgentHome::new().await;
    let (mut peer, _) = opened(&home.home).await;
    let (mut other, _) = opened(&home.home).await;
    ask(&mut peer, "tool.invoke", json!({ "tool": "fsharp", "arguments": home.home.code("wait") })).await;
    let text = peer.first("stream.open").await["stream_id"].clone();
    peer.first("stream.chunk").await;
    let unknown = ("no_such_stream".to_owned(), "NOT_FOUND".to_owned());
    assert_eq!(refusal(&mut peer, "one", &json!("str_none")).await, unknown);
    let thoughts = text.as_str().unwrap().replace("_text", "_thoughts");
    assert_eq!(refusal(&mut peer, "two", &json!(thoughts)).await, unknown, "code does not think");
    assert_eq!(refusal(&mut other, "three", &text).await, unknown, "it does not observe the job");
}

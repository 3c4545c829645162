//! Dialect A: artifacts, which clients store for each other.

use mainstay_arcp::Settings;
use mainstay_model::{Base64, Limits};
use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, open, opened, opened_with, resumed};
use crate::support::{Home, Peer};

/// "hello" in base64, and its SHA-256.
const HELLO: &str = "aGVsbG8=";
const SHA256: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

async fn put(peer: &mut Peer, payload: Value) -> Value {
    ask(peer, "artifact.put", payload).await;
    peer.next().await.unwrap()
}

async fn fetch(peer: &mut Peer, artifact: &Value) -> Value {
    ask(peer, "artifact.fetch", json!({ "artifact_id": artifact })).await;
    peer.next().await.unwrap()["payload"].clone()
}

#[tokio::test]
async fn an_artifact_is_fetched_over_sessions_and_restarts_until_it_is_released() {
    let mut home = Home::new().await;
    let (mut one, session) = opened(&home).await;
    let stored = put(&mut one, json!({ "media_type": "text/plain", "data": HELLO, "sha256": SHA256 })).await;
    let reference = &stored["payload"];
    let artifact = &reference["artifact_id"];
    assert_eq!(stored["type"], "artifact.ref");
    assert_eq!((&reference["size"], &reference["sha256"]), (&json!(5), &json!(SHA256)));
    let uri = format!("arcp://session/{session}/artifact/{}", artifact.as_str().unwrap());
    assert_eq!(reference["uri"], uri);
    home.restart().await;
    let (mut other, _) = opened(&home).await;
    let fetched = fetch(&mut other, artifact).await;
    assert_eq!((&fetched["data"], &fetched["media_type"]), (&json!(HELLO), &json!("text/plain")));
    let mut hers = home.connect().await;
    hers.send(open("hers")).await;
    hers.first("session.accepted").await;
    assert_eq!(fetch(&mut hers, artifact).await["code"], "NOT_FOUND");
    ask(&mut other, "artifact.release", json!({ "artifact_id": artifact })).await;
    other.first("ack").await;
    assert_eq!(fetch(&mut other, artifact).await["code"], "NOT_FOUND");
}

#[tokio::test]
async fn what_is_no_artifact_is_refused() {
    let settings = Settings { artifact_bytes: 10, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, _) = opened(&home).await;
    let mut refused = async |payload: Value| put(&mut peer, payload).await["payload"]["code"].clone();
    assert_eq!(refused(json!({ "media_type": "text/plain" })).await, "UNIMPLEMENTED");
    assert_eq!(refused(json!({ "media_type": "", "data": HELLO })).await, "INVALID_ARGUMENT");
    assert_eq!(refused(json!({ "media_type": "a/b", "data": "no base64!" })).await, "INVALID_ARGUMENT");
    assert_eq!(refused(json!({ "media_type": "a/b", "data": HELLO, "sha256": "00" })).await, "DATA_LOSS");
    // What was refused takes no room.
    assert_eq!(refused(json!({ "media_type": "a/b", "data": HELLO })).await, Value::Null);
    assert_eq!(refused(json!({ "media_type": "a/b", "data": HELLO })).await, Value::Null);
    assert_eq!(refused(json!({ "media_type": "a/b", "data": HELLO })).await, "RESOURCE_EXHAUSTED");
}

#[tokio::test]
async fn an_artifact_is_kept_as_long_as_its_client_wants_and_no_longer_than_may_be() {
    let settings = Settings { artifact_most_days: 1, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, _) = opened(&home).await;
    let before = jiff::Timestamp::now();
    for (wish, kept) in [(10, 10), (1_000_000, 24 * 60 * 60)] {
        let payload = json!({ "media_type": "a/b", "data": HELLO, "retention_seconds": wish });
        let reference = put(&mut peer, payload).await;
        let expires: jiff::Timestamp = reference["payload"]["expires_at"].as_str().unwrap().parse().unwrap();
        let seconds = expires.duration_since(before).as_secs();
        assert!((kept..kept + 30).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn a_large_result_is_an_artifact_for_as_long_as_those_are_kept() {
    let settings = Settings { chunk_bytes: 200, ..Settings::default() };
    let mut home = Home::with(settings, Limits::default()).await;
    let (mut peer, session) = opened(&home).await;
    invoke(&mut peer, home.code("1 + 1")).await;
    let small = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!(
        (&small["payload"]["value"]["value"], &small["payload"]["result_ref"]),
        (&json!("2"), &Value::Null)
    );
    invoke(&mut peer, home.code("long 300")).await;
    let end = peer.until_it(is_end).await.pop().unwrap();
    let reference = end["payload"]["result_ref"].clone();
    assert_eq!(
        (&end["payload"]["value"], &reference["media_type"]),
        (&Value::Null, &json!("application/json"))
    );
    home.restart().await;
    let mut again = resumed(&home, &session, small["id"].as_str().unwrap()).await;
    assert_eq!(again.until_it(is_end).await.pop().unwrap(), end, "the same is told again");
    let fetched = fetch(&mut again, &reference["artifact_id"]).await;
    let content = Base64::new(fetched["data"].as_str().unwrap()).unwrap().bytes();
    let mut sent = fetched.clone();
    sent.as_object_mut().unwrap().remove("data");
    assert_eq!((&sent, &json!(content.len())), (&reference, &reference["size"]));
    let value: Value = serde_json::from_slice(&content).unwrap();
    assert!(value["value"].as_str().unwrap().contains(&"x".repeat(300)));
    ask(&mut again, "artifact.release", json!({ "artifact_id": reference["artifact_id"] })).await;
    again.first("ack").await;
    let mut hers = home.connect().await;
    hers.send(open("hers")).await;
    hers.first("session.accepted").await;
    assert_eq!(fetch(&mut hers, &reference["artifact_id"]).await["code"], "NOT_FOUND");
    home.delete_sessions().await;
    assert_eq!(fetch(&mut again, &reference["artifact_id"]).await["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_client_without_artifacts_has_a_large_result_itself_and_an_old_one_is_gone() {
    let settings = Settings { chunk_bytes: 200, artifact_days: 0, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let mut open = open("secret");
    open["payload"]["capabilities"] = json!({});
    let (mut bare, _) = opened_with(&home, open).await;
    invoke(&mut bare, home.code("long 300")).await;
    let end = bare.until_it(is_end).await.pop().unwrap();
    assert!(end["payload"]["value"]["value"].as_str().unwrap().contains(&"x".repeat(300)));
    let (mut peer, _) = opened(&home).await;
    invoke(&mut peer, home.code("long 300")).await;
    let end = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!(fetch(&mut peer, &end["payload"]["result_ref"]["artifact_id"]).await["code"], "NOT_FOUND");
}

//! Dialect A: artifacts, which clients store for each other.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::a::{ask, open, opened};
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

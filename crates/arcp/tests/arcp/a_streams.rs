//! Dialect A: what jobs show as bytes, as streams.

use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, open, opened, opened_with, resumed};
use crate::support::{Home, Peer};

/// The picture that the scripted worker shows: its bytes in base64, their hash and how many those are.
const PICTURE: &str = "iVBORw==";
const SHA256: &str = "0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543";
const SIZE: u64 = 4;

/// Opens a session of a client that reads binary streams, in these encodings.
fn open_binary(encodings: &[&str]) -> Value {
    let mut open = open("secret");
    open["payload"]["capabilities"]["binary_streams"] = json!(true);
    open["payload"]["capabilities"]["binary_encoding"] = json!(encodings);
    open
}

/// Has a job show a picture, and gives what is told of that, without signs of life.
async fn shown(peer: &mut Peer, home: &Home) -> Vec<Value> {
    invoke(peer, home.code("show \"words\"")).await;
    let told = peer.until_it(is_end).await;
    told.into_iter().filter(|envelope| envelope["type"] != "job.heartbeat").collect()
}

fn of_stream<'a>(told: &'a [Value], stream: &Value) -> Vec<&'a Value> {
    told.iter().filter(|envelope| envelope["stream_id"] == *stream).collect()
}

/// The display that has a picture, of those that were told.
fn picture(told: &[Value]) -> &Value {
    let displays = told.iter().filter(|envelope| envelope["payload"]["type"] == "arcpx.mainstay.display.v1");
    let displays: Vec<_> = displays.map(|envelope| &envelope["payload"]["data"]).collect();
    assert_eq!(displays.len(), 2, "{told:#?}");
    assert_eq!(displays[0], &json!({ "data": { "text/plain": "words", "text/html": "<b>" } }));
    displays[1]
}

#[tokio::test]
async fn a_picture_is_a_stream_that_its_display_names() {
    let home = Home::new().await;
    let (mut peer, _) = opened_with(&home, open_binary(&[])).await;
    let told = shown(&mut peer, &home).await;
    let display = picture(&told);
    assert_eq!(display["data"], json!({ "text/plain": "[image/png, 4 bytes]" }));
    let stream = &display["streams"][0]["stream_id"];
    let named = json!({ "stream_id": stream, "content_type": "image/png", "size": SIZE, "sha256": SHA256 });
    assert_eq!(display["streams"], json!([named]));
    let told: Vec<_> = of_stream(&told, stream)
        .into_iter()
        .map(|envelope| (envelope["type"].as_str().unwrap(), &envelope["payload"]))
        .collect();
    let opened = json!({ "kind": "binary", "content_type": "image/png" });
    let chunk = json!({
        "sequence": 0, "content_type": "image/png", "data": PICTURE, "size": SIZE, "sha256": SHA256,
    });
    let closed = json!({ "reason": "all of it was told", "chunks": 1 });
    assert_eq!(
        told,
        [("stream.open", &opened), ("stream.chunk", &chunk), ("stream.close", &closed)],
        "each in the stream"
    );
}

#[tokio::test]
async fn a_client_that_reads_no_binary_streams_has_the_picture_in_its_display() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let told = shown(&mut peer, &home).await;
    let data = json!({ "text/plain": "[image/png, 4 bytes]", "image/png": PICTURE });
    assert_eq!(picture(&told), &json!({ "data": data }));
    let opened: Vec<_> = told.iter().filter(|envelope| envelope["type"] == "stream.open").collect();
    assert!(opened.iter().all(|envelope| envelope["payload"]["kind"] == "text"));
}

#[tokio::test]
async fn a_binary_stream_is_told_again_over_a_restart_and_to_observers() {
    let mut home = Home::new().await;
    let (mut watcher, _) = opened_with(&home, open_binary(&[])).await;
    ask(&mut watcher, "subscribe", json!({})).await;
    watcher.first("subscribe.accepted").await;
    let (mut peer, session) = opened_with(&home, open_binary(&[])).await;
    let told = shown(&mut peer, &home).await;
    let observed = watcher.until_it(|envelope| is_end(&envelope["payload"]["event"])).await;
    let observed: Vec<_> = observed.iter().map(|envelope| envelope["payload"]["event"].clone()).collect();
    assert_eq!(observed, told);
    home.restart().await;
    let opened = told.iter().position(|envelope| envelope["payload"]["kind"] == "binary").unwrap();
    let mut again = resumed(&home, &session, told[opened]["id"].as_str().unwrap()).await;
    assert_eq!(again.until_it(is_end).await, told[opened + 1..]);
}

//! Dialect A: what jobs show as bytes, as streams.

use mainstay_arcp::Settings;
use mainstay_arcp_protocol::a::sidecar::{Owner, SidecarFrame};
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, open, opened, opened_with, resumed};
use crate::support::{Frame, Home, Peer};

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

/// A frame of bytes that belongs to a message.
fn content(message: &str, sequence: u64, is_last: bool, bytes: &[u8]) -> Vec<u8> {
    let owner = Owner::Message(message.to_owned());
    SidecarFrame { owner, sequence, is_last, bytes: bytes.to_vec() }.encode()
}

/// The frames up to the first that is an envelope of this kind, with it, without signs of life.
async fn frames_until(peer: &mut Peer, is_it: impl Fn(&Value) -> bool) -> Vec<Frame> {
    let mut all = Vec::new();
    loop {
        let frame = peer.next_frame().await.unwrap();
        let is_last = matches!(&frame, Frame::Envelope(envelope) if is_it(envelope));
        if !matches!(&frame, Frame::Envelope(envelope) if envelope["type"] == "job.heartbeat") {
            all.push(frame);
        }
        if is_last {
            return all;
        }
    }
}

fn envelopes(frames: &[Frame]) -> Vec<Value> {
    let envelope = |frame: &Frame| match frame {
        Frame::Envelope(envelope) => Some(envelope.clone()),
        Frame::Bytes(_) => None,
    };
    frames.iter().filter_map(envelope).collect()
}

#[tokio::test]
async fn bytes_follow_their_chunk_in_a_frame_where_the_client_takes_that() {
    let home = Home::new().await;
    let (mut peer, session) = opened_with(&home, open_binary(&["base64", "sidecar"])).await;
    ask(&mut peer, "subscribe", json!({})).await;
    peer.first("subscribe.accepted").await;
    invoke(&mut peer, home.code("show \"words\"")).await;
    let told = frames_until(&mut peer, |envelope| is_end(&envelope["payload"]["event"])).await;
    let at = told.iter().position(|frame| matches!(frame, Frame::Bytes(_))).unwrap();
    let [Frame::Envelope(chunk), Frame::Bytes(bytes), Frame::Envelope(observed)] = &told[at - 1..=at + 1]
    else {
        panic!("{told:#?}")
    };
    let expected = json!({ "sequence": 0, "content_type": "image/png", "size": SIZE, "sha256": SHA256 });
    assert_eq!(chunk["payload"], expected);
    let owner = Owner::Stream(chunk["stream_id"].as_str().unwrap().to_owned());
    let bytes_of = b"\x89PNG".to_vec();
    let frame = SidecarFrame { owner, sequence: 0, is_last: true, bytes: bytes_of };
    assert_eq!(SidecarFrame::decode(bytes), Ok(frame));
    assert_eq!(observed["payload"]["event"]["id"], chunk["id"]);
    assert_eq!(observed["payload"]["event"]["payload"]["data"], PICTURE, "an observer has it in base64");
    assert_eq!(told.iter().filter(|frame| matches!(frame, Frame::Bytes(_))).count(), 1);
    // A connection that takes no frames is told the same in base64.
    let own: Vec<_> = envelopes(&told);
    let accepted = own.iter().find(|envelope| envelope["type"] == "job.accepted").unwrap();
    let mut again = resumed(&home, &session, accepted["id"].as_str().unwrap()).await;
    let again = again.until_it(|envelope| envelope["id"] == chunk["id"]).await;
    assert_eq!(again.last().unwrap()["payload"]["data"], PICTURE);
}

#[tokio::test]
async fn an_artifact_is_put_and_fetched_in_frames() {
    let home = Home::new().await;
    let (mut peer, _) = opened_with(&home, open_binary(&["sidecar"])).await;
    let body: Vec<u8> = (0..600_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let id = ask(&mut peer, "artifact.put", json!({ "media_type": "a/b", "size": body.len() })).await;
    peer.send_bytes(&content(&id, 0, false, &body[..400_000])).await;
    peer.send_bytes(&content(&id, 1, true, &body[400_000..])).await;
    let stored = peer.first("artifact.ref").await;
    assert_eq!((&stored["correlation_id"], &stored["payload"]["size"]), (&json!(id), &json!(body.len())));
    let artifact = &stored["payload"]["artifact_id"];
    ask(&mut peer, "artifact.fetch", json!({ "artifact_id": artifact })).await;
    let reference = peer.next().await.unwrap();
    assert_eq!((&reference["type"], &reference["payload"]["data"]), (&json!("artifact.ref"), &Value::Null));
    let mut fetched = Vec::new();
    for sequence in 0.. {
        let Some(Frame::Bytes(frame)) = peer.next_frame().await else { panic!("no frame") };
        let frame = SidecarFrame::decode(&frame).unwrap();
        assert_eq!(frame.owner, Owner::Message(reference["id"].as_str().unwrap().to_owned()));
        assert_eq!(frame.sequence, sequence);
        fetched.extend(frame.bytes);
        if frame.is_last {
            break;
        }
    }
    assert_eq!(fetched, body);
}

#[tokio::test]
async fn frames_that_nobody_announced_are_refused_and_the_session_goes_on() {
    let home = Home::with(Settings::default(), Limits { message_bytes: 2000, ..Limits::default() }).await;
    let (mut peer, _) = opened_with(&home, open_binary(&["sidecar"])).await;
    let mut refused = async |frame: &[u8]| {
        peer.send_bytes(frame).await;
        let nack = peer.first("nack").await;
        (nack["payload"]["code"].clone(), nack["correlation_id"].clone())
    };
    assert_eq!(refused(b"bytes").await, (json!("INVALID_ARGUMENT"), Value::Null));
    assert_eq!(refused(&content("m", 0, true, b"a")).await, (json!("FAILED_PRECONDITION"), Value::Null));
    assert_eq!(refused(&vec![0; 3000]).await, (json!("INVALID_ARGUMENT"), Value::Null));
    // What is announced is checked before its content comes.
    for wrong in
        [json!({ "media_type": "x".repeat(201) }), json!({ "media_type": "a/b", "sha256": "0".repeat(65) })]
    {
        let id = ask(&mut peer, "artifact.put", wrong).await;
        let nack = peer.first("nack").await;
        assert_eq!(
            (&nack["payload"]["code"], &nack["correlation_id"]),
            (&json!("INVALID_ARGUMENT"), &json!(id))
        );
    }
    let one = ask(&mut peer, "artifact.put", json!({ "media_type": "a/b" })).await;
    let other = ask(&mut peer, "artifact.put", json!({ "media_type": "a/b", "sha256": "00" })).await;
    let mut refused = async |frame: &[u8]| {
        peer.send_bytes(frame).await;
        let nack = peer.first("nack").await;
        (nack["payload"]["code"].clone(), nack["correlation_id"].clone())
    };
    assert_eq!(refused(&content(&one, 1, true, b"a")).await, (json!("INVALID_ARGUMENT"), json!(one)));
    assert_eq!(refused(&content(&one, 0, true, b"a")).await, (json!("FAILED_PRECONDITION"), Value::Null));
    assert_eq!(refused(&content(&other, 0, true, b"a")).await, (json!("DATA_LOSS"), json!(other)));
    let large = ask(&mut peer, "artifact.put", json!({ "media_type": "a/b" })).await;
    peer.send_bytes(&content(&large, 0, false, &[0; 1500])).await;
    peer.send_bytes(&content(&large, 1, true, &[0; 1500])).await;
    let nack = peer.first("nack").await;
    assert_eq!(
        (&nack["payload"]["code"], &nack["correlation_id"]),
        (&json!("RESOURCE_EXHAUSTED"), &json!(large))
    );
    ask(&mut peer, "ping", json!({})).await;
    peer.first("pong").await;
}

#[tokio::test]
async fn artifacts_that_stopped_midway_make_room_for_others() {
    let home = Home::new().await;
    let (mut peer, _) = opened_with(&home, open_binary(&["sidecar"])).await;
    let mut announced = Vec::new();
    for _ in 0..65 {
        announced.push(ask(&mut peer, "artifact.put", json!({ "media_type": "a/b" })).await);
    }
    let nack = peer.first("nack").await;
    assert_eq!(nack["correlation_id"], announced[0], "the first is given up");
    assert!(nack["payload"]["details"]["next_step"].is_string(), "{nack}");
    peer.send_bytes(&content(&announced[64], 0, true, b"a")).await;
    assert_eq!(peer.first("artifact.ref").await["correlation_id"], announced[64]);
}

#[tokio::test]
async fn a_picture_that_is_cancelled_while_it_waits_holds_up_its_job_no_more() {
    let home = Home::new().await;
    let (mut peer, _) = opened_with(&home, open_binary(&[])).await;
    invoke(&mut peer, home.code("wait")).await;
    let before = peer.first("stream.chunk").await["job_id"].clone();
    invoke(&mut peer, home.code("show \"words\"")).await;
    let job = peer.first("job.accepted").await["job_id"].clone();
    let prefix = job.as_str().unwrap().replace("job_", "str_");
    // Which event shows the picture is known once it does.
    for event in 1..50 {
        let (stream, stop) = (format!("{prefix}_{event}_0"), json!({ "desired_rate_per_second": 0 }));
        peer.send(json!({ "arcp": "1.0", "type": "backpressure", "stream_id": stream, "payload": stop }))
            .await;
        peer.first("ack").await;
    }
    ask(&mut peer, "cancel", json!({ "target": "job", "target_id": before })).await;
    let is_picture = |envelope: &Value| envelope["payload"]["kind"] == "binary";
    let stream = peer.until_it(is_picture).await.pop().unwrap()["stream_id"].clone();
    ask(&mut peer, "cancel", json!({ "target": "stream", "target_id": stream })).await;
    let told = peer.until_it(|envelope| is_end(envelope) && envelope["job_id"] == job).await;
    let told = of_stream(&told, &stream);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(
        (&told[0]["type"], &told[0]["payload"]["code"]),
        (&json!("stream.error"), &json!("CANCELLED"))
    );
}

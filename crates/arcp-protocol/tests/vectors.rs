//! One example of every message of both dialects: each is read, and written as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use mainstay_arcp_protocol::{a, b};
use serde_json::Value;

/// Reads each example, and gives their types.
fn read_back(vectors: &str, written: impl Fn(&str) -> String) -> Vec<String> {
    let read =
        |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let mut kinds = Vec::new();
    for line in vectors.lines() {
        let example = read(line);
        assert_eq!(read(&written(line)), example);
        kinds.push(example["type"].as_str().unwrap().to_owned());
    }
    kinds
}

#[test]
fn every_message_of_dialect_a_is_read_and_written_as_it_was() {
    let kinds = read_back(include_str!("../vectors/a.jsonl"), |line| {
        let envelope = a::decode(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        envelope.encode().unwrap()
    });
    let all: Vec<_> = a::MessageType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, all);
}

#[test]
fn every_message_of_dialect_b_is_read_and_written_as_it_was() {
    let kinds = read_back(include_str!("../vectors/b.jsonl"), |line| {
        b::decode(line).unwrap_or_else(|error| panic!("{error}: {line}")).encode()
    });
    assert_eq!(kinds, b::Message::TYPES);
}

/// What is wrong with a message of dialect A that has this payload; none where nothing is.
fn refused(kind: &str, payload: &Value) -> Option<a::DecodeError> {
    let envelope = serde_json::json!({
        "arcp": "1.0", "id": "m", "type": kind, "timestamp": "2026-05-09T13:00:00Z", "payload": payload,
    });
    a::decode(&envelope.to_string()).err()
}

#[test]
fn a_job_is_scheduled_in_exactly_one_way() {
    let schedule = |when: Value| {
        let job = serde_json::json!({ "type": "tool.invoke", "payload": {} });
        refused("job.schedule", &serde_json::json!({ "job": job, "when": when }))
    };
    assert_eq!(schedule(serde_json::json!({ "after": 60 })), None);
    for wrong in [
        serde_json::json!({}),
        serde_json::json!({ "after": 60, "every": "FREQ=DAILY" }),
        serde_json::json!({ "at": "tomorrow" }),
    ] {
        assert!(matches!(schedule(wrong.clone()), Some(a::DecodeError::Payload { .. })), "{wrong}");
    }
}

#[test]
fn a_question_without_an_end_is_refused_and_an_unknown_stream_is_one_of_events() {
    let question = serde_json::json!({ "prompt": "Which?", "response_schema": true });
    assert!(matches!(refused("human.input.request", &question), Some(a::DecodeError::Payload { .. })));
    let kind: a::stream::StreamKind = serde_json::from_value(serde_json::json!("smell")).unwrap();
    assert_eq!(kind, a::stream::StreamKind::Event);
}

//! Every version of the protocol over every way in: what a client does first, code that runs, and what is refused.

use rmcp::model::ProtocolVersion;
use rmcp::service::ServiceError;
use serde_json::json;

use crate::http::Served;
use crate::support::{Agent, Home};

const VERSIONS: [ProtocolVersion; 5] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// An agent that speaks a version works, and has what it asks for refused in the same words.
pub(crate) async fn works(agent: &Agent, version: &ProtocolVersion) {
    assert_eq!(agent.service.peer_info().unwrap().protocol_version, *version);
    let tools = agent.service.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "send_code"), "{version}: {tools:?}");
    let sum = agent.send("1 + 1").await;
    assert!(!sum.is_error && sum.text.starts_with("2 : int\n"), "{version}: {sum:?}");
    // Output schemas, and what is structured by them, came with 2025-06-18.
    let is_structured = version.as_str() >= ProtocolVersion::V_2025_06_18.as_str();
    assert_eq!(sum.structured["value"] == json!("2"), is_structured, "{version}: {sum:?}");
    assert_eq!(tools.iter().any(|tool| tool.output_schema.is_some()), is_structured, "{version}");
    let refused = agent.call("get_status", json!({ "sessionId": "nobody" })).await;
    assert!(refused.is_error && refused.text.starts_with("session_not_found: "), "{version}: {refused:?}");
    let unknown = agent.try_call("no_such_tool", json!({})).await.unwrap_err();
    let ServiceError::McpError(unknown) = unknown else { panic!("{version}: {unknown}") };
    assert!(unknown.message.contains("no_such_tool"), "{version}: {unknown:?}");
}

#[tokio::test]
async fn every_version_works_over_a_stream() {
    for version in &VERSIONS {
        let home = Home::new().await;
        let (stream, _) = home.stream(Some(home.folder("work")));
        works(&Agent::of_version(version, stream).await, version).await;
    }
}

#[tokio::test]
async fn every_version_works_over_http() {
    for version in &VERSIONS {
        let served = Served::start().await;
        works(&Agent::of_version(version, served.transport("127.0.0.1", "secret")).await, version).await;
    }
}

#[tokio::test]
async fn every_version_that_begins_with_initialize_works_over_the_old_stream_of_events() {
    for version in &VERSIONS[..4] {
        let served = Served::start().await;
        let transport = crate::sse::open(&served, "secret").await.transport();
        works(&Agent::of_version(version, transport).await, version).await;
    }
}

#[tokio::test]
async fn a_version_nobody_knows_is_answered_with_one_that_is_spoken() {
    let served = Served::start().await;
    let mut stream = crate::sse::open(&served, "secret").await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } } });
    assert_eq!(stream.say(&hello.to_string()).await.status(), 202);
    let answer = stream.hear().await.unwrap();
    let spoken = answer["result"]["protocolVersion"].as_str().unwrap();
    assert!(VERSIONS.iter().any(|version| version.as_str() == spoken), "{answer}");
}

//! MCP over the loopback port, checks included.

use std::time::Duration;

use mainstay_gateway::port;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig};
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::following::{hears, subscribe};
use crate::logging::each_request_has_the_log_of_its_time;
use crate::support::{Agent, Home, Listener};

/// A daemon that serves its port.
pub(crate) struct Served {
    pub(crate) home: Home,
    pub(crate) port: u16,
}

impl Served {
    pub(crate) async fn start() -> Self {
        let (listener, port) = port::listen(0).await.unwrap();
        let home = Home::on_port(port).await;
        tokio::spawn(port::serve(listener, home.daemon.clone(), home.protocols()));
        Self { home, port }
    }

    pub(crate) fn transport(
        &self,
        host: &str,
        token: &str,
    ) -> StreamableHttpClientTransport<impl StreamableHttpClient + use<>> {
        let uri = format!("http://{host}:{}/mcp", self.port);
        let config = StreamableHttpClientTransportConfig::with_uri(uri).auth_header(token);
        StreamableHttpClientTransport::from_config(config)
    }

    pub(crate) async fn agent(&self) -> Agent {
        Agent::over(self.transport("127.0.0.1", "secret")).await
    }

    /// An agent of the principal `ada`.
    async fn agent_of_ada(&self) -> Agent {
        Agent::over(self.transport("127.0.0.1", "hers")).await
    }

    /// An agent whose address names its folder.
    async fn agent_in(&self, folder: &str) -> Agent {
        let folder: String = folder.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let uri = format!("http://127.0.0.1:{}/mcp?folder={folder}", self.port);
        let config = StreamableHttpClientTransportConfig::with_uri(uri).auth_header("secret");
        Agent::over(StreamableHttpClientTransport::from_config(config)).await
    }

    async fn newest_agent(&self) -> Agent {
        let lifecycle =
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let transport = self.transport("localhost", "secret");
        Agent { service: Listener::default().serve_with_lifecycle(transport, lifecycle).await.unwrap() }
    }
}

#[tokio::test]
async fn every_protocol_runs_code_and_hears_what_it_prints() {
    let served = Served::start().await;
    for agent in [served.agent().await, served.newest_agent().await] {
        assert_eq!(agent.send("1 + 1").await.structured["value"], json!("2"));
        let running = agent.begin("send_code", json!({ "code": "wait" })).await;
        agent.hears_progress().await;
        assert_eq!(agent.call("cancel_eval", json!({})).await.structured["ending"], json!("yielded"));
        running.await_response().await.unwrap();
        let events = agent.call("get_recent_events", json!({ "since": 0, "count": 1 })).await;
        assert_eq!(events.structured["events"][0]["by"], json!("mcp:tester"));
    }
}

#[tokio::test]
async fn each_transport_session_hears_of_what_it_follows_itself() {
    let served = Served::start().await;
    let (ann, bob) = (served.agent().await, served.agent().await);
    let session = ann.send("1 + 1").await.session();
    let transcript = format!("mainstay://session/{session}/transcript");
    let status = format!("mainstay://session/{session}");
    subscribe(&ann, &transcript).await.unwrap();
    subscribe(&bob, &status).await.unwrap();
    ann.send("let x = 3").await;
    let (ann, bob) = (hears(&ann, &[(&transcript, 1)]).await, hears(&bob, &[(&status, 1)]).await);
    assert!(!ann.contains_key(&status) && !bob.contains_key(&transcript), "{ann:?} {bob:?}");
}

#[tokio::test]
async fn what_follows_for_a_transport_session_ends_with_it() {
    let served = Served::start().await;
    let agent = served.agent().await;
    let session = agent.send("1 + 1").await.session();
    subscribe(&agent, &format!("mainstay://session/{session}/transcript")).await.unwrap();
    agent.service.list_all_tools().await.unwrap();
    agent.service.list_all_resources().await.unwrap();
    let local = served.home.local();
    let follow = || {
        let clients = local.clients().into_iter().filter(|client| client.name.starts_with("mcp:"));
        clients
            .map(|client| (client.follows.len(), client.follows_all))
            .fold((0, false), |all, one| (all.0 + one.0, all.1 || one.1))
    };
    assert_eq!(follow(), (1, true));
    agent.service.cancel().await.unwrap();
    let ended = async {
        while follow() != (0, false) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), ended).await.unwrap();
}

#[tokio::test]
async fn the_newest_protocol_listens_over_http() {
    let served = Served::start().await;
    let agent = served.newest_agent().await;
    let session = agent.send("1 + 1").await.session();
    let transcript = format!("mainstay://session/{session}/transcript");
    let filter = SubscriptionFilter::builder().resource_subscription(&transcript).build();
    let mut listening = agent.service.listen(filter).await.unwrap();
    agent.send("let x = 3").await;
    let heard = timeout(Duration::from_secs(10), listening.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(heard, ServerNotification::ResourceUpdatedNotification(_)), "{heard:?}");
}

#[tokio::test]
async fn the_newest_protocol_logs_over_http() {
    let served = Served::start().await;
    let agent = served.newest_agent().await;
    each_request_has_the_log_of_its_time(&served.home, &agent).await;
}

#[tokio::test]
async fn a_cancelled_request_stops_its_code() {
    let served = Served::start().await;
    for agent in [served.agent().await, served.newest_agent().await] {
        agent.send("1 + 1").await;
        let running = agent.begin("send_code", json!({ "code": "wait" })).await;
        served.home.reaches("Evaluating").await;
        running.cancel(None).await.unwrap();
        served.home.reaches("Ready").await;
    }
}

#[tokio::test]
async fn without_a_connection_the_most_recently_active_session_is_taken() {
    let served = Served::start().await;
    let (ann, bob) = (served.newest_agent().await, served.newest_agent().await);
    let work = |name: &str| json!({ "name": name, "workingDirectory": served.home.folder(name) });
    let first = ann.call("create_session", work("first")).await.session();
    let second = bob.call("create_session", work("second")).await.session();
    assert_eq!(ann.send("1 + 1").await.session(), second);
    let at_first = ann.call("send_code", json!({ "code": "1 + 1", "sessionId": first })).await;
    assert_eq!(at_first.session(), first);
    assert_eq!(bob.send("1 + 1").await.session(), first);
}

#[tokio::test]
async fn a_transport_session_stays_with_the_session_it_switched_to() {
    let served = Served::start().await;
    let (ann, bob) = (served.agent().await, served.agent().await);
    let first = ann.call("create_session", json!({ "name": "first" })).await.session();
    let second = bob.call("create_session", json!({ "name": "second" })).await.session();
    assert_eq!(ann.send("1 + 1").await.session(), first);
    let switched = ann.call("switch_session", json!({ "sessionId": "second" })).await;
    assert_eq!((switched.session(), switched.structured.get("nextStep")), (second.clone(), None));
    bob.call("switch_session", json!({ "sessionId": "first" })).await;
    assert_eq!(ann.send("1 + 1").await.session(), second);
    assert_eq!(bob.call("get_status", json!({})).await.session(), first);
}

#[tokio::test]
async fn who_has_no_transport_session_is_told_to_send_the_handle() {
    let served = Served::start().await;
    let agent = served.newest_agent().await;
    let first = agent.call("create_session", json!({ "name": "first" })).await.session();
    let second = agent.call("create_session", json!({ "name": "second" })).await.session();
    let switched = agent.call("switch_session", json!({ "sessionId": "first" })).await;
    let next_step = format!("Send sessionId {first} with each call: nothing is remembered between them.");
    assert_eq!(switched.structured["nextStep"], json!(next_step));
    assert_eq!(agent.send("1 + 1").await.session(), second);
}

#[tokio::test]
async fn an_address_that_names_a_folder_leads_to_the_sessions_of_that_folder() {
    let served = Served::start().await;
    let ann = served.agent().await;
    let (first, second) = (served.home.folder("the first é"), served.home.folder("second"));
    let work = |folder: &str| json!({ "workingDirectory": folder });
    let in_first = ann.call("create_session", work(&first)).await.session();
    let in_second = ann.call("create_session", work(&second)).await.session();
    assert_eq!(ann.send("1 + 1").await.session(), in_second);
    assert_eq!(served.agent_in(&first).await.send("1 + 1").await.session(), in_first);

    // Where the folder has none, one is created there.
    let third = served.home.folder("third");
    let created = served.agent_in(&third).await.send("1 + 1").await.session();
    let listed = ann.call("list_sessions", json!({ "all": true })).await.structured["sessions"].clone();
    let line =
        listed.as_array().unwrap().iter().find(|line| line["sessionId"] == json!(created)).unwrap().clone();
    assert_eq!(line["workingDirectory"], json!(third));
}

#[tokio::test]
async fn each_token_has_sessions_of_its_own() {
    let served = Served::start().await;
    let (ann, ada) = (served.agent().await, served.agent_of_ada().await);
    let anns = ann.send("1 + 1").await.session();
    let adas = ada.send("1 + 1").await.session();
    assert_ne!(anns, adas);
    let listed = ada.call("list_sessions", json!({})).await.structured["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let refused = ada.call("send_code", json!({ "code": "1 + 1", "sessionId": anns })).await;
    assert_eq!(refused.structured["code"], json!("session_not_found"));
    assert!(!ann.call("send_code", json!({ "code": "1 + 1", "sessionId": adas })).await.is_error);
}

#[tokio::test]
async fn without_the_token_nothing_is_said() {
    let served = Served::start().await;
    let refused = Listener::default().serve(served.transport("127.0.0.1", "guess")).await;
    assert!(refused.is_err());
}

/// The library checks hosts too; what our own check lets in must pass it.
#[tokio::test]
async fn each_own_name_is_let_in_and_no_other() {
    let served = Served::start().await;
    let port = served.port;
    for (host, origin, status) in [
        (format!("127.0.0.1:{port}"), None, 200),
        (format!("localhost:{port}"), Some(format!("http://localhost:{port}")), 200),
        (format!("[::1]:{port}"), Some(format!("http://[::1]:{port}")), 200),
        (format!("evil.example:{port}"), None, 403),
        (format!("localhost:{port}"), Some("http://evil.example".to_owned()), 403),
    ] {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let answer = post(port, &format!("Host: {host}\r\n{origin}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host} {origin}: {answer}");
    }
}

#[tokio::test]
async fn the_scheme_is_bearer_in_any_case_and_no_other() {
    let served = Served::start().await;
    let host = format!("Host: 127.0.0.1:{}\r\n", served.port);
    for (authorization, status) in [
        ("Bearer secret", 200),
        ("bearer secret", 200),
        ("BEARER  secret", 200),
        ("Basic secret", 401),
        ("secret", 401),
    ] {
        let answer = post_as(authorization, served.port, &host).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{authorization}: {answer}");
    }
}

/// Python's SDK takes 200 and 204 alone for the end, and all SDKs begin anew where a session is not known (404).
#[tokio::test]
async fn a_transport_session_that_is_ended_is_known_no_more() {
    let served = Served::start().await;
    let port = served.port;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let opened = post(port, &host).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let with = |id: &str| format!("{host}Mcp-Session-Id: {id}\r\n");
    let newest = format!("{}MCP-Protocol-Version: 2026-07-28\r\n", with(&id));
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    for (method, headers, body, status) in [
        ("DELETE", host.clone(), None, 400),
        ("DELETE", with("nobody"), None, 404),
        // That version has no sessions of the transport.
        ("DELETE", newest, None, 405),
        ("POST", with(&id), Some(&ping), 200),
        ("DELETE", with(&id), None, 204),
        ("DELETE", with(&id), None, 404),
        ("POST", with(&id), Some(&ping), 404),
        ("GET", with(&id), None, 404),
    ] {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = request(method, "Bearer secret", port, &headers, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {headers}: {answer}");
    }
}

/// Runs code that waits, as the request 2 of a transport session. Gives the headers of that session, and what comes of the request.
async fn code_that_waits(served: &Served) -> (String, tokio::task::JoinHandle<String>) {
    let port = served.port;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let opened = post(port, &host).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("{host}Mcp-Session-Id: {id}\r\n");
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "send_code", "arguments": { "code": "wait" } } });
    let of_call = headers.clone();
    let running =
        tokio::spawn(
            async move { request("POST", "Bearer secret", port, &of_call, &call.to_string()).await },
        );
    served.home.reaches("Evaluating").await;
    (headers, running)
}

#[tokio::test]
async fn code_that_was_cancelled_stops_also_where_its_client_goes_at_once() {
    let served = Served::start().await;
    served.home.agent().await.send("1 + 1").await;
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    for _ in 0..10 {
        let (headers, running) = code_that_waits(&served).await;
        // Both in one write, so that nothing comes between them.
        let both = [("POST", cancelled.to_string(), "keep-alive"), ("DELETE", String::new(), "close")]
            .map(|(method, body, then)| written(method, "Bearer secret", &headers, &body, then));
        let said = exchanged(served.port, &both.concat()).await;
        assert!(said.starts_with("HTTP/1.1 202 ") && said.contains("HTTP/1.1 204 "), "{said}");
        served.home.reaches("Ready").await;
        running.await.unwrap();
    }
}

#[tokio::test]
async fn code_of_a_transport_session_that_is_ended_goes_on() {
    let served = Served::start().await;
    let bob = served.home.agent().await;
    bob.send("1 + 1").await;
    let port = served.port;
    let (headers, running) = code_that_waits(&served).await;
    let ended = request("DELETE", "Bearer secret", port, &headers, "").await;
    assert!(ended.starts_with("HTTP/1.1 204 "), "{ended}");
    // It would end within this time were it cancelled.
    let status = bob.call("get_status", json!({ "wait": 3 })).await;
    assert_eq!(status.structured["state"], json!("Evaluating"), "{status:?}");
    assert_eq!(bob.call("cancel_eval", json!({})).await.structured["ending"], json!("yielded"));
    running.await.unwrap();
}

/// What comes back for an `initialize` with these headers.
async fn post(port: u16, headers: &str) -> String {
    post_as("Bearer secret", port, headers).await
}

async fn post_as(authorization: &str, port: u16, headers: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
    .to_string();
    request("POST", authorization, port, headers, &body).await
}

async fn request(method: &str, authorization: &str, port: u16, headers: &str, body: &str) -> String {
    exchanged(port, &written(method, authorization, headers, body, "close")).await
}

/// A request as it is sent. `then` is what becomes of its connection.
fn written(method: &str, authorization: &str, headers: &str, body: &str, then: &str) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\n{headers}Authorization: {authorization}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: {then}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What comes back over a connection for what is sent.
async fn exchanged(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

//! What adding a protocol takes: a toy enters itself in the registry, and serves sessions end to end. It holds the list "Add a protocol" of
//! docs/contributing.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod asked_issuers;
mod oauth;
mod remote;
mod toy;

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use mainstay_engine::Engine;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::Tokens;
use mainstay_gateway::{Daemon, local_socket, port};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::{Access, Limits, Principal, Rights, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixStream};
use tokio_util::codec::{Framed, LinesCodec};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::toy::Toy;
use mainstay_test_support::scripted_kernel::Scripted;
use mainstay_test_support::signed_token::signed_token;
use mainstay_test_support::test_issuer::signing_for;

/// A daemon whose only protocol is the toy.
struct Home {
    daemon: Daemon,
    protocols: Protocols,
    folder: TempDir,
}

impl Home {
    async fn on_port(port: u16) -> Self {
        Self::with(port, Limits::default()).await
    }

    async fn with(port: u16, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let limits = Limits { drain_ms: 100, ..limits };
        let daemon = Daemon {
            engine: Engine::open(Arc::new(log), vec![Arc::new(Scripted)], limits).await.unwrap(),
            tokens: Arc::new(Tokens::new("secret", []).with_issuers(signing_for(ada()))),
            links: Arc::default(),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port,
            remote: None,
            own_ports: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver: Default::default(),
            kinds: Default::default(),
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        let protocols = Protocols::from(Toy { folder: folder.path().into() });
        Self { daemon, protocols, folder }
    }

    /// A connection of the local socket whose first line is this.
    async fn connect(&self, first: &Value) -> Framed<UnixStream, LinesCodec> {
        let socket = self.folder.path().join("socket");
        let listener = local_socket::listen(&socket).unwrap();
        tokio::spawn(local_socket::serve(listener, self.daemon.clone(), self.protocols.clone()));
        let mut lines = Framed::new(UnixStream::connect(&socket).await.unwrap(), LinesCodec::new());
        lines.send(first.to_string()).await.unwrap();
        lines
    }
}

/// Somebody with few rights.
fn ada() -> Access {
    let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
    Access { principal: Principal::new("ada").unwrap(), rights }
}

/// A token for this subject, good for so many seconds.
fn token_for(subject: &str, seconds: i64) -> String {
    signed_token(subject, &[], Timestamp::now().as_second() + seconds)
}

/// A listener, and its port.
async fn listening() -> (TcpListener, u16) {
    port::listen(0).await.unwrap()
}

/// What `POST` of code leads to.
async fn post(address: &str, token: Option<&str>, code: &'static str) -> (StatusCode, String) {
    let request = reqwest::Client::new().post(address).body(code);
    let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_connection_of_the_local_socket_is_a_session_of_the_protocol_that_its_first_line_names() {
    let home = Home::on_port(0).await;
    let attach = json!({ "id": 1, "method": "toy/attach", "params": { "token": "secret" } });
    let mut lines = home.connect(&attach).await;
    let attached: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(attached["result"]["principal"], json!("local"), "{attached}");
    for (code, answer) in [("1 + 1", "2"), ("let x = 3", "completed"), ("failwith \"no\"", "raised")] {
        lines.send(code).await.unwrap();
        assert_eq!(lines.next().await.unwrap().unwrap(), answer, "{code}");
    }
    home.daemon.stop.cancel();
    home.daemon.shut_down().await;
    assert!(lines.next().await.is_none(), "the connection ends with the daemon");
}

#[tokio::test]
async fn a_connection_that_shows_no_token_or_names_no_protocol_is_refused() {
    for attach in [
        json!({ "id": 1, "method": "toy/attach", "params": { "token": "wrong" } }),
        json!({ "id": 1, "method": "another/attach", "params": { "token": "secret" } }),
    ] {
        let home = Home::on_port(0).await;
        let mut lines = home.connect(&attach).await;
        let refused: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(refused["error"]["data"]["code"], json!("unauthorized"), "{attach} {refused}");
        assert!(lines.next().await.is_none());
    }
}

#[tokio::test]
async fn its_paths_stand_on_the_daemon_s_port_behind_the_token() {
    let (listener, port) = listening().await;
    let home = Home::on_port(port).await;
    tokio::spawn(port::serve(listener, home.daemon.clone(), home.protocols.clone()));
    let address = format!("http://127.0.0.1:{port}/toy");
    assert_eq!(post(&address, Some("secret"), "1 + 1").await, (StatusCode::OK, "2".to_owned()));
    assert_eq!(post(&address, Some("wrong"), "1 + 1").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(post(&address, None, "1 + 1").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn it_is_served_alone_on_a_port_of_its_own() {
    let (listener, own_port) = listening().await;
    let home = Home::on_port(0).await;
    let (daemon, protocols) = (home.daemon.clone(), home.protocols.clone());
    tokio::spawn(port::serve_alone(listener, own_port, daemon, protocols, "toy"));
    let address = format!("http://127.0.0.1:{own_port}/");
    assert_eq!(post(&address, Some("secret"), "1 + 1").await, (StatusCode::OK, "2".to_owned()));
    assert_eq!(post(&address, None, "1 + 1").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_that_an_issuer_has_signed_lets_its_principal_in_by_every_way() {
    let (listener, port) = listening().await;
    let home = Home::on_port(port).await;
    tokio::spawn(port::serve(listener, home.daemon.clone(), home.protocols.clone()));
    let address = format!("http://127.0.0.1:{port}/toy");
    let good = token_for("ada", 600);
    assert_eq!(post(&address, Some(&good), "1 + 1").await, (StatusCode::OK, "2".to_owned()));
    let mut refused = Vec::new();
    for wrong in [token_for("ada", -1), token_for("bob", 600), good[..good.len() - 2].to_owned()] {
        refused.push(post(&address, Some(&wrong), "1 + 1").await);
        let attach = json!({ "id": 1, "method": "toy/attach", "params": { "token": wrong } });
        let said = home.connect(&attach).await.next().await.unwrap().unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["error"]["data"]["code"], json!("unauthorized"));
    }
    assert!(refused.iter().all(|answer| answer.0 == StatusCode::UNAUTHORIZED && *answer == refused[0]));
    let attach = json!({ "id": 1, "method": "toy/attach", "params": { "token": good } });
    let said = home.connect(&attach).await.next().await.unwrap().unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["result"]["principal"], json!("ada"));
}

#[tokio::test]
async fn a_connection_of_the_local_socket_ends_with_its_credentials() {
    let home = Home::on_port(0).await;
    let token = token_for("ada", 4);
    let attach = json!({ "id": 1, "method": "toy/attach", "params": { "token": token } });
    let mut lines = home.connect(&attach).await;
    let attached: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(attached["result"]["principal"], json!("ada"));
    assert!(lines.next().await.is_none());
}

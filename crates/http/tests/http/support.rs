//! A daemon that serves its port, and clients that speak HTTP to it.

use std::sync::Arc;
use std::time::Duration;

use mainstay_engine::Engine;
use mainstay_gateway::Daemon;
use mainstay_gateway::issuers::Issuers;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_gateway::{Kinds, port};
use mainstay_http::Http;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::{Access, Limits, Principal, Rights, Timestamp};
use mainstay_runner::RunnerFactory;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};
use mainstay_test_support::scripted_kernel::Scripted;
use mainstay_test_support::test_issuer::signing_for;

/// A test that waits so long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An issuer that vouches for Ada, who may do everything where she comes by it.
fn issuers() -> Issuers {
    signing_for(Access { principal: Principal::new("ada").unwrap(), rights: Rights::All })
}

/// A daemon in a home folder of its own.
pub(crate) struct Home {
    pub(crate) daemon: Daemon,
    pub(crate) port: u16,
    /// Ends with the daemon's last connection.
    pub(crate) served: JoinHandle<()>,
    client: reqwest::Client,
    folder: TempDir,
}

impl Home {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::open(limits, Vec::new()).await
    }

    /// With agents, and the test's side of them.
    pub(crate) async fn with_agents() -> (Self, Script) {
        let (agents, script) = ScriptedAgents::new();
        (Self::open(Limits::default(), vec![Arc::new(agents)]).await, script)
    }

    /// With these kinds of sessions known.
    pub(crate) async fn with_kinds(kinds: Kinds) -> Self {
        Self::of(Limits::default(), Vec::new(), kinds).await
    }

    async fn open(limits: Limits, agents: Vec<Arc<dyn RunnerFactory>>) -> Self {
        Self::of(limits, agents, Kinds::default()).await
    }

    async fn of(limits: Limits, agents: Vec<Arc<dyn RunnerFactory>>, kinds: Kinds) -> Self {
        let (listener, port) = port::listen(0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let limits = Limits { cancel_grace_ms: 1_000, drain_ms: 100, ..limits };
        let factories = std::iter::once(Arc::new(Scripted) as Arc<dyn RunnerFactory>).chain(agents).collect();
        let engine = Engine::open(Arc::new(log), factories, limits.clone()).await.unwrap();
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        let ada = Access { principal: Principal::new("ada").unwrap(), rights };
        let daemon = Daemon {
            engine,
            tokens: Arc::new(Tokens::new("secret", [(TokenHash::of("hers"), ada)]).with_issuers(issuers())),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port,
            remote: None,
            own_ports: Arc::default(),
            links: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver: Default::default(),
            kinds,
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        let served = tokio::spawn(port::serve(listener, daemon.clone(), Protocols::from(Http::new(&limits))));
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { daemon, port, served, client, folder }
    }

    /// The folder in which sessions work.
    pub(crate) fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("http://127.0.0.1:{}{path}", self.port)).timeout(PATIENCE)
    }

    pub(crate) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.request(Method::GET, path).bearer_auth("secret")
    }

    /// A command, whose outcome is waited for.
    pub(crate) fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.post_async(path, body).header("Prefer", "wait=20")
    }

    /// A command, of which is heard elsewhere.
    pub(crate) fn post_async(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let body = body.to_string();
        self.request(Method::POST, path)
            .bearer_auth("secret")
            .header("Content-Type", "application/json")
            .body(body)
    }

    /// A session that is ready: its id.
    pub(crate) async fn session(&self, name: &str) -> String {
        self.session_in(&self.folder(), name).await
    }

    /// The same of a session of a folder: a name is taken once in each.
    pub(crate) async fn session_in(&self, folder: &str, name: &str) -> String {
        let create = json!({ "workingDirectory": folder, "name": name });
        let (status, session) = answer(self.post("/sessions", &create)).await;
        assert_eq!((status, &session["state"]), (StatusCode::CREATED, &json!("Ready")), "{session}");
        session["session"].as_str().unwrap().to_owned()
    }

    /// Opens a plain TCP connection to the daemon.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// The head of a request over a bare connection, to be followed by other headers and an empty line.
    pub(crate) fn head(&self, line: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer secret\r\n", self.port)
    }

    /// A stream, from its beginning on.
    pub(crate) async fn stream(&self, path: &str) -> Stream {
        Stream::of(self.get(path)).await
    }
}

/// What a request is answered.
pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A stream of signals, and what they come to.
pub(crate) struct Stream {
    response: Response,
    read: String,
    /// The id of the last event.
    pub(crate) id: Option<String>,
}

impl Stream {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, read: String::new(), id: None }
    }

    /// The next signals; none once the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: signals ")) else {
                    assert!(event.starts_with(':'), "{event}");
                    continue;
                };
                assert!(event.contains("event: datastar-patch-signals"), "{event}");
                if let Some(id) = event.lines().find_map(|line| line.strip_prefix("id: ")) {
                    self.id = Some(id.to_owned());
                }
                return Some(serde_json::from_str(data).unwrap());
            }
            let piece = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("nothing comes");
            self.read.push_str(std::str::from_utf8(&piece.unwrap()?).unwrap());
        }
    }

    /// The signals up to some, with them.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let signals = self.next().await.expect("the stream has ended");
            let is_last = is_it(&signals);
            all.push(signals);
            if is_last {
                return all;
            }
        }
    }
}

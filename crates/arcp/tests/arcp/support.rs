//! A daemon that serves ARCP, and clients of it that send and read envelopes as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_arcp::{Arcp, Settings};
use mainstay_engine::Engine;
use mainstay_gateway::authorities::Authorities;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tls::{ClientAuthority, Tls};
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_gateway::{Daemon, Kinds, port};
use mainstay_log::SessionFilter;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::command::Cancel;
use mainstay_model::{
    Access, Command, CreateSession, Limits, Principal, ProjectChoice, Rights, SessionCommand, SessionKind,
    Timestamp,
};
use mainstay_runner::RunnerFactory;
use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};
use mainstay_test_support::scripted_kernel::Scripted;
use mainstay_test_support::signed_token::signed_token;
use mainstay_test_support::test_issuer::signing_for;
use mainstay_test_support::tls::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A test that waits so long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon over a store that outlives it, with what a test tells its agents.
pub(crate) struct AgentHome {
    pub(crate) home: Home,
    pub(crate) script: Script,
}

impl AgentHome {
    pub(crate) async fn new() -> Self {
        Self::with_limits(Limits::default()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        let (agents, script) = ScriptedAgents::new();
        let factories = vec![Arc::new(Scripted) as Arc<dyn RunnerFactory>, Arc::new(agents)];
        let home = Home::with_factories(Settings::default(), limits, factories).await;
        let client = home.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        let create = CreateSession {
            kind: SessionKind::pi(),
            working_directory: home.folder(),
            project: ProjectChoice::default(),
            arguments: Vec::new(),
            name: None,
            alias: None,
        };
        client.create(mainstay_gateway::command::anonymous(), create).await.unwrap();
        Self { home, script }
    }
}

/// A daemon over a store that outlives it.
pub(crate) struct Home {
    /// None only while one daemon takes the place of another.
    daemon: Option<Daemon>,
    settings: Settings,
    limits: Limits,
    served: JoinHandle<()>,
    folder: TempDir,
    /// What starts its runners.
    factories: Vec<Arc<dyn RunnerFactory>>,
}

impl Home {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default(), Limits::default()).await
    }

    pub(crate) async fn with(settings: Settings, limits: Limits) -> Self {
        Self::with_factories(settings, limits, vec![Arc::new(Scripted)]).await
    }

    async fn with_factories(
        settings: Settings,
        limits: Limits,
        factories: Vec<Arc<dyn RunnerFactory>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { cancel_grace_ms: 1_000, drain_ms: 100, ..limits };
        let (daemon, served) = serve(&folder, settings, &limits, factories.clone()).await;
        Self { daemon: Some(daemon), settings, limits, served, folder, factories }
    }

    /// Stops the daemon, and serves the same store with another.
    pub(crate) async fn restart(&mut self) {
        let daemon = self.daemon.take().unwrap();
        daemon.stop.cancel();
        daemon.shut_down().await;
        (&mut self.served).await.unwrap();
        drop(daemon);
        let (daemon, served) = serve(&self.folder, self.settings, &self.limits, self.factories.clone()).await;
        (self.daemon, self.served) = (Some(daemon), served);
    }

    /// Deletes all sessions of the engine.
    pub(crate) async fn delete_sessions(&self) {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        for session in client.sessions(SessionFilter::default()).await.unwrap() {
            let id = mainstay_gateway::command::anonymous();
            let delete = Command::new(id, client.source(), SessionCommand::Delete);
            client.submit(session.id, delete).await.unwrap();
        }
    }

    /// Stops what runs in all sessions of the engine.
    pub(crate) async fn cancel_jobs(&self) {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        for session in client.sessions(SessionFilter::default()).await.unwrap() {
            let cancel = SessionCommand::Cancel(Cancel { target: None, grace_ms: None });
            let command = Command::new(mainstay_gateway::command::anonymous(), client.source(), cancel);
            client.submit(session.id, command).await.unwrap();
        }
    }

    /// How many sessions the engine has.
    pub(crate) async fn sessions(&self) -> usize {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        client.sessions(SessionFilter::default()).await.unwrap().len()
    }

    /// The folders of the engine's sessions.
    pub(crate) async fn folders(&self) -> Vec<String> {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        let sessions = client.sessions(SessionFilter::default()).await.unwrap();
        let mut folders: Vec<_> = sessions.into_iter().map(|session| session.working_directory).collect();
        folders.sort();
        folders
    }

    /// The id of the one session of the engine.
    pub(crate) async fn only_session(&self) -> String {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        let sessions = client.sessions(SessionFilter::default()).await.unwrap();
        assert_eq!(sessions.len(), 1);
        sessions[0].id.to_string()
    }

    /// What is stored of a session.
    pub(crate) async fn stored(&self, session: &str) -> Value {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        client.stored_connection(session).await.unwrap().unwrap().state
    }

    /// Changes what is stored of a session.
    pub(crate) async fn change_stored(&self, session: &str, change: impl FnOnce(&mut Value)) {
        let client = self.daemon.as_ref().unwrap().engine.attach(Access::local(), "test");
        let mut stored = client.stored_connection(session).await.unwrap().unwrap();
        change(&mut stored.state);
        client.store_connection(stored).await.unwrap();
    }

    /// The folder in which sessions work.
    pub(crate) fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// The input of a job that runs this code in this home's folder, or in a folder within.
    pub(crate) fn code(&self, code: &str) -> Value {
        json!({ "code": code, "working_directory": self.folder() })
    }

    /// The same in a session of another folder.
    pub(crate) fn code_in(&self, folder: &str, code: &str) -> Value {
        let folder = self.folder.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        json!({ "code": code, "working_directory": folder })
    }

    /// Opens a connection, with these headers.
    pub(crate) async fn request(&self, headers: &[(&'static str, &str)]) -> Result<Peer, u16> {
        let mut request = format!("ws://127.0.0.1:{}/arcp", self.daemon.as_ref().unwrap().port)
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Peer { socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    /// Serves other machines too, with a certificate of this authority, which signs those of clients. It is Ada who is called `ada`.
    pub(crate) async fn serve_remote(&self, authority: &Authority) -> u16 {
        self.serve_revocable(authority).await.0
    }

    /// The same, and what TLS is served with.
    pub(crate) async fn serve_revocable(&self, authority: &Authority) -> (u16, Tls) {
        let certificate = authority.machine(&["localhost"]);
        let clients = ClientAuthority {
            pem: authority.pem.clone().into_bytes(),
            revocation_lists: None,
            is_required: false,
        };
        let tls = Tls::new(certificate.pem.as_bytes(), certificate.key.as_bytes(), Some(&clients)).unwrap();
        let (listener, address) = port::listen_remote("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let reached = Authorities::remote(tls.names(), address.port());
        let mut daemon = self.daemon.clone().unwrap();
        let named = [("cn:ada".parse().unwrap(), daemon.tokens.access_of("hers").unwrap())];
        daemon.tokens = Arc::new(Tokens::clone(&daemon.tokens).with_certificates(named));
        let (protocols, served) = (Protocols::from(Arcp::new(self.settings)), tls.clone());
        tokio::spawn(async move { port::serve_remote(listener, served, reached, &daemon, protocols).await });
        (address.port(), tls)
    }

    /// Serves clients that show nothing, too: they see everything.
    pub(crate) async fn connect_to_open_house(&self) -> Peer {
        let (listener, port) = port::listen(0).await.unwrap();
        let rights = Rights::ReadOnly { see: vec!["*".parse().unwrap()] };
        let guest = Access { principal: Principal::new("guest").unwrap(), rights };
        let mut daemon = Daemon { port, ..self.daemon.clone().unwrap() };
        daemon.tokens = Arc::new(Tokens::clone(&daemon.tokens).with_anonymous(Some(guest)));
        tokio::spawn(port::serve(listener, daemon, Protocols::from(Arcp::new(self.settings))));
        Peer::of(connect_async(format!("ws://127.0.0.1:{port}/arcp")).await.unwrap().0)
    }

    pub(crate) async fn connect(&self) -> Peer {
        self.request(&[]).await.unwrap()
    }
}

async fn serve(
    folder: &TempDir,
    settings: Settings,
    limits: &Limits,
    factories: Vec<Arc<dyn RunnerFactory>>,
) -> (Daemon, JoinHandle<()>) {
    let (listener, port) = port::listen(0).await.unwrap();
    // What a daemon before it has begun holds the store until it is through.
    let log = loop {
        match SqliteLog::open(folder.path(), &SqliteOptions::default()) {
            Ok(log) => break log,
            Err(mainstay_model::Error::StoreLocked) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let engine = Engine::open(Arc::new(log), factories, limits.clone()).await.unwrap();
    engine.start_schedules();
    let ada = Access {
        principal: Principal::new("ada").unwrap(),
        rights: Rights::Some { see: Vec::new(), drive: Vec::new() },
    };
    let everything = || vec!["*".parse().unwrap()];
    let bob = Access {
        principal: Principal::new("bob").unwrap(),
        rights: Rights::Some { see: everything(), drive: everything() },
    };
    let daemon = Daemon {
        engine,
        tokens: Arc::new(
            Tokens::new("secret", [(TokenHash::of("hers"), ada.clone()), (TokenHash::of("his"), bob)])
                .with_issuers(signing_for(ada)),
        ),
        version: "0.0.0",
        fingerprint: "sha256:0".into(),
        port,
        remote: None,
        own_ports: Arc::default(),
        links: Arc::default(),
        started_at: Timestamp::now(),
        kind_resolver: Default::default(),
        kinds: Kinds::default(),
        home: folder.path().into(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        answering: TaskTracker::new(),
        begins_anew: Arc::default(),
    };
    let protocols = Protocols::from(Arcp::new(settings));
    let served = tokio::spawn(port::serve(listener, daemon.clone(), protocols));
    (daemon, served)
}

/// A token for this subject, good for so many seconds.
pub(crate) fn token_for(subject: &str, seconds: i64) -> String {
    signed_token(subject, &[], Timestamp::now().as_second() + seconds)
}

/// A client's end of a connection.
pub(crate) struct Peer<S = MaybeTlsStream<TcpStream>> {
    socket: WebSocketStream<S>,
}

/// What a client is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    Envelope(Value),
    Bytes(Vec<u8>),
}

/// No refusal of dialect A leaves its client without a next step, whatever test provokes it.
fn check_refusal(envelope: &Value) {
    let is_refusal = matches!(envelope["type"].as_str(), Some("nack" | "cancel.refused"));
    let step = envelope["payload"]["details"]["next_step"].as_str().unwrap_or_default();
    let is_sentence = step.ends_with('.') && step.starts_with(|first: char| !first.is_lowercase());
    assert!(!is_refusal || is_sentence, "{envelope}");
}

/// The number of the last message that was sent in this test.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn of(socket: WebSocketStream<S>) -> Self {
        Self { socket }
    }

    /// Sends an envelope, whose id it gives where it has none.
    pub(crate) async fn send(&mut self, mut envelope: Value) -> String {
        let number = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let fields = envelope.as_object_mut().unwrap();
        fields.entry("arcp").or_insert(json!("1.1"));
        // Dialect A wants one.
        fields.entry("timestamp").or_insert(json!("2026-05-09T13:00:00Z"));
        let id = fields.entry("id").or_insert(json!(format!("m{number}")));
        let id = id.as_str().unwrap_or_default().to_owned();
        self.send_text(&envelope.to_string()).await;
        id
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }

    /// The next envelope; none where the connection is closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.next_frame().await? {
                Frame::Envelope(envelope) => return Some(envelope),
                Frame::Bytes(_) => {}
            }
        }
    }

    /// The next envelope or frame of bytes; none where the connection is closed.
    pub(crate) async fn next_frame(&mut self) -> Option<Frame> {
        let next = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let envelope = serde_json::from_str(&text).unwrap();
                        check_refusal(&envelope);
                        return Some(Frame::Envelope(envelope));
                    }
                    Some(Ok(Message::Binary(bytes))) => return Some(Frame::Bytes(bytes.to_vec())),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                    Some(Ok(_)) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("nothing comes")
    }

    /// The envelopes up to the first of this type, with it.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        self.until_it(|envelope| envelope["type"] == kind).await
    }

    pub(crate) async fn until_it(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let envelope = self.next().await.unwrap_or_else(|| panic!("closed after {all:#?}"));
            let is_last = is_it(&envelope);
            all.push(envelope);
            if is_last {
                return all;
            }
        }
    }

    /// The first envelope of this type.
    pub(crate) async fn first(&mut self, kind: &str) -> Value {
        self.until(kind).await.pop().unwrap()
    }
}

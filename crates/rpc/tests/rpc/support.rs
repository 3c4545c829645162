//! A daemon behind a socket, with agents that a test tells what to say.

use std::path::PathBuf;
use std::sync::Arc;

use mainstay_client::Client;
use mainstay_engine::{Engine, KindResolver};
use mainstay_gateway::Daemon;
use mainstay_gateway::local_socket::{listen, serve};
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::Tokens;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::{Event, Limits, SessionKind, Timestamp};
use mainstay_protocol::operations::CreateSession;
use mainstay_rpc::Rpc;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};

pub(crate) struct Home {
    socket: PathBuf,
    /// The session of an agent that every test has.
    pub(crate) talk: String,
    pub(crate) client: Arc<Client>,
    pub(crate) daemon: Daemon,
    pub(crate) events: UnboundedReceiver<Event>,
    _folder: TempDir,
}

impl Home {
    pub(crate) async fn new() -> (Self, Script) {
        Self::with_kinds(KindResolver::default()).await
    }

    /// One whose daemon has these rules of kinds.
    pub(crate) async fn with_kinds(kind_resolver: KindResolver) -> (Self, Script) {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let (agents, script) = ScriptedAgents::new();
        let limits = Limits { drain_ms: 100, ..Limits::default() };
        let engine = Engine::open(Arc::new(log), vec![Arc::new(agents)], limits).await.unwrap();
        let daemon = Daemon {
            engine,
            tokens: Arc::new(Tokens::new("secret", [])),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port: 0,
            remote: None,
            own_ports: Arc::default(),
            links: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver,
            kinds: Default::default(),
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        let socket = folder.path().join("socket");
        tokio::spawn(serve(listen(&socket).unwrap(), daemon.clone(), Protocols::from(Rpc)));
        let (client, events) = Client::connect(&socket, "secret".to_owned(), "test").await.unwrap();
        let new = CreateSession {
            command: None,
            kind: SessionKind::pi(),
            working_directory: folder.path().display().to_string(),
            project: None,
            no_project: false,
            fsi_args: None,
            name: None,
        };
        let talk = client.call(new).await.unwrap().session.to_string();
        (Self { socket, talk, client: Arc::new(client), daemon, events, _folder: folder }, script)
    }

    /// Opens another connection to the same daemon.
    pub(crate) async fn other(&self) -> Client {
        Client::connect(&self.socket, "secret".to_owned(), "other").await.unwrap().0
    }
}

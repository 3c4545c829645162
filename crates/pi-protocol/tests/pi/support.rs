//! A daemon over a store of its own, and clients that speak the protocol to it.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_engine::Engine;
use mainstay_gateway::Daemon;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::{Access, Limits, Principal, Rights, Timestamp};
use mainstay_pi_protocol::{PiDaemon, PiProtocol, Shared, serve_stream};
use mainstay_runner::RunnerFactory;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use mainstay_test_support::scripted_agent::{Script, ScriptedAgents};

/// A test that waits so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon in a home folder of its own.
pub(crate) struct Home {
    pub(crate) daemon: Daemon,
    /// What the connections of the protocol share.
    pi: Arc<Shared>,
    agents: Arc<dyn RunnerFactory>,
    limits: Limits,
    folder: TempDir,
}

/// Limits under which nothing takes long.
pub(crate) fn quick() -> Limits {
    Limits { agent_cancel_grace_ms: 600_000, drain_ms: 10, restart_first_ms: 1, ..Limits::default() }
}

impl Home {
    pub(crate) async fn new() -> (Self, Script) {
        Self::with(quick()).await
    }

    pub(crate) async fn with(limits: Limits) -> (Self, Script) {
        let (agents, script) = ScriptedAgents::new();
        (Self::of(Arc::new(agents), limits).await, script)
    }

    /// With agents that need no script.
    pub(crate) async fn of(agents: Arc<dyn RunnerFactory>, limits: Limits) -> Self {
        Self::open(agents, limits, tempfile::tempdir().unwrap(), 0).await
    }

    async fn open(agents: Arc<dyn RunnerFactory>, limits: Limits, folder: TempDir, port: u16) -> Self {
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let factories = vec![Arc::clone(&agents)];
        let engine = Engine::open(Arc::new(log), factories, limits.clone()).await.unwrap();
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        let ada = Access { principal: Principal::new("ada").unwrap(), rights };
        let daemon = Daemon {
            engine,
            tokens: Arc::new(Tokens::new("secret", [(TokenHash::of("hers"), ada)])),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port,
            remote: None,
            own_ports: Arc::default(),
            links: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver: Default::default(),
            kinds: Default::default(),
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        Self { daemon, pi: Arc::default(), agents, limits, folder }
    }

    /// Listens on a port of this machine.
    pub(crate) async fn on_port(port: u16, limits: Limits) -> (Self, Script) {
        let (agents, script) = ScriptedAgents::new();
        (Self::open(Arc::new(agents), limits, tempfile::tempdir().unwrap(), port).await, script)
    }

    /// Stops everything in order, and opens another daemon over the same store.
    pub(crate) async fn restart(self) -> Self {
        let Self { daemon, agents, limits, folder, .. } = self;
        daemon.stop.cancel();
        daemon.shut_down().await;
        drop(daemon);
        let mut tries = 0;
        // Whoever still holds the store lets it go at once.
        while SqliteLog::open(folder.path(), &SqliteOptions::default()).is_err() {
            tries += 1;
            assert!(tries < 1_000_000, "the store is still held");
            tokio::task::yield_now().await;
        }
        Self::open(agents, limits, folder, 0).await
    }

    /// A daemon over what this one's store was at this moment, as after its loss.
    pub(crate) async fn lost(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
            }
        }
        Self::open(Arc::clone(&self.agents), self.limits.clone(), folder, 0).await
    }

    /// A daemon that serves the pi protocol alone.
    pub(crate) fn protocols(&self) -> Protocols {
        Protocols::from(PiProtocol::sharing(Arc::clone(&self.pi)))
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_of(Access::local()).await
    }

    /// One that sees her own sessions alone.
    pub(crate) async fn ada(&self) -> Client {
        self.client_of(self.daemon.tokens.access_of("hers").unwrap()).await
    }

    async fn client_of(&self, access: Access) -> Client {
        let (ours, theirs) = duplex(1 << 20);
        let (read, write) = split(theirs);
        let folder = Some(self.folder.path().display().to_string());
        tokio::spawn(serve_stream(
            read,
            write,
            PiDaemon::new(self.daemon.clone(), Arc::clone(&self.pi)),
            access,
            mainstay_gateway::local_socket::ClientContext { working_directory: folder, ..Default::default() },
        ));
        let (read, write) = split(ours);
        let mut client = Client {
            frames: FramedRead::new(read, LinesCodec::new()),
            lines: FramedWrite::new(write, LinesCodec::new()),
        };
        let greetings = [client.frame().await, client.frame().await];
        let kinds = greetings.each_ref().map(|frame| frame["type"].as_str().unwrap().to_owned());
        assert_eq!(kinds, ["server_ready", "startup_recovery_summary"]);
        let recovery = &greetings[1]["data"];
        assert_eq!(recovery["journalPath"], "[redacted]");
        let ids = ["recoveredOutcomeIds", "recoveredInFlight"].map(|list| recovery[list].clone());
        assert_eq!(ids, [json!([]), json!([])], "only who asks is told");
        client
    }
}

/// A client of the protocol.
pub(crate) struct Client {
    frames: FramedRead<ReadHalf<DuplexStream>, LinesCodec>,
    lines: FramedWrite<WriteHalf<DuplexStream>, LinesCodec>,
}

impl Client {
    pub(crate) async fn line(&mut self, line: &str) {
        self.lines.send(line).await.unwrap();
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.line(&frame.to_string()).await;
    }

    /// Receives the next frame from the daemon.
    pub(crate) async fn frame(&mut self) -> Value {
        let frame = tokio::time::timeout(PATIENCE, self.frames.next()).await.expect("no frame comes");
        serde_json::from_str(&frame.expect("the connection ended").unwrap()).unwrap()
    }

    /// The frames up to the answer to a command, with it.
    pub(crate) async fn until_answer(&mut self, id: &str) -> Vec<Value> {
        self.until(|frame| frame["type"] == "response" && frame["id"] == id).await
    }

    /// The frames up to one, with it.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.frame().await;
            let is_last = is_it(&frame);
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }

    /// What a command is answered.
    pub(crate) async fn ask(&mut self, frame: Value) -> Value {
        let id = frame["id"].as_str().unwrap().to_owned();
        self.send(frame).await;
        self.until_answer(&id).await.pop().unwrap()
    }

    /// Creates a session, and hears its events.
    pub(crate) async fn session(&mut self, name: &str) {
        let created = self
            .ask(json!({ "id": format!("create-{name}"), "type": "create_session", "sessionId": name }))
            .await;
        assert_eq!(created["success"], true, "{created}");
        let heard = self
            .ask(json!({ "id": format!("hear-{name}"), "type": "switch_session", "sessionId": name }))
            .await;
        assert_eq!(heard["success"], true, "{heard}");
    }
}

/// Frames a line each, without what differs from run to run.
pub(crate) fn shown(frames: &[Value]) -> String {
    frames.iter().map(|frame| plain(frame).to_string()).collect::<Vec<_>>().join("\n")
}

/// A frame without what differs from run to run.
pub(crate) fn plain(frame: &Value) -> Value {
    match frame {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let is_time = matches!(name.as_str(), "createdAt" | "timestamp" | "recordedAt");
                (name.clone(), if is_time { "<time>".into() } else { plain(value) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => "<id>".into(),
        Value::String(text) if text.starts_with("anon:") => "anon:<id>".into(),
        Value::String(text) if text.starts_with("/tmp") || text.contains("/.tmp") => "<path>".into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => frame.clone(),
    }
}

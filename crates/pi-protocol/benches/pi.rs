//! The pi protocol over WebSocket, with a real store: what a command takes one after the other, and what a piece of a message takes from
//! its agent to a client.
//!
//! `cargo bench -p mainstay-gateway --bench pi`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use mainstay_engine::Engine;
use mainstay_gateway::Daemon;
use mainstay_gateway::port;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::tokens::Tokens;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_model::{
    AgentNotice, AskId, Capabilities, Delta, Error, JobId, JobSpec, Limits, PartRole, QueuedPrompt,
    RunnerInfo, RunnerNotice, Seq, SessionKind, Timestamp, WorkEnding, YieldReason,
};
use mainstay_pi_protocol::PiProtocol;
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec,
    StartObserver, StartedRunner,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Commands of each kind, one after the other.
const COMMANDS: usize = 1000;
/// Pieces of the message that is said.
const PIECES: usize = 2000;

/// Agents that say when each piece was said.
struct Clocks(Instant);

struct Clock {
    began: Instant,
    say: mpsc::Sender<RunnerNotice>,
}

#[async_trait]
impl RunnerFactory for Clocks {
    fn serves(&self, kind: &SessionKind) -> bool {
        kind.is_agent()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let (say, notices) = mpsc::channel(64);
        Ok(StartedRunner::new(Runner::Agent(Arc::new(Clock { began: self.0, say })), notices))
    }
}

#[async_trait]
impl Process for Clock {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "clock".to_owned(),
            runtime: "bench".to_owned(),
            language: None,
            pid: Some(1),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, _: AskAnswer) {}

    async fn interrupt(&self) {}

    fn kill(&self) {}

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Agent for Clock {
    async fn work(&self, job: JobId, work: JobSpec, _: bool) {
        let (began, say) = (self.began, self.say.clone());
        let JobSpec::Turn { prompt } = work else { return };
        let pause = Duration::from_micros(prompt.text.parse().unwrap());
        tokio::spawn(async move {
            let mut offset = 0;
            for _ in 0..PIECES {
                let text = format!("{} ", began.elapsed().as_nanos());
                let length = text.len() as u64;
                let delta =
                    Delta { job, message: 0, part: 0, role: PartRole::Assistant, offset, text, tool: None };
                offset += length;
                say.send(RunnerNotice::Agent(AgentNotice::Said(delta))).await.ok();
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
            say.send(RunnerNotice::Agent(AgentNotice::Ended { job, ending })).await.ok();
        });
    }

    async fn steer(&self, _: QueuedPrompt, _: Seq) {}

    async fn pause(&self, _: JobId, _: AskId) {}

    async fn tell(&self, _: AgentQuestion) -> Result<Value, Error> {
        Ok(Value::Null)
    }
}

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn frame(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Sends a command, and waits for its answer.
    async fn ask(&mut self, frame: Value) -> Duration {
        let began = Instant::now();
        self.send(frame).await;
        loop {
            let frame = self.frame().await;
            if frame["type"] == "response" {
                assert_eq!(frame["success"], true, "{frame}");
                return began.elapsed();
            }
        }
    }
}

fn tell(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!("{what:<44} median {:>8.3} ms   p99 {:>8.3} ms", at(0.5), at(0.99));
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
    let began = Instant::now();
    let limits = Limits { live_sessions: 100, ..Limits::default() };
    let engine = Engine::open(Arc::new(log), vec![Arc::new(Clocks(began))], limits).await.unwrap();
    let (listener, port) = port::listen(0).await.unwrap();
    let daemon = Daemon {
        engine,
        tokens: Arc::new(Tokens::new("secret", [])),
        version: "0.0.0",
        fingerprint: "sha256:0".into(),
        port,
        started_at: Timestamp::now(),
        kind_resolver: Default::default(),
        kinds: Default::default(),
        home: folder.path().into(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        remote: None,
        own_ports: Arc::default(),
        links: Arc::default(),
        answering: TaskTracker::new(),
        begins_anew: Arc::default(),
    };
    tokio::spawn(port::serve(listener, daemon, Protocols::from(PiProtocol::default())));
    let connecting = Instant::now();
    let (socket, _) = connect_async(format!("ws://127.0.0.1:{port}/pi?token=secret")).await.unwrap();
    let mut client = Client(socket);
    assert_eq!(client.frame().await["type"], "server_ready");
    tell("connect to server_ready", vec![connecting.elapsed()]);
    for number in 0..50 {
        client.ask(json!({ "type": "create_session", "sessionId": format!("s{number}") })).await;
    }
    let sequence = async |client: &mut Client, frame: &dyn Fn(usize) -> Value| {
        let mut took = Vec::with_capacity(COMMANDS);
        for number in 0..COMMANDS {
            took.push(client.ask(frame(number)).await);
        }
        took
    };
    let state = |number: usize| json!({ "type": "get_state", "sessionId": format!("s{}", number % 50) });
    tell("get_state", sequence(&mut client, &state).await);
    tell("list_sessions (50)", sequence(&mut client, &|_| json!({ "type": "list_sessions" })).await);
    let rename = |number: usize| json!({ "type": "set_session_name", "sessionId": "s1", "name": format!("n{number}") });
    tell("set_session_name (durable)", sequence(&mut client, &rename).await);
    tell("create_session (durable)", sequence(&mut client, &|_| json!({ "type": "create_session" })).await);
    client.ask(json!({ "type": "switch_session", "sessionId": "s0" })).await;
    for (what, pause) in [("a piece, 2000 as fast as they go", "0"), ("a piece, one each 10 ms", "10000")] {
        let prompted = Instant::now();
        client.send(json!({ "type": "prompt", "sessionId": "s0", "message": pause })).await;
        let mut late = Vec::with_capacity(PIECES);
        loop {
            let frame = client.frame().await;
            if let Some(delta) = frame["event"]["assistantMessageEvent"]["delta"].as_str() {
                let now = began.elapsed();
                for said in delta.split_whitespace() {
                    late.push(now.saturating_sub(Duration::from_nanos(said.parse().unwrap())));
                }
            }
            if frame["type"] == "response" {
                break;
            }
        }
        let rate = late.len() as f64 / prompted.elapsed().as_secs_f64();
        println!("{what}: {} heard, {rate:.0} a second", late.len());
        tell(what, late);
    }
}

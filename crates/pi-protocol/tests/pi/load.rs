//! Many sessions, many clients, and some that mean no good: limits hold, and others are unharmed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::{
    AgentNotice, AskId, Capabilities, Delta, Error, JobId, JobSpec, Limits, Message, Part, PartRole,
    QueuedPrompt, RunnerInfo, RunnerNotice, Seq, SessionKind, WorkEnding, YieldReason,
};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec,
    StartObserver, StartedRunner,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::support::{Client, Home, quick};

const SESSIONS: usize = 50;
const TURNS: usize = 20;
const CONNECTIONS: usize = 1000;
/// Pieces of each answer.
const PIECES: usize = 100;

/// Agents that answer each prompt in many pieces, all at once when they are let.
struct Talkers(Arc<Semaphore>);

struct Talker {
    gate: Arc<Semaphore>,
    say: mpsc::Sender<RunnerNotice>,
}

#[async_trait]
impl RunnerFactory for Talkers {
    fn serves(&self, kind: &SessionKind) -> bool {
        kind.is_agent()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let (say, notices) = mpsc::channel(64);
        let talker = Talker { gate: Arc::clone(&self.0), say };
        Ok(StartedRunner::new(Runner::Agent(Arc::new(talker)), notices))
    }
}

#[async_trait]
impl Process for Talker {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "talker".to_owned(),
            runtime: "test".to_owned(),
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
impl Agent for Talker {
    async fn work(&self, job: JobId, _: JobSpec, _: bool) {
        let (gate, say) = (Arc::clone(&self.gate), self.say.clone());
        tokio::spawn(async move {
            let _go = gate.acquire().await.unwrap();
            let mut said = String::new();
            for number in 0..PIECES {
                let text = format!("{number} ");
                let offset = said.len() as u64;
                said.push_str(&text);
                let delta =
                    Delta { job, message: 0, part: 0, role: PartRole::Assistant, offset, text, tool: None };
                say.send(RunnerNotice::Agent(AgentNotice::Said(delta))).await.ok();
            }
            let message =
                Message { parts: vec![Part::text(PartRole::Assistant, said)], ..Message::default() };
            say.send(RunnerNotice::Agent(AgentNotice::Message(message))).await.ok();
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

/// All that was said in a session, put together from its pieces.
fn heard(frames: &[Value], session: &str) -> String {
    let of_session = frames.iter().filter(|frame| frame["sessionId"] == session);
    of_session.filter_map(|frame| frame["event"]["assistantMessageEvent"]["delta"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_turns_of_many_sessions_are_heard_whole_whoever_else_is_connected() {
    let gate = Arc::new(Semaphore::new(0));
    let limits =
        Limits { live_sessions: SESSIONS, connections: CONNECTIONS + 10, message_bytes: 10_000, ..quick() };
    let home = Home::of(Arc::new(Talkers(Arc::clone(&gate))), limits).await;
    let mut client = home.client().await;
    let names: Vec<String> = (0..SESSIONS).map(|number| format!("s{number}")).collect();
    for name in &names {
        client.session(name).await;
    }
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS {
        silent.push(home.client().await);
    }
    let [mut garbage, mut large, mut flood] = [home.client().await, home.client().await, home.client().await];
    for name in &names[..TURNS] {
        client
            .send(json!({ "id": format!("p-{name}"), "type": "prompt", "sessionId": name, "message": "go" }))
            .await;
    }
    // Nobody reads what these are answered.
    let hostile = tokio::spawn(async move {
        for _ in 0..200 {
            garbage.line("{\"type\": \u{1}").await;
            flood.send(json!({ "type": "list_sessions" })).await;
        }
        large.line(&"x".repeat(1_000_000)).await;
        (garbage, large, flood)
    });
    gate.add_permits(TURNS);
    let mut left = TURNS;
    let mut frames = Vec::new();
    while left > 0 {
        let frame = client.frame().await;
        if frame["type"] == "response" {
            assert_eq!(frame["success"], true, "{frame}");
            left -= 1;
        }
        frames.push(frame);
    }
    let mut ends = frames.iter().filter(|frame| frame["event"]["type"] == "agent_end").count();
    while ends < TURNS {
        let frame = client.frame().await;
        ends += usize::from(frame["event"]["type"] == "agent_end");
        frames.push(frame);
    }
    let whole: String = (0..PIECES).map(|number| format!("{number} ")).collect();
    for name in &names[..TURNS] {
        assert_eq!(heard(&frames, name), whole, "{name}");
    }
    let (mut garbage, mut large, _flood) =
        tokio::time::timeout(Duration::from_secs(20), hostile).await.unwrap().unwrap();
    assert!(is_refused(&mut garbage, "Invalid JSON").await);
    assert!(is_refused(&mut large, "Message size").await);
    drop(silent);
}

/// Whether it is told so, among what others are told.
async fn is_refused(client: &mut Client, error: &str) -> bool {
    let refused = client.until(|frame| frame["type"] == "response").await.pop().unwrap();
    refused["error"].as_str().is_some_and(|said| said.starts_with(error))
}

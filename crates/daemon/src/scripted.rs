//! Agents of the kind `agent` that do what a prompt says, a line each, for tests of what people see of agents. Only with the feature
//! `failpoints`: never in a daemon that serves anybody.
//!
//! `say TEXT` (`\n` is a line end), `think TEXT`, `tool NAME ARGUMENT => RESULT`, `ask QUESTION`, `wait` (until it is steered), `fail TEXT`.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_kernel::fsharp::{Sdk, WorkerProgram};
use mainstay_model::agent::{AgentNotice, Model, Note, ToolCall};
use mainstay_model::event::CancelEnding;
use mainstay_model::grant::AskedOperation;
use mainstay_model::permission::Permission;
use mainstay_model::{
    AgentState, AskId, Capabilities, Delivery, Delta, Error, JobId, JobSpec, Limits, Message, Part, PartRole,
    Question, QueuedPrompt, RunnerInfo, RunnerNotice, Seq, SessionKind, Setting, TokenUsage, WorkEnding,
    WorkerExit, YieldReason,
};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec,
    StartObserver, StartedRunner,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The worker that takes the place of F#'s where `MAINSTAY_TEST_WORKER` names one: it starts without a compiler.
pub(crate) fn worker(sdk: &Sdk) -> Option<WorkerProgram> {
    let program = std::env::var_os("MAINSTAY_TEST_WORKER")?.into();
    Some(WorkerProgram { program, arguments: Vec::new(), environment: Vec::new(), sdk: sdk.version.clone() })
}

/// Starts agents that follow a script, for tests.
pub(crate) struct ScriptedAgents;

#[async_trait]
impl RunnerFactory for ScriptedAgents {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::agent()
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::AGENT
    }

    fn cancel_grace_ms(&self, _kind: &SessionKind, limits: &Limits) -> u64 {
        limits.agent_cancel_grace_ms
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let (says, notices) = mpsc::channel(64);
        let (given, gets) = mpsc::unbounded_channel();
        let state = spec.conversation.and_then(|conversation| conversation.state);
        let state =
            state.unwrap_or_else(|| AgentState { model: Some(model("big")), ..AgentState::default() });
        let life = ScriptedAgent {
            says: says.clone(),
            gets,
            state,
            job: JobId::from_uuid(uuid::Uuid::nil()),
            is_bounded: false,
            added: 0,
        };
        let task = tokio::spawn(life.live()).abort_handle();
        Ok(StartedRunner::new(Runner::Agent(Arc::new(Scripted { given, says, task })), notices))
    }
}

fn model(id: &str) -> Model {
    Model {
        provider: "scripted".to_owned(),
        id: id.to_owned(),
        name: None,
        context_window: Some(1000),
        about: Value::Null,
    }
}

enum AgentOrder {
    /// The flag says whether a grant bounds the job.
    Work(JobId, JobSpec, bool),
    Steered(QueuedPrompt),
    Paused,
    Answered(Result<Value, Error>),
    Interrupted,
}

struct Scripted {
    given: mpsc::UnboundedSender<AgentOrder>,
    says: mpsc::Sender<RunnerNotice>,
    task: AbortHandle,
}

impl Scripted {
    fn give(&self, given: AgentOrder) {
        self.given.send(given).ok();
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl Process for Scripted {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "scripted agent".to_owned(),
            runtime: "test".to_owned(),
            language: None,
            pid: Some(std::process::id()),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, answer: AskAnswer) {
        self.give(AgentOrder::Answered(answer.answer));
    }

    async fn interrupt(&self) {
        self.give(AgentOrder::Interrupted);
    }

    fn kill(&self) {
        self.task.abort();
        self.says.try_send(RunnerNotice::Exited { exit: WorkerExit::Signal(9), last_words: None }).ok();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Agent for Scripted {
    async fn work(&self, job: JobId, work: JobSpec, is_bounded: bool) {
        self.give(AgentOrder::Work(job, work, is_bounded));
    }

    async fn steer(&self, queued: QueuedPrompt, _: Seq) {
        self.give(AgentOrder::Steered(queued));
    }

    async fn pause(&self, _: JobId, _: AskId) {
        self.give(AgentOrder::Paused);
    }

    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error> {
        match question {
            AgentQuestion::Models => Ok(json!({ "models": [
                { "provider": "scripted", "id": "big", "name": "Big" },
                { "provider": "scripted", "id": "small", "name": "Small" },
            ] })),
            AgentQuestion::Commands | AgentQuestion::State | AgentQuestion::Statistics => Ok(Value::Null),
        }
    }
}

/// The state of a scripted agent.
struct ScriptedAgent {
    says: mpsc::Sender<RunnerNotice>,
    gets: mpsc::UnboundedReceiver<AgentOrder>,
    state: AgentState,
    job: JobId,
    /// Whether a grant bounds it.
    is_bounded: bool,
    /// How many messages the job has added.
    added: u32,
}

impl ScriptedAgent {
    async fn live(mut self) {
        self.tell(AgentNotice::State(self.state.clone())).await;
        while let Some(given) = self.gets.recv().await {
            if let AgentOrder::Work(job, work, is_bounded) = given {
                (self.job, self.is_bounded, self.added) = (job, is_bounded, 0);
                let ending = self.work(work).await;
                self.tell(AgentNotice::Ended { job, ending }).await;
            }
        }
    }

    async fn work(&mut self, work: JobSpec) -> WorkEnding {
        match work {
            JobSpec::Turn { prompt } => {
                self.add(vec![Part::text(PartRole::User, prompt.text.clone())]).await;
                for line in prompt.text.lines() {
                    if let Some(ending) = self.step(line.trim()).await {
                        return ending;
                    }
                }
                done(Value::Null)
            }
            JobSpec::Compaction { .. } => {
                let summary = "It was short.".to_owned();
                self.tell(AgentNotice::Compacted { summary, kept: 0, metadata: Default::default() }).await;
                done(Value::Null)
            }
            JobSpec::Shell { line, is_private } => {
                let output = format!("{line} ran{}\n", if is_private { " in private" } else { "" });
                done(json!({ "output": output, "exitCode": 0 }))
            }
            JobSpec::Setting(Setting::Model { id, .. }) if id == "none" => {
                WorkEnding::failed("Model not found: scripted/none")
            }
            JobSpec::Setting(setting) => {
                self.set(setting);
                self.tell(AgentNotice::State(self.state.clone())).await;
                done(Value::Null)
            }
            JobSpec::Build | JobSpec::Rebuild | JobSpec::Comm(_) => {
                WorkEnding::failed("it is none of an agent's")
            }
        }
    }

    fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Model { id, .. } => self.state.model = Some(model(&id)),
            Setting::Thinking { level } => self.state.thinking = level,
            Setting::AutoCompaction { enabled } => self.state.auto_compaction = enabled,
            Setting::NextModel { .. } | Setting::NextThinking | Setting::AutoRetry { .. } => {}
        }
    }

    /// One line of a prompt; an ending where it is the last.
    async fn step(&mut self, line: &str) -> Option<WorkEnding> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "say" => self.speak(PartRole::Assistant, &rest.replace("\\n", "\n")).await,
            "think" => self.speak(PartRole::Thinking, rest).await,
            "tool" => self.call(rest).await,
            "ask" => {
                let question = Question::text(rest);
                let asks = RunnerNotice::Asks { job: self.job, ask: new_ask(), question, timeout_ms: None };
                self.says.send(asks).await.ok();
                let Some(answer) = self.answered().await else { return Some(cancelled()) };
                let value = answer.unwrap_or_default();
                self.speak(PartRole::Assistant, &format!("you said {value}")).await;
            }
            "do" => {
                let granted = match self.may_do(rest).await {
                    Ok(granted) => granted,
                    Err(ending) => return Some(ending),
                };
                let said = match granted {
                    Ok(_) => format!("{rest} is done"),
                    Err(error) => format!("{rest} is not done: {error}"),
                };
                self.speak(PartRole::Assistant, &said).await;
            }
            "wait" => loop {
                match self.gets.recv().await {
                    Some(AgentOrder::Steered(queued)) => {
                        let text = queued.prompt.text;
                        self.tell(AgentNotice::Queue(Vec::new())).await;
                        self.add(vec![Part::text(PartRole::User, text.clone())]).await;
                        let when = match queued.hears {
                            Delivery::Steer => "now",
                            Delivery::FollowUp => "at the end",
                        };
                        break self.speak(PartRole::Assistant, &format!("I hear {when}: {text}")).await;
                    }
                    Some(AgentOrder::Interrupted) | None => return Some(cancelled()),
                    Some(AgentOrder::Paused) => {
                        let Some(answer) = self.answered().await else { return Some(cancelled()) };
                        let value = answer.unwrap_or_default();
                        break self.speak(PartRole::Assistant, &format!("I pause, and hear {value}")).await;
                    }
                    Some(AgentOrder::Answered(_) | AgentOrder::Work(..)) => {}
                }
            },
            "fail" => return Some(WorkEnding::failed(rest)),
            _ => self.speak(PartRole::Assistant, &format!("I do not know how to {line}")).await,
        }
        None
    }

    /// The answer to what it asked; none where it is to stop.
    async fn answered(&mut self) -> Option<Result<Value, Error>> {
        loop {
            match self.gets.recv().await {
                Some(AgentOrder::Answered(answer)) => return Some(answer),
                Some(AgentOrder::Interrupted) | None => return None,
                Some(AgentOrder::Steered(_) | AgentOrder::Paused | AgentOrder::Work(..)) => {}
            }
        }
    }

    /// Whether an operation is granted, which is written as its kind and its target; an ending where it is to stop.
    async fn may_do(&mut self, operation: &str) -> Result<Result<Value, Error>, WorkEnding> {
        let (kind, target) = operation.split_once(' ').unwrap_or((operation, ""));
        if !self.is_bounded {
            return Ok(Ok(Value::Null));
        }
        let kind = kind.parse().map_err(|error: Error| WorkEnding::failed(error.to_string()))?;
        let operation = AskedOperation { kind, target: target.to_owned(), is_recursive: false };
        self.says.send(RunnerNotice::Checks { job: self.job, check: new_ask(), operation }).await.ok();
        match self.answered().await.ok_or_else(cancelled)? {
            Ok(value) if Permission::of(&value) == Some(Permission::No) => Ok(Err(Error::Cancelled)),
            answer => Ok(answer),
        }
    }

    /// Says something in pieces, and then whole.
    async fn speak(&mut self, role: PartRole, text: &str) {
        let half = text.floor_char_boundary(text.len() / 2);
        for (offset, piece) in [(0, &text[..half]), (half, &text[half..])] {
            let (job, message, text) = (self.job, self.added, piece.to_owned());
            let offset = offset as u64;
            self.tell(AgentNotice::Said(Delta { job, message, part: 0, role, offset, text, tool: None }))
                .await;
        }
        self.add(vec![Part::text(role, text)]).await;
    }

    async fn call(&mut self, line: &str) {
        let (call, result) = line.split_once(" => ").unwrap_or((line, ""));
        let (tool, argument) = call.split_once(' ').unwrap_or((call, ""));
        let (id, arguments) = (format!("call-{}", self.added), json!({ "argument": argument }));
        self.add(vec![Part::tool_call(&id, tool, &arguments)]).await;
        let call = ToolCall { call: id.clone(), tool: tool.to_owned() };
        self.tell(AgentNotice::Noted(Note::ToolStarted { call: call.clone(), arguments })).await;
        self.tell(AgentNotice::Noted(Note::ToolEnded { call, is_error: false })).await;
        self.add(vec![Part::tool_result(&id, result)]).await;
    }

    async fn add(&mut self, parts: Vec<Part>) {
        self.added += 1;
        let is_model = parts.iter().any(|part| part.role == PartRole::Assistant);
        let usage = is_model.then_some(TokenUsage { input: 10, output: 5, ..TokenUsage::default() });
        self.tell(AgentNotice::Message(Message { parts, usage, ..Message::default() })).await;
    }

    async fn tell(&self, notice: AgentNotice) {
        self.says.send(RunnerNotice::Agent(notice)).await.ok();
    }
}

fn done(value: Value) -> WorkEnding {
    WorkEnding::Done { reason: YieldReason::EndTurn, value }
}

fn new_ask() -> AskId {
    AskId::from_uuid(uuid::Uuid::now_v7())
}

fn cancelled() -> WorkEnding {
    WorkEnding::Cancelled { by: CancelEnding::Yielded }
}

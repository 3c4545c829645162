//! An agent that does what a test tells it: the test hears what it is given, and says what it says.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mainstay_model::grant::AskedOperation;
use mainstay_model::{
    AgentNotice, AskId, Capabilities, Delta, Error, JobId, JobSpec, Limits, Message, NoticeNumber, Part,
    PartRole, Question, QueuedPrompt, RunnerInfo, RunnerNotice, Seq, SessionKind, WorkEnding, WorkerExit,
    YieldReason,
};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Conversation, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec,
    StartObserver, StartedRunner,
};
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, mpsc, watch};

/// What an agent is given.
#[derive(Debug)]
pub enum Given {
    /// It was started, with this conversation.
    Started(Conversation),
    /// A job for the agent.
    Work(JobId, JobSpec),
    /// Something to hear while it works.
    Steered(QueuedPrompt),
    /// It is to pause until this is answered.
    Paused(JobId, AskId),
    /// An answer to what it asked.
    Answered(AskId, Result<Value, Error>),
    /// It is to stop.
    Interrupted,
    /// The agent's process was killed.
    Killed,
}

/// A kind of session of which nothing but what its factory declares says that it has a conversation.
pub const DECLARED: &str = "declared";

/// Agents of the kind `pi`, told by a test.
#[derive(Clone)]
pub struct ScriptedAgents {
    given: mpsc::UnboundedSender<Given>,
    /// How those that were started say something, in order.
    notices: Arc<Mutex<Vec<mpsc::Sender<RunnerNotice>>>>,
    started: Arc<AtomicU32>,
    /// What the next start says before it hangs; none where it does not.
    hangs: Arc<Mutex<Option<String>>>,
    /// Held by a test for as long as no start may go on.
    starts: Arc<RwLock<()>>,
    /// The newest notice of the agent that was started last that was acknowledged.
    acknowledged: watch::Sender<NoticeNumber>,
}

/// The test's side of them.
pub struct Script {
    given: mpsc::UnboundedReceiver<Given>,
    notices: Arc<Mutex<Vec<mpsc::Sender<RunnerNotice>>>>,
    /// Of the job it was given last.
    job: Option<JobId>,
    /// How many messages that has added, and how many bytes it has said of the next.
    said: (u32, u64),
    hangs: Arc<Mutex<Option<String>>>,
    starts: Arc<RwLock<()>>,
    /// How many notices the agent has given that was started last.
    noticed: AtomicU64,
    acknowledged: watch::Receiver<NoticeNumber>,
}

impl ScriptedAgents {
    /// Agents, and the test's side of them.
    pub fn new() -> (Self, Script) {
        let (given, told) = mpsc::unbounded_channel();
        let notices = Arc::<Mutex<Vec<mpsc::Sender<RunnerNotice>>>>::default();
        let hangs = Arc::<Mutex<Option<String>>>::default();
        let starts = Arc::<RwLock<()>>::default();
        let (acknowledged, acknowledgements) = watch::channel(NoticeNumber::default());
        let agents = Self {
            given,
            notices: Arc::clone(&notices),
            started: Arc::default(),
            hangs: Arc::clone(&hangs),
            starts: Arc::clone(&starts),
            acknowledged,
        };
        let script = Script {
            given: told,
            notices,
            job: None,
            said: (0, 0),
            hangs,
            starts,
            noticed: AtomicU64::new(0),
            acknowledged: acknowledgements,
        };
        (agents, script)
    }
}

#[async_trait]
impl RunnerFactory for ScriptedAgents {
    fn serves(&self, kind: &SessionKind) -> bool {
        kind.is_agent() || kind.as_str() == DECLARED
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::AGENT
    }

    fn cancel_grace_ms(&self, _kind: &SessionKind, limits: &Limits) -> u64 {
        limits.agent_cancel_grace_ms
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let hangs = self.hangs.lock().unwrap().take();
        if let Some(said) = hangs {
            observer.last_lines.keep((!said.is_empty()).then_some(said));
            std::future::pending::<()>().await;
        }
        let _may_start = self.starts.read().await;
        let (said, notices) = mpsc::channel(64);
        self.notices.lock().unwrap().push(said);
        let pid = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        self.given.send(Given::Started(spec.conversation.unwrap())).ok();
        self.acknowledged.send_replace(NoticeNumber::default());
        let agent = ScriptedAgent { given: self.given.clone(), pid, acknowledged: self.acknowledged.clone() };
        Ok(StartedRunner::new(Runner::Agent(Arc::new(agent)), notices))
    }
}

struct ScriptedAgent {
    given: mpsc::UnboundedSender<Given>,
    pid: u32,
    acknowledged: watch::Sender<NoticeNumber>,
}

impl ScriptedAgent {
    fn tell_test(&self, given: Given) {
        // The test may be over.
        self.given.send(given).ok();
    }
}

#[async_trait]
impl Process for ScriptedAgent {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "scripted agent".to_owned(),
            runtime: "test".to_owned(),
            language: None,
            pid: Some(self.pid),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, AskAnswer { ask, answer, .. }: AskAnswer) {
        self.tell_test(Given::Answered(ask, answer));
    }

    async fn interrupt(&self) {
        self.tell_test(Given::Interrupted);
    }

    fn acknowledge(&self, up_to: NoticeNumber, _stored: Seq) {
        self.acknowledged.send_replace(up_to);
    }

    fn kill(&self) {
        self.tell_test(Given::Killed);
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    async fn work(&self, job: JobId, work: JobSpec, _is_bounded: bool) {
        self.tell_test(Given::Work(job, work));
    }

    async fn steer(&self, queued: QueuedPrompt, _requested: Seq) {
        self.tell_test(Given::Steered(queued));
    }

    async fn pause(&self, job: JobId, ask: AskId) {
        self.tell_test(Given::Paused(job, ask));
    }

    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error> {
        Ok(json!({ "asked": question }))
    }
}

impl Script {
    /// Has the next start say this, and hang.
    pub fn next_start_hangs(&self, said: &str) {
        *self.hangs.lock().unwrap() = Some(said.to_owned());
    }

    /// Lets no start go on before what is returned is dropped.
    pub async fn hold_starts(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.starts).write_owned().await
    }

    /// What an agent is given next.
    pub async fn next(&mut self) -> Given {
        let given = self.given.recv().await.unwrap();
        if matches!(given, Given::Started(_)) {
            self.noticed.store(0, Ordering::SeqCst);
        }
        if let Given::Work(job, _) = &given {
            (self.job, self.said) = (Some(*job), (0, 0));
        }
        given
    }

    /// The work it is given next; a start before it is passed over.
    pub async fn work(&mut self) -> JobSpec {
        loop {
            match self.next().await {
                Given::Work(_, work) => return work,
                Given::Started(_) => {}
                other => panic!("{other:?} is no work"),
            }
        }
    }

    /// The conversation it is started with next.
    pub async fn start(&mut self) -> Conversation {
        loop {
            match self.next().await {
                Given::Started(conversation) => return conversation,
                Given::Killed => {}
                other => panic!("{other:?} is no start"),
            }
        }
    }

    /// The number of the notice that the agent gave last.
    pub fn last_notice(&self) -> NoticeNumber {
        NoticeNumber(self.noticed.load(Ordering::SeqCst))
    }

    /// The newest notice that was acknowledged.
    pub fn acknowledged(&self) -> NoticeNumber {
        *self.acknowledged.borrow()
    }

    /// Waits until this notice is acknowledged.
    pub async fn until_acknowledged(&self, notice: NoticeNumber) {
        self.acknowledged.clone().wait_for(|up_to| *up_to >= notice).await.unwrap();
    }

    fn job(&self) -> JobId {
        self.job.unwrap()
    }

    /// Says this as the runner says it.
    pub async fn notice(&self, notice: RunnerNotice) {
        let notices = self.notices.lock().unwrap().last().unwrap().clone();
        self.noticed.fetch_add(1, Ordering::SeqCst);
        notices.send(notice).await.unwrap();
    }

    /// Says this as an agent.
    pub async fn tell(&self, notice: AgentNotice) {
        self.notice(RunnerNotice::Agent(notice)).await;
    }

    /// Says a piece of the next message's first part.
    pub async fn stream(&mut self, text: &str) {
        let (message, offset) = self.said;
        self.said.1 += text.len() as u64;
        let (job, role, text) = (self.job(), PartRole::Assistant, text.to_owned());
        self.tell(AgentNotice::Said(Delta { job, message, part: 0, role, offset, text, tool: None })).await;
    }

    /// Sends a whole message to the engine.
    pub async fn message(&mut self, parts: Vec<Part>) {
        self.said = (self.said.0 + 1, 0);
        self.tell(AgentNotice::Message(Message { parts, ..Message::default() })).await;
    }

    /// Adds a message of one part.
    pub async fn say(&mut self, role: PartRole, text: &str) {
        self.message(vec![Part::text(role, text)]).await;
    }

    /// Ends the running job with this ending.
    pub async fn end(&self, ending: WorkEnding) {
        self.tell(AgentNotice::Ended { job: self.job(), ending }).await;
    }

    /// Ends the job well.
    pub async fn done(&self) {
        self.end(WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null }).await;
    }

    /// Asks, in the running job.
    pub async fn ask(&self, ask: AskId, question: Question) {
        self.notice(RunnerNotice::Asks { job: self.job(), ask, question, timeout_ms: None }).await;
    }

    /// Asks whether the running job may do something.
    pub async fn check(&self, check: AskId, operation: AskedOperation) {
        self.notice(RunnerNotice::Checks { job: self.job(), check, operation }).await;
    }

    /// Ends the agent's process with this exit.
    pub async fn exit(&self, exit: WorkerExit) {
        self.notice(RunnerNotice::Exited { exit, last_words: None }).await;
        self.notices.lock().unwrap().pop();
    }
}

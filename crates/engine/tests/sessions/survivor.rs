//! Kernels that outlive the engine that started them, as a runner in a process of its own does. Their code is statements, one a line:
//!
//! | statement | what it does |
//! |---|---|
//! | `print TEXT`, `error TEXT` | writes to standard output, standard error |
//! | `long N` | writes N bytes to standard output |
//! | `late TEXT` | writes to standard output for the first job |
//! | `show TEXT` | shows it |
//! | `ask PROMPT`, `secret PROMPT` | asks, and prints the answer |
//! | `reveal` | prints the secrets that it was answered |
//! | `loop` | runs until it is interrupted |

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::grant::{AskedOperation, OperationKind};
use mainstay_model::{
    AgentNotice, AskId, Capabilities, Diagnostic, Display, Epoch, Error, EvalResult, JobEnding, JobId,
    JobReport, JobSpec, NoticeNumber, OutputStream, Question, QueuedPrompt, RunnerId, RunnerInfo,
    RunnerNotice, Seq, SessionId, SessionKind, TextPosition, WorkEnding,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Completions, FoundRunner, GivenToRunner, Kernel, Process, ResourceUsage,
    Runner, RunnerFactory, RunnerSpec, StartObserver, StartedRunner, StoredProgress, Submission,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// Starts kernels, and finds them again.
#[derive(Default)]
pub(crate) struct Survivors {
    alive: Mutex<HashMap<SessionId, Arc<Survivor>>>,
    started: Mutex<Vec<Arc<Survivor>>>,
    /// How many daemons are gone.
    gone: AtomicUsize,
    left_ended: AtomicUsize,
}

/// What one daemon has the kernels by.
pub(crate) struct Access {
    survivors: Arc<Survivors>,
    /// How many daemons were gone when this one came.
    gone_before: usize,
}

impl Survivors {
    /// What a new daemon has the kernels by.
    pub(crate) fn access(self: &Arc<Self>) -> Arc<Access> {
        let gone_before = self.gone.load(Ordering::SeqCst);
        Arc::new(Access { survivors: Arc::clone(self), gone_before })
    }

    /// The kernels that were started so far.
    pub(crate) fn started(&self) -> Vec<Arc<Survivor>> {
        self.started.lock().unwrap().clone()
    }

    /// The daemon that has the kernels is gone: nothing it does reaches them any more, and they tell it nothing.
    pub(crate) fn cut_off(&self) {
        self.gone.fetch_add(1, Ordering::SeqCst);
        self.started().iter().for_each(|survivor| {
            survivor.connect();
        });
    }

    /// The kernels that live end, while nobody is there.
    pub(crate) fn end_all(&self) {
        self.alive.lock().unwrap().clear();
    }

    /// How many kernels were ended that a daemon had left.
    pub(crate) fn left_ended(&self) -> usize {
        self.left_ended.load(Ordering::SeqCst)
    }

    fn alive(&self, session: SessionId) -> Option<Arc<Survivor>> {
        let survivor = self.alive.lock().unwrap().get(&session).cloned();
        survivor.filter(|survivor| !survivor.is_killed())
    }
}

/// The one kernel that lives on.
pub(crate) struct Survivor {
    id: RunnerId,
    is_agent: bool,
    life: Mutex<Life>,
    /// Changes with everything that it does.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Life {
    /// All notices that it has told.
    said: Vec<RunnerNotice>,
    /// How many of them were acknowledged.
    acknowledged: u64,
    /// What it ran, in order.
    ran: Vec<(JobId, String)>,
    /// What it was told while it worked, each with its name.
    steered: Vec<(Seq, String)>,
    /// The jobs that it was told to pause, with the asks how to go on.
    paused: Vec<(JobId, AskId)>,
    /// What it asked, in order.
    asked: Vec<AskId>,
    answers: HashMap<AskId, Result<Value, Error>>,
    /// What it was about to do, and the notices that asked whether it may.
    checks: Vec<(AskId, NoticeNumber)>,
    /// Whether answers are lost on their way.
    loses_answers: bool,
    secrets: Vec<Value>,
    interrupts: usize,
    /// The newest owner that it has obeyed.
    epoch: Option<Epoch>,
    /// Why nobody can adopt it.
    refuses: Option<Error>,
    /// Who has it: one after another.
    connection: u64,
    is_killed: bool,
}

impl Survivor {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Life) -> T) -> T {
        let changed = change(&mut self.life());
        self.news.send_replace(());
        changed
    }

    /// Waits until it is so.
    async fn until<T>(&self, mut is_so: impl FnMut(&mut Life) -> Option<T>) -> T {
        let mut news = self.news.subscribe();
        loop {
            if let Some(so) = is_so(&mut self.life()) {
                return so;
            }
            news.changed().await.unwrap();
        }
    }

    /// Waits until all its notices are acknowledged.
    pub(crate) async fn until_all_acknowledged(&self) {
        self.until(|life| (life.acknowledged == life.said.len() as u64).then_some(())).await;
    }

    /// Waits until it has said so much.
    pub(crate) async fn until_said(&self, notices: usize) {
        self.until(|life| (life.said.len() >= notices).then_some(())).await;
    }

    /// Waits until it was given so many jobs.
    pub(crate) async fn until_ran(&self, jobs: usize) {
        self.until(|life| (life.ran.len() >= jobs).then_some(())).await;
    }

    /// Waits until it has been interrupted so often.
    pub(crate) async fn until_interrupted(&self, times: usize) {
        self.until(|life| (life.interrupts >= times).then_some(())).await;
    }

    /// How often it was interrupted.
    pub(crate) fn interrupts(&self) -> usize {
        self.life().interrupts
    }

    /// All that it said.
    pub(crate) fn said(&self) -> Vec<RunnerNotice> {
        self.life().said.clone()
    }

    /// All code that it ran.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.life().ran.iter().map(|(_, code)| code.clone()).collect()
    }

    /// The job that it runs.
    pub(crate) fn job(&self) -> JobId {
        self.life().ran.last().unwrap().0
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.life().is_killed
    }

    /// All that it was told while it worked.
    pub(crate) fn steered(&self) -> Vec<(Seq, String)> {
        self.life().steered.clone()
    }

    /// Waits until it was told so much while it worked.
    pub(crate) async fn until_steered(&self, prompts: usize) {
        self.until(|life| (life.steered.len() >= prompts).then_some(())).await;
    }

    /// All pauses that it was told of.
    pub(crate) fn paused(&self) -> Vec<(JobId, AskId)> {
        self.life().paused.clone()
    }

    /// Waits until it is told to pause.
    pub(crate) async fn until_paused(&self) -> (JobId, AskId) {
        self.until(|life| life.paused.first().copied()).await
    }

    /// Refuses whoever wants to adopt it.
    pub(crate) fn refuse(&self, error: Error) {
        self.life().refuses = Some(error);
    }

    /// All answers that it has.
    pub(crate) fn answers(&self) -> Vec<Result<Value, Error>> {
        let life = self.life();
        life.asked.iter().filter_map(|ask| life.answers.get(ask).cloned()).collect()
    }

    fn given(&self) -> GivenToRunner {
        let life = self.life();
        GivenToRunner {
            jobs: life.ran.iter().map(|(job, _)| *job).collect(),
            unanswered: life.asked.iter().filter(|ask| !life.answers.contains_key(ask)).copied().collect(),
            checks: life
                .checks
                .iter()
                .filter(|(check, _)| !life.answers.contains_key(check))
                .copied()
                .collect(),
            secrets: life.secrets.clone(),
        }
    }

    /// Whether it obeys the owner of this epoch, and from now on none of an older one.
    fn obeys(&self, epoch: Epoch) -> bool {
        let mut life = self.life();
        life.epoch = life.epoch.max(Some(epoch));
        life.epoch == Some(epoch)
    }

    /// Someone has it from now on, and nobody else.
    fn connect(&self) -> u64 {
        self.change(|life| {
            life.connection += 1;
            life.connection
        })
    }

    /// What whoever has it from now on is given: the notices from the first that is not acknowledged.
    fn hand_out(self: &Arc<Self>) -> StartedRunner {
        let connection = self.connect();
        let kept_from = self.life().acknowledged;
        let (tell, notices) = mpsc::channel(4);
        let handle = Arc::new(Handle { survivor: Arc::clone(self), connection });
        let runner = if self.is_agent { Runner::Agent(handle) } else { Runner::Kernel(handle) };
        tokio::spawn(Arc::clone(self).tell(connection, kept_from, tell));
        StartedRunner { id: self.id, runner, next: NoticeNumber(kept_from + 1), notices }
    }

    async fn tell(self: Arc<Self>, connection: u64, from: u64, tell: mpsc::Sender<RunnerNotice>) {
        for index in from as usize.. {
            let next = self.until(|life| {
                let is_over = life.is_killed || life.connection != connection;
                if is_over { Some(None) } else { life.said.get(index).cloned().map(Some) }
            });
            let Some(notice) = next.await else {
                if !self.is_killed() {
                    // A daemon that is gone hears nothing, not even the end.
                    tell.closed().await;
                }
                return;
            };
            if tell.send(notice).await.is_err() {
                return;
            }
        }
    }

    async fn run(self: Arc<Self>, job: JobId, code: String) {
        let mut ending = JobEnding::Completed;
        for statement in code.lines() {
            tokio::task::yield_now().await;
            let (verb, rest) = statement.split_once(' ').unwrap_or((statement, ""));
            match verb {
                "print" => self.print(job, OutputStream::Stdout, rest.to_owned()),
                "error" => self.print(job, OutputStream::Stderr, rest.to_owned()),
                "long" => self.print(job, OutputStream::Stdout, "x".repeat(rest.parse().unwrap())),
                "late" => {
                    let first = self.life().ran[0].0;
                    self.print(first, OutputStream::Stdout, rest.to_owned());
                }
                "show" => self.say(RunnerNotice::Display { job: Some(job), display: Box::new(shown(rest)) }),
                "ask" => self.ask(job, Question::text(rest)).await,
                "secret" => {
                    let schema = json!({ "type": "string", "writeOnly": true });
                    self.ask(job, Question { schema, ..Question::text(rest) }).await;
                }
                "reveal" => {
                    let secrets = self.life().secrets.clone();
                    let texts: Vec<_> = secrets.iter().filter_map(Value::as_str).collect();
                    self.print(job, OutputStream::Stdout, format!("revealed: {}", texts.join(" ")));
                }
                "loop" => {
                    self.until_interrupted(1).await;
                    ending = JobEnding::Interrupted { kept: 0 };
                    break;
                }
                unknown => panic!("`{unknown}` is no statement"),
            }
        }
        let report = JobReport {
            ending,
            result: EvalResult::default(),
            changes_state: false,
            took: Duration::ZERO,
            references: None,
        };
        self.say(RunnerNotice::Finished { job, report });
    }

    fn say(&self, notice: RunnerNotice) {
        self.change(|life| life.said.push(notice));
    }

    fn print(&self, job: JobId, stream: OutputStream, text: String) {
        self.say(RunnerNotice::Output { job: Some(job), stream, text });
    }

    /// Asks whether a job may do something, where the answer is lost, and prints.
    pub(crate) fn check_in_vain(&self, job: JobId) -> AskId {
        let check = AskId::from_uuid(Uuid::now_v7());
        let (kind, target) = (OperationKind::TOOL_CALL, "bash".to_owned());
        let operation = AskedOperation { kind, target, is_recursive: false };
        self.change(|life| {
            life.said.push(RunnerNotice::Checks { job, check, operation });
            life.checks.push((check, NoticeNumber(life.said.len() as u64)));
            life.loses_answers = true;
        });
        self.print(job, OutputStream::Stdout, "behind the check".to_owned());
        check
    }

    /// From now on answers come to it again.
    pub(crate) fn hears_answers(&self) {
        self.change(|life| life.loses_answers = false);
    }

    /// The answer to a check.
    pub(crate) async fn answer_to(&self, check: AskId) -> Result<Value, Error> {
        self.until(|life| life.answers.get(&check).cloned()).await
    }

    async fn ask(&self, job: JobId, question: Question) {
        let ask = AskId::from_uuid(Uuid::now_v7());
        self.life().asked.push(ask);
        self.say(RunnerNotice::Asks { job, ask, question, timeout_ms: None });
        let answer = self.until(|life| life.answers.get(&ask).cloned()).await;
        self.print(job, OutputStream::Stdout, format!("{answer:?}"));
    }
}

fn shown(text: &str) -> Display {
    let data = serde_json::from_value(json!({ "text/plain": text })).unwrap();
    Display { id: None, is_value: false, is_update: false, is_in_place: false, data }
}

impl Access {
    fn is_gone(&self) -> bool {
        self.survivors.gone.load(Ordering::SeqCst) != self.gone_before
    }
}

#[async_trait]
impl RunnerFactory for Access {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp() || *kind == SessionKind::pi()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        if self.is_gone() {
            // Who is gone starts nothing.
            std::future::pending::<()>().await;
        }
        assert!(
            self.survivors.alive(spec.session).is_none(),
            "a start meets a kernel of the session that lives"
        );
        let survivor = Arc::new(Survivor {
            id: RunnerId::from_uuid(Uuid::now_v7()),
            is_agent: spec.kind == SessionKind::pi(),
            life: Mutex::new(Life { epoch: Some(spec.epoch), ..Life::default() }),
            news: watch::Sender::new(()),
        });
        self.survivors.alive.lock().unwrap().insert(spec.session, Arc::clone(&survivor));
        self.survivors.started.lock().unwrap().push(Arc::clone(&survivor));
        Ok(survivor.hand_out())
    }

    async fn adopt(&self, spec: &RunnerSpec, _stored: StoredProgress) -> Result<Option<FoundRunner>, Error> {
        if self.is_gone() {
            // Who waits here holds the engine, and so is not kept.
            return Err(Error::DaemonStopping);
        }
        let Some(survivor) = self.survivors.alive(spec.session) else { return Ok(None) };
        let refused = survivor.life().refuses.clone();
        refused.map_or(Ok(()), Err)?;
        if !survivor.obeys(spec.epoch) {
            let reason = "it has obeyed the owner of a newer epoch".to_owned();
            return Err(Error::WorkerFailed { reason });
        }
        Ok(Some(FoundRunner { given: survivor.given(), started: survivor.hand_out(), is_gone: false }))
    }

    async fn end_left(&self, spec: &RunnerSpec) {
        if let Some(survivor) = self.survivors.alive(spec.session).filter(|it| it.obeys(spec.epoch)) {
            survivor.change(|life| life.is_killed = true);
            self.survivors.left_ended.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What one daemon has of a kernel. Nothing that it does counts once another has it.
struct Handle {
    survivor: Arc<Survivor>,
    connection: u64,
}

impl Handle {
    fn give(&self, change: impl FnOnce(&mut Life)) {
        self.survivor.change(|life| {
            if life.connection == self.connection {
                change(life);
            }
        });
    }
}

#[async_trait]
impl Process for Handle {
    fn info(&self) -> RunnerInfo {
        let (kernel, runtime) = ("survivor 1".to_owned(), "tokio".to_owned());
        RunnerInfo { kernel, runtime, language: None, pid: None, references: None, startup: None }
    }

    async fn answer(&self, AskAnswer { ask, answer, is_secret }: AskAnswer) {
        self.give(|life| {
            if life.loses_answers || life.answers.contains_key(&ask) {
                return;
            }
            if is_secret {
                life.secrets.extend(answer.clone().ok());
            }
            life.answers.insert(ask, answer);
        });
    }

    async fn interrupt(&self) {
        self.give(|life| life.interrupts += 1);
    }

    fn acknowledge(&self, up_to: NoticeNumber, _stored: Seq) {
        self.give(|life| life.acknowledged = life.acknowledged.max(up_to.0));
    }

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn kill(&self) {
        self.give(|life| life.is_killed = true);
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Agent for Handle {
    async fn work(&self, job: JobId, work: JobSpec, _: bool) {
        let survivor = Arc::clone(&self.survivor);
        self.give(|life| {
            if life.ran.iter().all(|(known, _)| *known != job) {
                life.ran.push((job, format!("{work:?}")));
                tokio::spawn(async move {
                    survivor.until_interrupted(1).await;
                    let ending = WorkEnding::Interrupted;
                    survivor.say(RunnerNotice::Agent(AgentNotice::Ended { job, ending }));
                });
            }
        });
    }

    async fn steer(&self, queued: QueuedPrompt, requested: Seq) {
        self.give(|life| {
            if life.steered.last().is_none_or(|(last, _)| *last < requested) {
                life.steered.push((requested, queued.prompt.text));
            }
        });
    }

    async fn pause(&self, job: JobId, ask: AskId) {
        self.give(|life| {
            if !life.paused.contains(&(job, ask)) {
                life.paused.push((job, ask));
            }
        });
    }

    async fn tell(&self, _: AgentQuestion) -> Result<Value, Error> {
        Ok(Value::Null)
    }
}

#[async_trait]
impl Kernel for Handle {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, .. } = submission;
        let survivor = Arc::clone(&self.survivor);
        self.give(|life| {
            if life.ran.iter().all(|(known, _)| *known != job) {
                life.ran.push((job, code.clone()));
                tokio::spawn(survivor.run(job, code));
            }
        });
    }

    async fn build(&self, _job: JobId) {}

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        Ok(self.info())
    }

    async fn check(&self, _: String, _: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        Ok(Vec::new())
    }

    async fn complete(&self, _: String, _: TextPosition) -> Result<Completions, Error> {
        Ok(Completions::default())
    }

    async fn query(&self, _: KernelQuery) -> Result<KernelAnswer, Error> {
        Ok(KernelAnswer::Values(Vec::new()))
    }
}

//! A worker whose code says how it behaves, one statement a line:
//!
//! | statement | what it does |
//! |---|---|
//! | `define NAME` | changes the session's state |
//! | `names` | gives the names that are defined |
//! | `pure VALUE` | gives a value |
//! | `print TEXT`, `error TEXT` | writes to standard output, standard error |
//! | `loop` | runs until it is interrupted |
//! | `wait` | runs until it is let go |
//! | `stubborn` | runs until it is killed |
//! | `noisy` | prints until it is killed |
//! | `exit CODE`, `signal NUMBER` | ends the worker |
//! | `vanish` | ends the worker without a word |
//! | `raise`, `reject` | fails |
//! | `haunt` | changes the session's state, and ends the worker as soon as it is given something else to run |
//! | `ask PROMPT` | asks, and defines what it is answered; fails where nobody answers |
//! | `secret PROMPT` | asks for a secret, prints, shows and gives it, and defines it |
//! | `tick` | changes the session's state, and gives as `tick` how often any worker ran it |
//! | `refer PATH` | changes the session's state, and has the file as it is then |
//! | `use NAME` | changes the session's state, and gives what it has of that file as `NAME` |
//! | `load PATH` | as `refer`, of a script: it is loaded again when it runs again; fails where it says `broken` |
//! | `again STATEMENT` | changes the session's state the first time, and does STATEMENT whenever it is run again |

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::LastWords;
use mainstay_model::reload::Description;
use mainstay_model::{Application, ApplicationEnding, ApplicationNotice};
use mainstay_model::{
    AskId, Binding, Blame, BuildReport, Bundle, Capabilities, CommMessage, Diagnostic, Display, Error,
    EvalResult, JobEnding, JobId, JobReport, Limits, OutputStream, Question, RaisedError, Reference,
    References, RunnerInfo, RunnerNotice, SessionKind, Severity, Swap, SwappedDeclaration, TextPosition,
    WorkerExit,
};
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery, Members, Review, Symbols, Tests};
use mainstay_runner::{
    AskAnswer, CodeText, CompletionItem, Completions, Kernel, ResourceUsage, Runner, RunnerFactory,
    RunnerSpec, StartObserver, StartedRunner, Submission, Upcoming,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use uuid::Uuid;

/// How the next start goes.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// The start fails with this error.
    Fails(Error),
    /// The start never ends.
    Hangs,
    /// Getting ready for it never ends.
    NeverPrepared,
    /// The worker comes up, and resets itself no more.
    WithoutReset,
}

/// Starts workers, and remembers what they were asked to run.
#[derive(Default)]
pub(crate) struct Scripted {
    starts: Mutex<VecDeque<Start>>,
    builds: Arc<Mutex<VecDeque<Build>>>,
    prepares_for: Mutex<Duration>,
    gathers_for: Mutex<Duration>,
    ran: Arc<Mutex<Vec<String>>>,
    expected: Arc<Mutex<Vec<Vec<String>>>>,
    gate: Arc<Notify>,
    deaf: Arc<AtomicBool>,
    interrupts: Arc<AtomicU32>,
    asked: AtomicU32,
    started: AtomicU32,
    alive: Arc<AtomicUsize>,
}

impl Scripted {
    /// Says how the next starts go; those after them succeed.
    pub(crate) fn next_starts(&self, starts: impl IntoIterator<Item = Start>) {
        self.starts.lock().unwrap().extend(starts);
    }

    /// Says how the next builds go; those after them succeed.
    pub(crate) fn next_builds(&self, builds: impl IntoIterator<Item = Build>) {
        self.builds.lock().unwrap().extend(builds);
    }

    /// Getting ready for the next start takes so long.
    pub(crate) fn prepare_for(&self, duration: Duration) {
        *self.prepares_for.lock().unwrap() = duration;
    }

    /// Finding out what the next start needs takes so long.
    pub(crate) fn gather_for(&self, duration: Duration) {
        *self.gathers_for.lock().unwrap() = duration;
    }

    /// Every submission that any worker was given, replayed ones included.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    /// Each row of submissions that a worker was told to expect.
    pub(crate) fn expected(&self) -> Vec<Vec<String>> {
        self.expected.lock().unwrap().clone()
    }

    /// Lets the job go that waits, or the next one that does.
    pub(crate) fn let_go(&self) {
        self.gate.notify_one();
    }

    /// From now on workers neither heed nor answer an interrupt.
    pub(crate) fn turn_deaf(&self) {
        self.deaf.store(true, Ordering::SeqCst);
    }

    /// How many interrupts came so far.
    pub(crate) fn interrupts(&self) -> u32 {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// How many workers are there.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// How many workers were asked for so far.
    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// How many workers came up so far.
    pub(crate) fn started(&self) -> u32 {
        self.started.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl RunnerFactory for Scripted {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp() || kind.as_str() == "python3"
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    fn cancel_grace_ms(&self, kind: &SessionKind, limits: &Limits) -> u64 {
        if kind.is_fsharp() { limits.cancel_grace_ms } else { limits.jupyter_cancel_grace_ms }
    }

    async fn prepare(&self, _spec: &RunnerSpec) -> Result<(), Error> {
        let is_never = |next: &mut Start| matches!(next, Start::NeverPrepared);
        let never = self.starts.lock().unwrap().pop_front_if(is_never);
        if never.is_some() {
            std::future::pending::<()>().await;
        }
        let takes = std::mem::take(&mut *self.prepares_for.lock().unwrap());
        tokio::time::sleep(takes).await;
        Ok(())
    }

    async fn gather(&self, _spec: &RunnerSpec, _observer: &StartObserver) -> Result<Option<Value>, Error> {
        let takes = std::mem::take(&mut *self.gathers_for.lock().unwrap());
        tokio::time::sleep(takes).await;
        Ok(Some(Value::from("gathered")))
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        assert!(spec.gathered.is_some(), "it is given what was found out");
        self.asked.fetch_add(1, Ordering::SeqCst);
        let start = self.starts.lock().unwrap().pop_front();
        let resets = match start {
            Some(Start::Fails(error)) => return Err(error),
            Some(Start::Hangs) => std::future::pending().await,
            Some(Start::WithoutReset) => false,
            Some(Start::NeverPrepared) | None => true,
        };
        let pid = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let (notices, said) = mpsc::channel(4);
        let (orders, ordered) = mpsc::unbounded_channel();
        let current = Arc::<Mutex<VecDeque<Arc<Notify>>>>::default();
        let (answers, answered) = mpsc::unbounded_channel();
        let process = Process {
            pid,
            notices,
            answered,
            current: Arc::clone(&current),
            names: Vec::new(),
            references: References::new(),
            files: BTreeMap::new(),
            haunter: None,
            left: None,
            ran: Arc::clone(&self.ran),
            gate: Arc::clone(&self.gate),
            builds: Arc::clone(&self.builds),
        };
        self.alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(Arc::clone(&self.alive));
        let process = tokio::spawn(async move {
            let _alive = alive;
            process.serve(ordered).await;
        });
        let runner = ScriptedRunner {
            pid,
            expected: Arc::clone(&self.expected),
            resets,
            orders,
            answers,
            current,
            deaf: Arc::clone(&self.deaf),
            interrupts: Arc::clone(&self.interrupts),
            process: process.abort_handle(),
        };
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(runner)), said))
    }
}

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The answer to an ask.
type Answer = (AskId, Result<Value, Error>);

/// How a build goes.
pub(crate) enum Build {
    /// The code has errors.
    Fails(Diagnostic),
    /// It goes on until it is interrupted.
    Loops,
}

enum Order {
    Run(Submission, Arc<Notify>),
    Build(JobId, Arc<Notify>),
    Comm(JobId, CommMessage),
    Reset(oneshot::Sender<()>),
}

struct ScriptedRunner {
    pid: u32,
    expected: Arc<Mutex<Vec<Vec<String>>>>,
    resets: bool,
    orders: mpsc::UnboundedSender<Order>,
    answers: mpsc::UnboundedSender<Answer>,
    /// Interrupts for the jobs that the worker has, the running one first.
    current: Arc<Mutex<VecDeque<Arc<Notify>>>>,
    deaf: Arc<AtomicBool>,
    interrupts: Arc<AtomicU32>,
    process: AbortHandle,
}

impl ScriptedRunner {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "scripted 1".to_owned(),
            runtime: "tokio".to_owned(),
            language: None,
            pid: Some(self.pid),
            references: Some(References::new()),
            startup: None,
        }
    }
}

impl Drop for ScriptedRunner {
    fn drop(&mut self) {
        self.process.abort();
    }
}

#[async_trait]
impl mainstay_runner::Process for ScriptedRunner {
    fn info(&self) -> RunnerInfo {
        self.info()
    }

    async fn answer(&self, AskAnswer { ask, answer, .. }: AskAnswer) {
        self.answers.send((ask, answer)).ok();
    }

    async fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
        if self.deaf.load(Ordering::SeqCst) {
            std::future::pending().await
        }
        let running = self.current.lock().unwrap().front().cloned();
        if let Some(running) = running {
            running.notify_one();
        }
    }

    fn kill(&self) {
        self.process.abort();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        Some(ResourceUsage { resident_bytes: 1, cpu_ms: 1 })
    }
}

#[async_trait]
impl Kernel for ScriptedRunner {
    async fn run(&self, submission: Submission) {
        // A pipe to a process takes its time.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let interrupted = Arc::new(Notify::new());
        self.current.lock().unwrap().push_back(Arc::clone(&interrupted));
        self.orders.send(Order::Run(submission, interrupted)).ok();
    }

    async fn expect(&self, upcoming: Vec<Upcoming>) {
        self.expected.lock().unwrap().push(upcoming.into_iter().map(|one| one.code).collect());
    }

    async fn describe(&self, codes: Vec<CodeText>) -> Result<Option<Vec<Description>>, Error> {
        Ok(Some(codes.iter().map(|one| described(&one.code)).collect()))
    }

    async fn swap(&self, files: Vec<String>) -> Result<Option<Swap>, Error> {
        let swapped = |file: &String| SwappedDeclaration {
            name: "total".to_owned(),
            file: file.clone(),
            line: 1,
            kept: None,
        };
        // Of other files it exchanges nothing.
        let is_known = files.iter().all(|file| file.starts_with("/shop/"));
        Ok(is_known.then(|| Swap {
            swapped: files.iter().map(swapped).collect(),
            files: files.into_iter().map(|file| (file, "ab12".to_owned())).collect(),
            ..Swap::default()
        }))
    }

    async fn build(&self, job: JobId) {
        let interrupted = Arc::new(Notify::new());
        self.current.lock().unwrap().push_back(Arc::clone(&interrupted));
        self.orders.send(Order::Build(job, interrupted)).ok();
    }

    async fn take_comm(&self, job: JobId, message: CommMessage) {
        self.orders.send(Order::Comm(job, message)).ok();
    }

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        let (done_in, done) = oneshot::channel();
        if !self.resets || self.orders.send(Order::Reset(done_in)).is_err() || done.await.is_err() {
            return Err(Error::WorkerFailed { reason: "it did not reset".to_owned() });
        }
        Ok(self.info())
    }

    async fn check(&self, code: String, _file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        let place = TextPosition { line: 1, column: 1 };
        let severity = Severity::Info;
        Ok(vec![Diagnostic {
            severity,
            code: "S1".to_owned(),
            message: code,
            file: None,
            start: place,
            end: place,
        }])
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        let item = CompletionItem { label: code, kind: "word".to_owned(), detail: None, documentation: None };
        Ok(Completions { items: vec![item], start: Some(cursor) })
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match query {
            KernelQuery::Members { name } if name == "slow" => std::future::pending().await,
            KernelQuery::Members { name } => {
                Ok(KernelAnswer::Members(Members { name, kind: "module".to_owned(), ..Members::default() }))
            }
            KernelQuery::Symbols { .. } => Ok(KernelAnswer::Symbols(Symbols::default())),
            KernelQuery::Values => Ok(KernelAnswer::Values(Vec::new())),
            KernelQuery::Tests { .. } => Ok(KernelAnswer::Tests(Tests::default())),
            KernelQuery::Coverage { .. } => {
                Ok(KernelAnswer::Coverage(mainstay_model::ReachedLines::default()))
            }
            KernelQuery::Measure { .. } => Ok(KernelAnswer::Measured(serde_json::Value::Null)),
            KernelQuery::TakeMeasurement { .. } => Ok(KernelAnswer::MeasurementTaken(true)),
            KernelQuery::Review { .. } => Ok(KernelAnswer::Review(Review::default())),
            KernelQuery::Completeness { .. } => Ok(KernelAnswer::Completeness(Completeness::Unknown)),
            KernelQuery::Inspection { code, .. } => Ok(KernelAnswer::Inspection(Some(Bundle::plain(code)))),
            KernelQuery::Comms { .. } => Ok(KernelAnswer::Comms(BTreeMap::new())),
        }
    }
}

/// The worker's side of the test kernel.
struct Process {
    pid: u32,
    notices: mpsc::Sender<RunnerNotice>,
    answered: mpsc::UnboundedReceiver<Answer>,
    current: Arc<Mutex<VecDeque<Arc<Notify>>>>,
    names: Vec<String>,
    references: References,
    files: BTreeMap<String, String>,
    haunter: Option<JobId>,
    /// What a job left behind that prints later.
    left: Option<(JobId, String)>,
    ran: Arc<Mutex<Vec<String>>>,
    gate: Arc<Notify>,
    builds: Arc<Mutex<VecDeque<Build>>>,
}

/// Where a submission leads, if not to its end.
enum Diverted {
    Ends(JobEnding),
    Yields,
    Exits(Option<WorkerExit>),
}

/// How the worker ends: without a word where it does not say.
struct Exit {
    exit: Option<WorkerExit>,
    last_words: Option<LastWords>,
}

impl Process {
    async fn serve(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Reset(done) => {
                    self.names.clear();
                    self.references.clear();
                    self.haunter = None;
                    done.send(()).ok();
                }
                Order::Build(job, interrupted) => {
                    let report = self.build(job, &interrupted).await;
                    self.current.lock().unwrap().pop_front();
                    self.say(RunnerNotice::Built { job, report }).await;
                }
                // It says it back.
                Order::Comm(job, message) => {
                    self.say(RunnerNotice::Comm { job: Some(job), message: Box::new(message) }).await;
                    self.say(RunnerNotice::CommTaken { job }).await;
                }
                Order::Run(submission, interrupted) => match self.run(&submission, &interrupted).await {
                    Ok(report) => {
                        self.current.lock().unwrap().pop_front();
                        self.say(RunnerNotice::Finished { job: submission.job, report }).await;
                    }
                    Err(Exit { exit: Some(exit), last_words }) => {
                        return self.say(RunnerNotice::Exited { exit, last_words }).await;
                    }
                    Err(Exit { exit: None, .. }) => return,
                },
            }
        }
    }

    async fn build(&mut self, job: JobId, interrupted: &Notify) -> BuildReport {
        self.print(job, OutputStream::Stdout, "building").await;
        let next = self.builds.lock().unwrap().pop_front();
        match next {
            None => BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false },
            Some(Build::Fails(diagnostic)) => BuildReport {
                built: Err("1 error".to_owned()),
                diagnostics: vec![diagnostic],
                by_warm_compiler: false,
            },
            Some(Build::Loops) => {
                interrupted.notified().await;
                BuildReport {
                    built: Err("it was interrupted".to_owned()),
                    diagnostics: Vec::new(),
                    by_warm_compiler: false,
                }
            }
        }
    }

    async fn run(&mut self, submission: &Submission, interrupted: &Notify) -> Result<JobReport, Exit> {
        let Submission { job, code, .. } = submission;
        let was_run = self.ran.lock().unwrap().contains(code);
        self.ran.lock().unwrap().push(code.clone());
        let mut report = JobReport {
            ending: JobEnding::Completed,
            result: EvalResult { touched: Some(Vec::new()), ..EvalResult::default() },
            changes_state: false,
            took: Duration::from_millis(1),
            references: None,
        };
        if let Some(haunter) = self.haunter {
            let words = LastWords {
                blame: Blame { job: haunter, is_sure: true },
                reason: Some("Boom: too late".to_owned()),
                diagnostics: Vec::new(),
            };
            return Err(Exit { exit: Some(WorkerExit::Signal(6)), last_words: Some(words) });
        }
        for statement in code.lines() {
            let kept = statement.as_ptr().addr() - code.as_ptr().addr();
            match self.step(*job, statement, was_run, interrupted, &mut report).await {
                Ok(()) => {}
                Err(Diverted::Exits(exit)) => return Err(Exit { exit, last_words: None }),
                Err(Diverted::Yields) => {
                    report.ending = JobEnding::Interrupted { kept };
                    break;
                }
                Err(Diverted::Ends(ending)) => {
                    report.ending = ending;
                    break;
                }
            }
        }
        Ok(report)
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each word of the script")]
    async fn step(
        &mut self,
        job: JobId,
        statement: &str,
        was_run: bool,
        interrupted: &Notify,
        report: &mut JobReport,
    ) -> Result<(), Diverted> {
        let (verb, rest) = statement.split_once(' ').unwrap_or((statement, ""));
        match verb {
            "define" => {
                self.names.push(rest.to_owned());
                report.changes_state = true;
            }
            "names" => report.result.value = Some(self.names.join(" ")),
            "pure" => report.result.value = Some(rest.to_owned()),
            "print" => self.print(job, OutputStream::Stdout, rest).await,
            "show" => self.show(job, rest).await,
            "error" => self.print(job, OutputStream::Stderr, rest).await,
            "leave" => {
                self.left = Some((job, rest.to_owned()));
                report.changes_state = true;
            }
            "stir" => {
                let (left_by, text) = self.left.clone().unwrap();
                self.print(left_by, OutputStream::Stdout, &text).await;
            }
            "loop" => {
                interrupted.notified().await;
                return Err(Diverted::Yields);
            }
            "wait" => self.gate.notified().await,
            "stubborn" => std::future::pending().await,
            "noisy" => loop {
                self.print(job, OutputStream::Stdout, "x").await;
            },
            "exit" => return Err(Diverted::Exits(Some(WorkerExit::Code(rest.parse().unwrap())))),
            "signal" => return Err(Diverted::Exits(Some(WorkerExit::Signal(rest.parse().unwrap())))),
            "vanish" => return Err(Diverted::Exits(None)),
            "haunt" => {
                self.haunter = Some(job);
                report.changes_state = true;
            }
            "secret" => {
                let schema = json!({ "type": "string", "writeOnly": true });
                let answer = self.ask(job, Question { schema, ..Question::text(rest) }).await;
                let Some(answer) = answer.ok().and_then(|answer| answer.as_str().map(str::to_owned)) else {
                    return Err(raised(report));
                };
                self.print(job, OutputStream::Stdout, &answer).await;
                self.show(job, &answer).await;
                report.result.value = Some(format!("{answer:?}"));
                report.result.value_type = Some("string".to_owned());
                report.result.display = format!("val it: string = {answer:?}");
                report.changes_state = true;
                self.names.push(answer);
            }
            "ask" => match self.ask(job, Question::text(rest)).await {
                Ok(answer) => {
                    self.names.push(answer.to_string());
                    report.changes_state = true;
                }
                Err(Error::Cancelled) => {
                    interrupted.notified().await;
                    return Err(Diverted::Yields);
                }
                Err(_) => return Err(raised(report)),
            },
            "tick" => {
                let ticks = self.ran.lock().unwrap().iter().filter(|code| *code == "tick").count();
                let value = Some(ticks.to_string());
                let value_type = "int".to_owned();
                report.result.bindings.push(Binding { name: "tick".to_owned(), value_type, value });
                report.changes_state = true;
            }
            "refer" => {
                let content = std::fs::read_to_string(rest).unwrap();
                let name = rest.rsplit('/').next().unwrap().to_owned();
                let digest = Sha256::digest(&content);
                let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let reference = Reference { path: Some(rest.to_owned()), hash: Some(hash) };
                self.references.insert(name.clone(), reference);
                self.files.insert(name, content);
                report.references = Some(self.references.clone());
                report.changes_state = true;
            }
            "load" if std::fs::read_to_string(rest).unwrap() == "broken" => {
                return Err(Diverted::Ends(JobEnding::Rejected));
            }
            "load" => {
                let name = rest.rsplit('/').next().unwrap().to_owned();
                report.result.touched = Some(vec![name]);
                let refers = format!("refer {rest}");
                return Box::pin(self.step(job, &refers, was_run, interrupted, report)).await;
            }
            "use" => {
                let (name, value) = (rest.to_owned(), self.files.get(rest).cloned());
                let value_type = "string".to_owned();
                report.result.bindings.push(Binding { name, value_type, value });
                report.result.touched = Some(vec![rest.to_owned()]);
                report.changes_state = true;
            }
            // The code that starts applications: one that has run as often as it says does not start any more.
            run if run.starts_with("Mainstay.App.run(") => {
                let lasts = run.split('"').nth(1).and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
                if self.ran.lock().unwrap().iter().filter(|code| code.contains(run)).count() > lasts {
                    return Err(raised(report));
                }
                let arguments = run.split('"').skip(1).step_by(2).map(str::to_owned).collect();
                let (name, addresses) =
                    ("Shop".to_owned(), vec![format!("http://127.0.0.1:{}", 5000 + self.pid)]);
                let application =
                    Application { name, entry: None, arguments, addresses, pid: self.pid, job: Some(job) };
                self.say(RunnerNotice::Application(ApplicationNotice::Started(application))).await;
            }
            "Mainstay.App.stop()" => {
                let stopped = ApplicationNotice::Ended(ApplicationEnding::Stopped);
                self.say(RunnerNotice::Application(stopped)).await;
            }
            "raise" => return Err(raised(report)),
            "reject" => return Err(Diverted::Ends(JobEnding::Rejected)),
            "again" if was_run => return Box::pin(self.step(job, rest, was_run, interrupted, report)).await,
            "again" => report.changes_state = true,
            unknown => panic!("`{unknown}` is no statement"),
        }
        Ok(())
    }

    async fn ask(&mut self, job: JobId, question: Question) -> Result<Value, Error> {
        let ask = AskId::from_uuid(Uuid::now_v7());
        self.say(RunnerNotice::Asks { job, ask, question, timeout_ms: None }).await;
        loop {
            match self.answered.recv().await {
                Some((answered, answer)) if answered == ask => return answer,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    async fn print(&self, job: JobId, stream: OutputStream, text: &str) {
        self.say(RunnerNotice::Output { job: Some(job), stream, text: text.to_owned() }).await;
    }

    /// Shows text, in bold too.
    async fn show(&self, job: JobId, text: &str) {
        let forms = json!({ "text/plain": text, "text/html": format!("<b>{text}</b>") });
        let data = serde_json::from_value(forms).unwrap();
        let display =
            Box::new(Display { id: None, is_value: false, is_update: false, is_in_place: false, data });
        self.say(RunnerNotice::Display { job: Some(job), display }).await;
    }

    async fn say(&self, notice: RunnerNotice) {
        if self.notices.send(notice).await.is_err() {
            // Nobody reads the pipe any more; a process would end of it.
            std::future::pending().await
        }
    }
}

/// What code would do when it ran again.
fn described(code: &str) -> Description {
    let mut description = Description::default();
    for statement in code.lines() {
        match statement.split_once(' ').unwrap_or((statement, "")) {
            ("load", path) => description.loads.push(path.rsplit('/').next().unwrap().to_owned()),
            ("use" | "define", name) => description.defines.push(name.to_owned()),
            ("print" | "ask", _) => description.runs_once = Some("has effects".to_owned()),
            _ => {}
        }
    }
    description
}

fn raised(report: &mut JobReport) -> Diverted {
    report.changes_state = true;
    let error = RaisedError {
        kind: "Boom".to_owned(),
        message: "boom".to_owned(),
        stack: None,
        coloured_stack: None,
    };
    Diverted::Ends(JobEnding::Raised(error))
}

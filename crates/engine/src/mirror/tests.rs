//! The task of a mirror, with processes whose texts say how they behave: `broken` cannot run, `waits` runs until it is interrupted, `hangs` until it is
//! killed, all others run to their end. No time passes but that which is waited for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::display::{TEST_PROGRESS, TESTS};
use mainstay_model::session::{Activity, WorkerInfo};
use mainstay_model::{
    AskId, BufferEnding, Bundle, Capabilities, Diagnostic, Display, Epoch, EvalResult, Event, EventBody,
    JobEnding, JobId, JobReport, Limits, Metadata, Position, Principal, Question, RunnerInfo, RunnerNotice,
    Seq, Session, SessionKind, Source, Swap, SwapObstacle, SwappedDeclaration, TextPosition, Timestamp,
    WorkerExit,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, Completions, Environment, Kernel, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec,
    SourceText, StartObserver, StartedRunner, Submission,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::*;

/// What a process of a mirror has.
struct Scripted {
    notices: mpsc::Sender<RunnerNotice>,
    texts: std::sync::Mutex<BTreeMap<String, String>>,
    running: std::sync::Mutex<Option<JobId>>,
    code: AtomicU64,
    refused: Arc<AtomicUsize>,
}

/// Starts them, and counts.
#[derive(Clone, Default)]
struct Factory {
    starts: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    last: Arc<std::sync::Mutex<Option<Arc<Scripted>>>>,
}

#[async_trait]
impl RunnerFactory for Factory {
    fn serves(&self, _kind: &SessionKind) -> bool {
        true
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _: StartObserver) -> Result<StartedRunner, Error> {
        unreachable!("a session's own worker is not started by its mirror")
    }

    async fn start_mirror(&self, _: RunnerSpec, _: StartObserver) -> Result<StartedRunner, Error> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let (notices_in, notices) = mpsc::channel(64);
        let process = Arc::new(Scripted {
            notices: notices_in,
            texts: std::sync::Mutex::default(),
            running: std::sync::Mutex::default(),
            code: AtomicU64::new(1),
            refused: Arc::clone(&self.refused),
        });
        *self.last.lock().unwrap() = Some(Arc::clone(&process));
        Ok(StartedRunner::new(Runner::Kernel(process), notices))
    }
}

impl Scripted {
    async fn shows(&self, job: JobId, kind: &str, shown: Value) {
        let data: Bundle = serde_json::from_value(json!({ "text/plain": "", kind: shown })).unwrap();
        let display =
            Box::new(Display { id: None, is_value: false, is_update: false, is_in_place: false, data });
        self.notices.send(RunnerNotice::Display { job: Some(job), display }).await.ok();
    }

    async fn ends(&self, job: JobId, ending: JobEnding) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let (result, took) = (EvalResult::default(), Duration::ZERO);
        let report = JobReport { ending, result, changes_state: false, took, references: None };
        self.notices.send(RunnerNotice::Finished { job, report }).await.ok();
    }

    fn has(&self, text: &str) -> bool {
        self.texts.lock().unwrap().values().any(|one| one == text)
    }
}

#[async_trait]
impl Process for Scripted {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: String::new(),
            runtime: String::new(),
            language: None,
            pid: None,
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, answer: AskAnswer) {
        assert!(answer.answer.is_err(), "nobody is there to answer");
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    async fn interrupt(&self) {
        let running = *self.running.lock().unwrap();
        if let Some(job) = running.filter(|_| !self.has("hangs")) {
            self.ends(job, JobEnding::Interrupted { kept: 0 }).await;
        }
    }

    fn kill(&self) {
        let gone = RunnerNotice::Exited { exit: WorkerExit::Unknown, last_words: None };
        self.notices.try_send(gone).ok();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

fn result(name: &str) -> Value {
    json!({ "name": name, "framework": "xUnit", "durationMs": 1, "outcome": "passed" })
}

#[async_trait]
impl Kernel for Scripted {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, .. } = submission;
        let mark = format!("code:{}", self.code.load(Ordering::Relaxed));
        let mut run =
            json!({ "passed": 1, "failed": 0, "timedOut": 0, "skipped": 0, "durationMs": 1, "code": mark });
        if code.contains("pattern") {
            run["tests"] = json!([]);
            self.shows(job, TESTS, run).await;
            return self.ends(job, JobEnding::Completed).await;
        }
        *self.running.lock().unwrap() = Some(job);
        if self.has("asks") {
            let (ask, question) = (
                AskId::from_uuid(Uuid::now_v7()),
                Question { prompt: String::new(), schema: Value::Null, default: None, quorum: None },
            );
            self.notices.send(RunnerNotice::Asks { job, ask, question, timeout_ms: None }).await.ok();
        }
        if self.has("waits") || self.has("hangs") {
            let counts = json!({ "nth": 1, "passed": 1, "failed": 0, "timedOut": 0, "skipped": 0, "tests": [result("first")] });
            return self.shows(job, TEST_PROGRESS, counts).await;
        }
        // What it ran for, and with what.
        let since =
            code.split("since = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let texts: Vec<_> = self.texts.lock().unwrap().values().cloned().collect();
        run["tests"] = json!([result(&format!("{} since {since}", texts.join("+")))]);
        self.shows(job, TESTS, run).await;
        self.ends(job, JobEnding::Completed).await;
    }

    async fn swap_all(&self) -> Result<Option<Swap>, Error> {
        Ok(Some(Swap::default()))
    }

    async fn swap_texts(&self, sources: Vec<SourceText>) -> Result<Option<Swap>, Error> {
        let obstacle = |path: &str, code: &str| SwapObstacle {
            file: path.to_owned(),
            code: code.to_owned(),
            name: String::new(),
            line: 1,
            reason: String::new(),
        };
        let obstacles: Vec<_> = sources
            .iter()
            .filter_map(|SourceText { path, text }| match text.as_deref() {
                _ if path == "/other.fs" => Some(obstacle(path, "unknown_source")),
                Some("broken") => Some(obstacle(path, "syntax_error")),
                _ => None,
            })
            .collect();
        if !obstacles.is_empty() {
            return Ok(Some(Swap { obstacles, ..Swap::default() }));
        }
        let mut texts = self.texts.lock().unwrap();
        let mut swapped = Vec::new();
        for SourceText { path, text } in sources {
            let text = text.unwrap_or_else(|| "saved".to_owned());
            if texts.insert(path.clone(), text.clone()) != Some(text) {
                swapped.push(SwappedDeclaration { name: String::new(), file: path, line: 1, kept: None });
            }
        }
        if !swapped.is_empty() {
            self.code.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Some(Swap { swapped, ..Swap::default() }))
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

/// A mirror, and a session as its task shows it.
struct Bench {
    factory: Factory,
    session: watch::Sender<Arc<Session>>,
    orders: mpsc::UnboundedSender<Order>,
    ended: tokio::task::JoinHandle<()>,
}

fn session(pid: u32) -> Session {
    let body = EventBody::SessionCreated {
        kind: SessionKind::fsharp(),
        name: String::new(),
        working_directory: String::new(),
        project: None,
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    };
    let metadata = Metadata { source: Source::System, correlation: None, causation: None, environment: None };
    let (seq, position, at) = (Seq(1), Position(1), Timestamp::UNIX_EPOCH);
    let id = SessionId::from_uuid(Uuid::from_u128(1));
    let created = Session::begin(&Event { session: id, seq, position, at, metadata, body }).unwrap();
    let worker = WorkerInfo { kernel: String::new(), runtime: String::new(), pid: Some(pid), ready_at: at };
    Session { worker: Some(worker), life: Activity::Ready, ..created }
}

impl Bench {
    fn begin(terms: BufferTerms) -> Self {
        let factory = Factory::default();
        let about = session(1);
        let spec = RunnerSpec {
            session: about.id,
            epoch: Epoch(0),
            kind: SessionKind::fsharp(),
            owner: Principal::local(),
            working_directory: PathBuf::new(),
            project: None,
            arguments: Vec::new(),
            environment: Environment::default(),
            conversation: None,
            gathered: None,
        };
        let (starts, limits, terms) = (Arc::new(Semaphore::new(1)), Limits::default(), Arc::new(terms));
        let beginning = Beginning { factory: Arc::new(factory.clone()), spec, limits, starts, terms };
        let (session, visible) = watch::channel(Arc::new(about));
        let (orders, ordered) = mpsc::unbounded_channel();
        let ended = tokio::spawn(Mirror::new(beginning, visible, ordered).run());
        Self { factory, session, orders, ended }
    }

    fn put(&self, path: &str, version: u64, text: &str) -> oneshot::Receiver<Result<BufferRun, Error>> {
        let (reply, result) = oneshot::channel();
        let (path, text) = (path.to_owned(), text.to_owned());
        self.orders.send(Order::Put { path, version, text, reply }).ok();
        result
    }

    /// The names of the tests that ran for a text, which ended so.
    async fn ran(&self, path: &str, version: u64, text: &str) -> (BufferEnding, Vec<String>) {
        let run = self.put(path, version, text).await.unwrap().unwrap();
        assert!(run.unsaved);
        (run.ending, run.tests.into_iter().map(|test| test.name).collect())
    }

    async fn saved(&self, path: &str, text: &str) {
        self.orders.send(Order::Saved { files: vec![(path.to_owned(), Some(text.to_owned()))] }).ok();
        self.list().await;
    }

    async fn list(&self) -> Vec<(String, u64)> {
        let (reply, listed) = oneshot::channel();
        self.orders.send(Order::List { reply }).ok();
        listed.await.unwrap().into_iter().map(|one| (one.path, one.version)).collect()
    }

    async fn discard(&self, path: &str) {
        let (reply, done) = oneshot::channel();
        self.orders.send(Order::Discard { path: path.to_owned(), reply }).ok();
        done.await.unwrap();
    }

    fn starts(&self) -> usize {
        self.factory.starts.load(Ordering::Relaxed)
    }
}

fn ran(names: &[&str]) -> (BufferEnding, Vec<String>) {
    (BufferEnding::Ran, names.iter().map(|&name| name.to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn tests_run_for_all_that_is_not_saved_since_the_last_save() {
    let bench = Bench::begin(BufferTerms::default());
    assert_eq!(bench.ran("/a.fs", 1, "one").await, ran(&["one since code:1"]));
    assert_eq!(bench.ran("/a.fs", 2, "two").await, ran(&["two since code:1"]));
    assert_eq!(bench.ran("/b.fs", 1, "more").await, ran(&["two+more since code:1"]));
    bench.saved("/a.fs", "two").await;
    bench.saved("/b.fs", "more").await;
    assert_eq!(bench.list().await, []);
    // What is saved now is what later texts are measured by.
    let (ending, names) = bench.ran("/a.fs", 3, "three").await;
    assert_eq!(ending, BufferEnding::Ran);
    assert!(names[0].starts_with("three+") && !names[0].ends_with("code:1"), "{names:?}");
    assert_eq!(bench.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_cannot_run_hinders_no_other() {
    let bench = Bench::begin(BufferTerms::default());
    let broken = bench.put("/a.fs", 1, "broken").await.unwrap().unwrap();
    assert_eq!((broken.ending, broken.obstacles[0].code.as_str()), (BufferEnding::Obstacles, "syntax_error"));
    assert_eq!(bench.ran("/b.fs", 1, "fine").await, ran(&["fine since code:1"]));
    let foreign = bench.put("/other.fs", 1, "text").await.unwrap().unwrap();
    assert_eq!(foreign.obstacles[0].code, "unknown_source");
    assert_eq!(bench.list().await, [("/a.fs".to_owned(), 1), ("/b.fs".to_owned(), 1)]);
    assert_eq!(bench.ran("/a.fs", 2, "mended").await, ran(&["mended+fine since code:1"]));
}

#[tokio::test(start_paused = true)]
async fn a_newer_text_ends_what_is_under_way_in_the_process_that_is_there() {
    let bench = Bench::begin(BufferTerms::default());
    let (older, newer) = (bench.put("/a.fs", 1, "waits"), bench.put("/a.fs", 2, "waits"));
    assert_eq!(older.await.unwrap().unwrap().ending, BufferEnding::Overtaken, "it has not begun");
    // Once its first test is told, it runs.
    while !bench
        .factory
        .last
        .lock()
        .unwrap()
        .as_ref()
        .is_some_and(|one| one.running.lock().unwrap().is_some())
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.ran("/a.fs", 3, "three").await, ran(&["three since code:1"]));
    let newer = newer.await.unwrap().unwrap();
    let names: Vec<_> = newer.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!((newer.ending, names), (BufferEnding::Overtaken, vec!["first"]));
    assert_eq!(bench.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_costs_its_process_and_nothing_else() {
    let bench = Bench::begin(BufferTerms::default());
    assert_eq!(bench.ran("/b.fs", 1, "kept").await, ran(&["kept since code:1"]));
    let hanging = bench.put("/a.fs", 1, "hangs").await.unwrap().unwrap();
    assert_eq!((hanging.ending, hanging.tests.len()), (BufferEnding::OutOfTime, 1));
    assert!(hanging.notes[0].contains("was ended"), "{hanging:?}");
    assert_eq!(
        bench.ran("/a.fs", 2, "two").await,
        ran(&["two+kept since code:1"]),
        "all texts are in the next"
    );
    assert_eq!(bench.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_thrown_away_is_nowhere() {
    let bench = Bench::begin(BufferTerms::default());
    let waiting = bench.put("/a.fs", 1, "waits");
    while !bench
        .factory
        .last
        .lock()
        .unwrap()
        .as_ref()
        .is_some_and(|one| one.running.lock().unwrap().is_some())
    {
        tokio::task::yield_now().await;
    }
    bench.discard("/a.fs").await;
    assert_eq!(waiting.await.unwrap().unwrap().ending, BufferEnding::Discarded);
    let (_, names) = bench.ran("/b.fs", 1, "other").await;
    assert!(names[0].starts_with("saved+other since"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_nobody_needs_it() {
    let bench = Bench::begin(BufferTerms::default());
    bench.ran("/a.fs", 1, "one").await;
    bench.ended.await.unwrap();

    let bench = Bench::begin(BufferTerms { idle: Duration::from_secs(86_400), ..BufferTerms::default() });
    bench.ran("/a.fs", 1, "one").await;
    bench.session.send_replace(Arc::new(Session {
        life: Activity::Uninitialized,
        worker: None,
        ..session(1)
    }));
    bench.ended.await.unwrap();

    let (memory_bytes, idle) = (2, Duration::from_secs(86_400));
    let terms = BufferTerms { memory_bytes, idle, available_bytes: || Some(0), ..BufferTerms::default() };
    let bench = Bench::begin(terms);
    let began = tokio::time::Instant::now();
    bench.ended.await.unwrap();
    assert!(began.elapsed() < idle);
}

#[tokio::test(start_paused = true)]
async fn where_the_session_has_another_process_it_begins_anew_with_its_texts() {
    let bench = Bench::begin(BufferTerms::default());
    bench.ran("/a.fs", 1, "one").await;
    bench.session.send_replace(Arc::new(session(2)));
    assert_eq!(bench.ran("/b.fs", 1, "two").await, ran(&["one+two since code:1"]));
    assert_eq!(bench.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn once_it_has_taken_as_many_texts_as_one_may_another_takes_its_place() {
    let bench = Bench::begin(BufferTerms { texts: Some(3), ..BufferTerms::default() });
    bench.ran("/a.fs", 1, "one").await;
    assert_eq!(bench.ran("/b.fs", 1, "two").await, ran(&["one+two since code:1"]));
    assert_eq!(bench.starts(), 1);
    assert_eq!(bench.ran("/b.fs", 2, "three").await, ran(&["one+three since code:1"]));
    assert_eq!(bench.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_tests_ask_is_refused() {
    let bench = Bench::begin(BufferTerms::default());
    bench.ran("/a.fs", 1, "asks").await;
    assert_eq!(bench.factory.refused.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn of_too_many_the_one_ends_that_was_used_least_recently() {
    let mirrors = Mirrors::default();
    let (mut ids, mut mailboxes) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let (orders, mailbox) = mpsc::unbounded_channel();
        let id = SessionId::from_uuid(Uuid::from_u128(number));
        mirrors.used(id, 2, || MirrorHandle(orders));
        ids.push(id);
        mailboxes.push(mailbox);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(mailboxes[0].recv().await.is_none(), "nobody has the way to it");
    assert_eq!(ids.iter().map(|id| mirrors.of(*id).is_some()).collect::<Vec<_>>(), [false, true, true]);
}

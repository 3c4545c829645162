//! A worker that knows a handful of F# submissions:
//!
//! | code | what it does |
//! |---|---|
//! | `1 + 1` | gives 2 |
//! | `let NAME = 3` | defines a name |
//! | `names` | gives the names that are defined |
//! | `printfn "TEXT"`, `eprintfn "TEXT"` | prints a line |
//! | `show "TEXT"` | shows a text, and a picture that has none |
//! | `flood BYTES` | prints so many `x`, then ` end` |
//! | `wait` | prints `waiting`, and runs until it is interrupted |
//! | `stdin.ReadLine()` | asks for a line, and gives it |
//! | `number` | asks for a number from 1 on, and gives it |
//! | `spin` | runs until it is killed |
//! | `die` | ends its worker |
//! | `failwith "TEXT"` | raises |
//! | `unused` | gives a warning |
//! | `refer PATH` | takes a file in, which code can use by its name |
//! | `use NAME` | defines the name with what the file had when it was taken in |
//! | anything else | has an error |
//!
//! A folder named `no-sdk` has no compiler; in one named `slow` a worker takes two seconds to start, in one named `held` as long as
//! the test wants.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::startup::{LoadedAssembly, LoadedProject, ProfileRun, ProjectRoad, Startup, Unopened};
use mainstay_model::{
    AskId, Binding, BuildReport, Capabilities, Diagnostic, Display, DisplayId, Error, EvalResult, JobEnding,
    JobId, JobReport, OutputStream, Question, RaisedError, Reference, References, RunnerInfo, RunnerNotice,
    SessionKind, Severity, TextPosition, WorkerExit,
};
use mainstay_runner::query::{
    Completeness, KernelAnswer, KernelQuery, Member, Members, Review, Symbol, Symbols, Test, Tests,
};
use mainstay_runner::{
    AskAnswer, CompletionItem, Completions, Kernel, Process, ResourceUsage, Runner, RunnerFactory,
    RunnerSpec, StartObserver, StartedRunner, Submission,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

/// Starts workers of F# that know these submissions.
#[derive(Debug)]
pub struct Scripted;

#[async_trait]
impl RunnerFactory for Scripted {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        match spec.working_directory.file_name().and_then(|name| name.to_str()) {
            Some("no-sdk") => return Err(Error::KernelUnavailable { reason: "there is no SDK".to_owned() }),
            Some("held") => {
                drop(gate(&spec.working_directory).subscribe().wait_for(|is_open| *is_open).await)
            }
            Some("slow") => tokio::time::sleep(Duration::from_secs(2)).await,
            _ => {}
        }
        let (notices_in, notices) = mpsc::channel(16);
        let (answers, answered) = mpsc::unbounded_channel();
        let worker = Worker {
            notices: notices_in,
            names: Mutex::default(),
            files: Mutex::default(),
            interrupted: Notify::new(),
            answers,
            answered: tokio::sync::Mutex::new(answered),
            project: spec.project.as_ref().map(|project| project.display().to_string()),
        };
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(Handle(Arc::new(worker)))), notices))
    }
}

/// What workers in a folder named `held` wait for.
fn gate(folder: &Path) -> watch::Sender<bool> {
    static GATES: LazyLock<Mutex<HashMap<PathBuf, watch::Sender<bool>>>> = LazyLock::new(Mutex::default);
    GATES.lock().unwrap().entry(folder.to_owned()).or_insert_with(|| watch::Sender::new(false)).clone()
}

/// Lets the workers in this folder start.
pub fn release(folder: &Path) {
    gate(folder).send_replace(true);
}

struct Handle(Arc<Worker>);

struct Worker {
    notices: mpsc::Sender<RunnerNotice>,
    names: Mutex<Vec<String>>,
    /// The files that it took in, and what was in each.
    files: Mutex<BTreeMap<String, (Reference, String)>>,
    interrupted: Notify,
    answers: mpsc::UnboundedSender<Answer>,
    answered: tokio::sync::Mutex<mpsc::UnboundedReceiver<Answer>>,
    project: Option<String>,
}

/// The answer to an ask.
type Answer = Result<Value, Error>;

#[async_trait]
impl Process for Handle {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "F# 4.7".to_owned(),
            runtime: ".NET Core 3.1.2".to_owned(),
            language: None,
            pid: Some(4711),
            references: Some(References::new()),
            startup: self.0.project.clone().map(startup).map(Box::new),
        }
    }

    async fn answer(&self, answer: AskAnswer) {
        self.0.answers.send(answer.answer).unwrap();
    }

    async fn interrupt(&self) {
        self.0.interrupted.notify_one();
    }

    fn kill(&self) {}

    fn usage(&self) -> Option<ResourceUsage> {
        Some(ResourceUsage { resident_bytes: 1 << 20, cpu_ms: 40 })
    }
}

#[async_trait]
impl Kernel for Handle {
    async fn run(&self, submission: Submission) {
        let worker = Arc::clone(&self.0);
        tokio::spawn(async move { worker.run(submission).await });
    }

    async fn build(&self, job: JobId) {
        self.0.print(job, OutputStream::Stdout, "building\n").await;
        let fails = self.0.project.as_deref().is_some_and(|project| project.contains("Broken"));
        let report = match fails {
            true => BuildReport {
                built: Err("1 error".to_owned()),
                diagnostics: vec![Diagnostic { file: Some("/code/Shop.fs".to_owned()), ..undefined("pric") }],
                by_warm_compiler: false,
            },
            false => BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false },
        };
        self.0.notices.send(RunnerNotice::Built { job, report }).await.unwrap();
    }

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        self.0.names.lock().unwrap().clear();
        self.0.files.lock().unwrap().clear();
        Ok(self.info())
    }

    async fn check(&self, code: String, _file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        let hidden = Diagnostic { severity: Severity::Hidden, ..undefined("_") };
        Ok(if code == "1 + 1" { vec![hidden] } else { vec![undefined(&code), hidden] })
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        let count = if code == "many" { 150 } else { 2 };
        let item = |nth: usize| CompletionItem {
            label: format!("map{nth}"),
            kind: "method".to_owned(),
            detail: Some("('a -> 'b) -> 'a list -> 'b list".to_owned()),
            documentation: Some("long".to_owned()),
        };
        Ok(Completions {
            items: (0..count).map(item).collect(),
            start: Some(TextPosition { column: cursor.column - 1, ..cursor }),
        })
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match query {
            KernelQuery::Members { name } => Ok(KernelAnswer::Members(Members {
                kind: "type".to_owned(),
                documentation: Some(format!("What {name} is for.")),
                bases: vec!["Animal".to_owned()],
                interfaces: vec!["INamed".to_owned()],
                members: vec![Member {
                    name: "Name".to_owned(),
                    kind: "property".to_owned(),
                    signature: Some("string".to_owned()),
                    documentation: None,
                }],
                name,
            })),
            KernelQuery::Symbols { text, .. } => {
                let symbol = Symbol {
                    full_name: format!("Pets.{text}"),
                    name: text,
                    kind: "type".to_owned(),
                    signature: None,
                    documentation: None,
                    assembly: Some("Pets".to_owned()),
                };
                Ok(KernelAnswer::Symbols(Symbols { items: vec![symbol], found: 2 }))
            }
            KernelQuery::Values if self.0.names.lock().unwrap().iter().any(|name| name == "stuck") => {
                std::future::pending().await
            }
            KernelQuery::Values => Ok(KernelAnswer::Values(vec![Binding {
                name: "rex".to_owned(),
                value_type: "Dog".to_owned(),
                value: Some("{ Name = \"Rex\" }".to_owned()),
            }])),
            KernelQuery::Review { code } => Ok(KernelAnswer::Review(Review {
                is_parsed: true,
                remarks: vec![Diagnostic {
                    severity: Severity::Info,
                    code: "FSR001".to_owned(),
                    message: format!("the condition is the value already: `{code}`"),
                    file: None,
                    start: TextPosition { line: 1, column: 1 },
                    end: TextPosition { line: 1, column: 5 },
                }],
                left_out: 0,
            })),
            KernelQuery::Completeness { .. } => Ok(KernelAnswer::Completeness(Completeness::Unknown)),
            KernelQuery::Inspection { .. } => Ok(KernelAnswer::Inspection(None)),
            KernelQuery::Comms { .. } => Ok(KernelAnswer::Comms(BTreeMap::new())),
            KernelQuery::Coverage { .. } => Ok(KernelAnswer::Coverage(crate::scripted_coverage::pets())),
            KernelQuery::Measure { .. } => Ok(KernelAnswer::Measured(Value::Null)),
            KernelQuery::TakeMeasurement { .. } => Ok(KernelAnswer::MeasurementTaken(true)),
            KernelQuery::Tests { pattern: Some(pattern), .. } => {
                let notes = vec![format!("nothing has `{pattern}` in its name")];
                Ok(KernelAnswer::Tests(Tests { items: Vec::new(), found: 0, notes }))
            }
            KernelQuery::Tests { pattern: None, .. } => {
                let test = Test {
                    name: "Pets.bark".to_owned(),
                    framework: "NUnit".to_owned(),
                    assembly: Some("Pets.Tests".to_owned()),
                    categories: vec!["loud".to_owned()],
                    skipped: Some("it is night".to_owned()),
                    cases: Some(2),
                };
                Ok(KernelAnswer::Tests(Tests { items: vec![test], found: 3, notes: Vec::new() }))
            }
        }
    }
}

impl Worker {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, .. } = submission;
        let (ending, result) = self.outcome(job, &code).await;
        let changes_state = !result.bindings.is_empty() || code.starts_with("refer ");
        let taken_in = |files: &BTreeMap<String, (Reference, String)>| -> References {
            files.iter().map(|(name, (reference, _))| (name.clone(), reference.clone())).collect()
        };
        let references = code.starts_with("refer ").then(|| taken_in(&self.files.lock().unwrap()));
        let report = JobReport { ending, result, changes_state, took: Duration::from_millis(1), references };
        self.notices.send(RunnerNotice::Finished { job, report }).await.ok();
    }

    #[allow(clippy::too_many_lines, reason = "one branch for each word of the script")]
    async fn outcome(&self, job: JobId, code: &str) -> (JobEnding, EvalResult) {
        let completed = |result| (JobEnding::Completed, result);
        let quoted = code.split('"').nth(1).unwrap_or_default();
        if code.starts_with("Mainstay.Tests.run(") && ["one by one", "cut off"].contains(&quoted) {
            return self.run_one_by_one(job, quoted == "cut off").await;
        }
        if code.starts_with("Mainstay.Tests.run(") {
            self.show(job, json!({ "text/plain": "…", "application/vnd.mainstay.tests+json": test_run() }))
                .await;
            return completed(EvalResult::default());
        }
        match code.split(' ').next().unwrap_or_default() {
            "1" => completed(value("2", "int")),
            "stdin.ReadLine()" | "number" | "secret" => {
                let ask = AskId::from_uuid(Uuid::now_v7());
                let question = match code {
                    "number" => Question {
                        schema: json!({ "type": "integer", "minimum": 1 }),
                        ..Question::text("how many?")
                    },
                    "secret" => Question {
                        schema: json!({ "type": "string", "writeOnly": true }),
                        ..Question::text("the password?")
                    },
                    _ => Question::text("the code reads a line"),
                };
                self.notices.send(RunnerNotice::Asks { job, ask, question, timeout_ms: None }).await.ok();
                match self.answered.lock().await.recv().await {
                    Some(Ok(answer)) => completed(value(&answer.to_string(), "string")),
                    Some(Err(_)) | None => completed(value("<null>", "string")),
                }
            }
            "let" => {
                let name = code.split(' ').nth(1).unwrap().to_owned();
                self.names.lock().unwrap().push(name.clone());
                let binding = Binding { name, value_type: "int".to_owned(), value: Some("3".to_owned()) };
                completed(EvalResult { bindings: vec![binding], ..EvalResult::default() })
            }
            "tick" => {
                static TICKS: AtomicU32 = AtomicU32::new(0);
                let ticks = TICKS.fetch_add(1, Ordering::Relaxed).to_string();
                let (name, value_type) = ("tick".to_owned(), "int".to_owned());
                let binding = Binding { name, value_type, value: Some(ticks) };
                completed(EvalResult { bindings: vec![binding], ..EvalResult::default() })
            }
            "names" => {
                let names = self.names.lock().unwrap().join(" ");
                completed(value(&format!("{names:?}"), "string"))
            }
            "printfn" => {
                self.print(job, OutputStream::Stdout, &format!("{quoted}\n")).await;
                completed(EvalResult::default())
            }
            "eprintfn" => {
                self.print(job, OutputStream::Stderr, &format!("{quoted}\n")).await;
                completed(EvalResult::default())
            }
            "show" => {
                self.show(job, json!({ "text/plain": quoted, "text/html": "<b>" })).await;
                self.show(job, json!({ "image/png": "iVBORw==" })).await;
                completed(EvalResult::default())
            }
            "long" => {
                let bytes = code.split(' ').nth(1).unwrap().parse().unwrap();
                completed(value(&"x".repeat(bytes), "string"))
            }
            "flood" => {
                let bytes = code.split(' ').nth(1).unwrap().parse().unwrap();
                self.print(job, OutputStream::Stdout, &format!("{} end", "x".repeat(bytes))).await;
                completed(EvalResult::default())
            }
            "drip" => {
                // What is shown between keeps the lines apart.
                for line in 0..5 {
                    self.print(job, OutputStream::Stdout, &format!("{line}\n")).await;
                    self.show(job, json!({ "text/plain": "between" })).await;
                }
                completed(EvalResult::default())
            }
            "wait" => {
                self.print(job, OutputStream::Stdout, "waiting\n").await;
                self.interrupted.notified().await;
                (JobEnding::Interrupted { kept: 0 }, EvalResult::default())
            }
            "spin" => std::future::pending().await,
            "die" => {
                let exited = RunnerNotice::Exited { exit: WorkerExit::Signal(9), last_words: None };
                self.notices.send(exited).await.ok();
                std::future::pending().await
            }
            "failwith" => {
                let (kind, message) = ("System.Exception".to_owned(), quoted.to_owned());
                (
                    JobEnding::Raised(RaisedError { kind, message, stack: None, coloured_stack: None }),
                    EvalResult::default(),
                )
            }
            "unused" => {
                let warning = Diagnostic { severity: Severity::Warning, ..undefined("unused") };
                completed(EvalResult { diagnostics: vec![warning], ..EvalResult::default() })
            }
            "refer" => {
                let path = code.split(' ').nth(1).unwrap();
                let content = std::fs::read_to_string(path).unwrap();
                let hash = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
                let reference = Reference { path: Some(path.to_owned()), hash: Some(hash) };
                let name = path.rsplit('/').next().unwrap().to_owned();
                self.files.lock().unwrap().insert(name, (reference, content));
                completed(EvalResult::default())
            }
            "use" => {
                let name = code.split(' ').nth(1).unwrap().to_owned();
                let value = self.files.lock().unwrap().get(&name).map(|(_, content)| content.clone());
                let touched = Some(vec![name.clone()]);
                let binding = Binding { name, value_type: "string".to_owned(), value };
                completed(EvalResult { bindings: vec![binding], touched, ..EvalResult::default() })
            }
            name => (
                JobEnding::Rejected,
                EvalResult { diagnostics: vec![undefined(name)], ..EvalResult::default() },
            ),
        }
    }

    /// Tells of tests as they end; where the run is cut off, its report does not come.
    async fn run_one_by_one(&self, job: JobId, is_cut_off: bool) -> (JobEnding, EvalResult) {
        let progress = |nth: u64, lines: &str, has_told_all: bool| {
            let form = json!({
                "nth": nth, "passed": nth, "failed": 1, "timedOut": 0, "skipped": 0, "tests": [],
                "lines": lines, "hasToldAll": has_told_all,
            });
            let words = format!("running: {nth} passed, 1 failed\nfailed   adds");
            json!({ "text/plain": words, "application/vnd.mainstay.test-progress+json": form })
        };
        let shown = [
            progress(1, "failed   adds (1 ms)", false),
            progress(2, "", false),
            progress(3, "3 passed, 1 failed in 2 ms", true),
            json!({ "text/plain": "the report", "application/vnd.mainstay.tests+json": test_run() }),
        ];
        for forms in shown.into_iter().take(if is_cut_off { 2 } else { 4 }) {
            self.show_as(DisplayId::new("tests-1").ok(), job, forms).await;
        }
        let ending = if is_cut_off { JobEnding::Interrupted { kept: 0 } } else { JobEnding::Completed };
        (ending, EvalResult::default())
    }

    async fn show(&self, job: JobId, forms: Value) {
        self.show_as(None, job, forms).await;
    }

    async fn show_as(&self, id: Option<DisplayId>, job: JobId, forms: Value) {
        let data = serde_json::from_value(forms).unwrap();
        let display = Box::new(Display { id, is_value: false, is_update: false, is_in_place: false, data });
        self.notices.send(RunnerNotice::Display { job: Some(job), display }).await.ok();
    }

    async fn print(&self, job: JobId, stream: OutputStream, text: &str) {
        let output = RunnerNotice::Output { job: Some(job), stream, text: text.to_owned() };
        self.notices.send(output).await.ok();
    }
}

/// What a worker has of a project.
fn startup(path: String) -> Startup {
    let assembly = |path: &str, error: Option<&str>| LoadedAssembly {
        path: path.to_owned(),
        error: error.map(str::to_owned),
    };
    let unopened = Unopened { name: "Shop.Odd".to_owned(), reason: "it raised".to_owned(), is_meant: false };
    let project = LoadedProject {
        path,
        road: Some(ProjectRoad::Msbuild),
        framework: Some("netcoreapp3.1".to_owned()),
        assemblies: vec![assembly("/code/bin/Shop.dll", None)],
        references: 3,
        missing: vec![assembly("/code/bin/Gone.dll", Some("it is not there"))],
        opened: vec!["Shop".to_owned()],
        unopened: vec![unopened],
        ..LoadedProject::default()
    };
    let script = ProfileRun {
        path: "/home/init.fsx".to_owned(),
        diagnostics: Vec::new(),
        error: Some("System.Exception: boom".to_owned()),
        output: "hello\n".to_owned(),
        duration_ms: 3,
    };
    Startup { notes: vec!["another SDK is used".to_owned()], project: Some(project), profiles: vec![script] }
}

fn value(value: &str, value_type: &str) -> EvalResult {
    EvalResult {
        value: Some(value.to_owned()),
        value_type: Some(value_type.to_owned()),
        ..EvalResult::default()
    }
}

fn undefined(name: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: "FS0039".to_owned(),
        message: format!("The value or constructor '{name}' is not defined."),
        file: None,
        start: TextPosition { line: 1, column: 1 },
        end: TextPosition { line: 1, column: 1 + name.encode_utf16().count() as u32 },
    }
}

/// What a worker tells of tests that ran.
fn test_run() -> Value {
    json!({
        "passed": 1, "failed": 1, "timedOut": 1, "skipped": 1, "durationMs": 5,
        "tests": [
            { "name": "passes", "framework": "xUnit", "durationMs": 1, "outcome": "passed" },
            { "name": "adds(1, 2)", "framework": "NUnit", "durationMs": 1, "outcome": "failed", "failure": {
                "kind": "NUnit.Framework.AssertionException", "message": "  Expected: 3\n  But was:  4\n",
                "expected": "3", "actual": "4", "stack": ["adds(Int32 a, Int32 b)"],
            } },
            { "name": "spins", "framework": "Expecto", "durationMs": 3, "outcome": "timedOut", "limitMs": 2 },
            { "name": "later", "framework": "MSTest", "durationMs": 0, "outcome": "skipped", "reason": "not yet" },
        ],
        "mustRestart": true,
    })
}

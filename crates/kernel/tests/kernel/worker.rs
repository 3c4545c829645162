//! A real F# worker: through the runner that the engine is given, and, where the order of frames matters, on its bare
//! channel. `MAINSTAY_TEST_DOTNET` names the root of the SDK.

mod affected;
mod ahead;
mod coverage;

mod deltas;

mod awaits;

mod conditional_code;

mod describing;

mod engines;

mod exploring;

mod random_edits;

mod replaying;

mod reviewing;

mod displays;

mod packages;

mod saved_tests;
mod shared_frameworks;
mod smoke;

mod standby;
mod startup;

mod swapping;
mod swapping_lets;
mod swapping_values;

mod test_cases;
mod testing;

mod warm_compiler;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support;
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use mainstay_embedded::kernel_file;
use mainstay_kernel::fsharp::{WorkerProgram, choose, prepare};
use mainstay_kernel::{StartupContext, worker};
use mainstay_model::{
    AskId, Blame, Error, JobEnding, JobId, JobReport, LastWords, OutputStream, RunnerNotice, WorkerExit,
};
use mainstay_os::process::Launch;
use mainstay_runner::{AskAnswer, StartedRunner, Submission};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// More than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The worker, built once for all tests.
async fn program() -> WorkerProgram {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    prepare(&support::search(&target.join("test-tools")), kernel_file, &|_| ()).await.unwrap()
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// Keeps an eye on a process, whoever its parent is.
fn watch(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

fn has_ended(watch: &OwnedFd, within: Duration) -> bool {
    poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&within.try_into().unwrap())).unwrap() == 1
}

/// A worker as the engine has it.
struct Session {
    worker: StartedRunner,
    _sockets: TempDir,
}

/// What a job printed, and its end.
struct Ran {
    stdout: String,
    stderr: String,
    report: JobReport,
}

impl Session {
    /// The codes of what the compiler says of code that runs.
    async fn warnings(&mut self, code: &str) -> Vec<String> {
        let ran = self.eval(code).await;
        ran.report.result.diagnostics.into_iter().map(|one| one.code).collect()
    }

    async fn start() -> Self {
        Self::start_in(Vec::new()).await
    }

    /// With more in its environment.
    async fn start_in(more: Vec<(OsString, OsString)>) -> Self {
        Self::begin(StartupContext::in_folder(Path::new("/")), more).await
    }

    /// With this to begin with.
    async fn begin(beginning: StartupContext, more: Vec<(OsString, OsString)>) -> Self {
        Self::with(program().await, beginning, more).await
    }

    /// Starts a worker of this program, which may be of another SDK than the one under test.
    async fn with(
        program: WorkerProgram,
        beginning: StartupContext,
        more: Vec<(OsString, OsString)>,
    ) -> Self {
        let WorkerProgram { program, arguments, mut environment, .. } = program;
        environment.extend(more);
        let sockets = tempfile::tempdir().unwrap();
        let launch = Launch { program, arguments, environment };
        // Every test here can be run with workers that stood by: `MAINSTAY_TEST_STANDBY=1 cargo xtask test …`.
        let worker = if std::env::var_os("MAINSTAY_TEST_STANDBY").is_some() {
            let standby = soon(worker::stand_by(&launch, Vec::new(), sockets.path())).await.unwrap();
            soon(standby.begin(beginning, None, &BTreeMap::new())).await.unwrap()
        } else {
            soon(worker::launch(&launch, beginning, None, sockets.path())).await.unwrap()
        };
        Self { worker, _sockets: sockets }
    }

    async fn submit(&self, code: &str) -> JobId {
        let job = JobId::from_uuid(uuid::Uuid::now_v7());
        self.worker
            .runner
            .kernel()
            .unwrap()
            .run(Submission {
                job,
                code: code.to_owned(),
                file: None,
                command_line: None,
                is_withheld: false,
            })
            .await;
        job
    }

    async fn end_of(&mut self, wanted: JobId) -> Ran {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        loop {
            match soon(self.worker.notices.recv()).await.unwrap() {
                RunnerNotice::Output { job: Some(job), stream, text } if job == wanted => match stream {
                    OutputStream::Stdout => stdout.push_str(&text),
                    OutputStream::Stderr => stderr.push_str(&text),
                },
                RunnerNotice::Finished { job, report } if job == wanted => {
                    return Ran { stdout, stderr, report };
                }
                RunnerNotice::Exited { exit, .. } => panic!("the worker ended with {exit}"),
                _ => {}
            }
        }
    }

    /// Whether the next notice is this text.
    async fn prints(&mut self, wanted: &str) -> bool {
        match soon(self.worker.notices.recv()).await.unwrap() {
            RunnerNotice::Output { text, .. } => text.contains(wanted),
            other => panic!("{other:?}"),
        }
    }

    /// What the worker says of its end.
    async fn last_words(&mut self) -> Option<LastWords> {
        loop {
            if let RunnerNotice::Exited { last_words, .. } = soon(self.worker.notices.recv()).await.unwrap() {
                return last_words;
            }
        }
    }

    /// The next ask of a job, and its prompt.
    async fn asks(&mut self, wanted: JobId) -> (AskId, String) {
        loop {
            match soon(self.worker.notices.recv()).await.unwrap() {
                RunnerNotice::Asks { job, ask, question, timeout_ms: None } if job == wanted => {
                    return (ask, question.prompt);
                }
                RunnerNotice::Output { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Runs code whose reads are answered with these; gives what it asked, and its value.
    async fn converse(&mut self, code: &str, answers: &[&str]) -> (Vec<String>, String) {
        let job = self.submit(code).await;
        let mut prompts = Vec::new();
        for answer in answers {
            let (ask, prompt) = self.asks(job).await;
            prompts.push(prompt);
            self.worker.runner.process().answer(AskAnswer::open(ask, Ok(json!(answer)))).await;
        }
        let report = self.end_of(job).await.report;
        assert_eq!(report.ending, JobEnding::Completed, "{code}");
        assert!(report.changes_state, "what it read is part of the session");
        (prompts, report.result.value.unwrap())
    }

    async fn eval(&mut self, code: &str) -> Ran {
        let job = self.submit(code).await;
        self.end_of(job).await
    }

    /// The value of an expression, as printed.
    async fn value(&mut self, code: &str) -> String {
        let ran = self.eval(code).await;
        assert_eq!(ran.report.ending, JobEnding::Completed);
        ran.report.result.value.unwrap()
    }
}

#[tokio::test]
async fn a_warning_that_is_switched_off_stays_off_until_it_is_switched_on() {
    let mut session = Session::start().await;
    let incomplete = "let f x = match x with 1 -> 2";
    let incomplete_and = |more: &str| format!("{more}{incomplete}");
    for off in ["#nowarn \"25\"", "#nowarn 25", "#nowarn \"FS0025\" // not all of them", "#nowarn 40 FS25"] {
        assert_eq!(session.warnings(incomplete).await, ["FS0025"], "before {off}");
        session.eval(off).await;
        assert_eq!(session.warnings(incomplete).await, [""; 0], "{off}");
        assert_eq!(session.warnings(&incomplete_and("let (+) a b = a\n")).await, [""; 0]);
        let found =
            soon(session.worker.runner.kernel().unwrap().check(incomplete.into(), None)).await.unwrap();
        assert_eq!(found, [], "also in a check");
        session.eval("#warnon 25").await;
    }
    session.eval("let text = \"\n#nowarn 25\n\"\n(* \n#nowarn 25\n*)").await;
    assert_eq!(session.warnings(incomplete).await, ["FS0025"], "what only looks like a directive is none");
    session.eval("#nowarn 25").await;
    session.worker.runner.kernel().unwrap().reset().await.unwrap();
    assert_eq!(session.warnings(incomplete).await, ["FS0025"], "after a reset");
}

#[tokio::test]
async fn all_that_a_job_prints_comes_before_its_end() {
    let mut session = Session::start().await;
    for length in [1, 65_536, 300_000] {
        let code = format!("printf \"%s\" (String.replicate {length} \"é\"); eprintf \"%d\" {length}");
        let ran = session.eval(&code).await;
        assert_eq!((ran.stdout, ran.stderr), ("é".repeat(length), length.to_string()));
    }
}

#[tokio::test]
async fn a_thread_that_never_stops_printing_holds_up_no_result() {
    let mut session = Session::start().await;
    let noise = "let noise = String.replicate 4096 \"x\"
let thread = System.Threading.Thread((fun () -> while true do System.Console.Error.Write noise), IsBackground = true)
thread.Start()";
    assert_eq!(session.eval(noise).await.report.ending, JobEnding::Completed);
    for number in 0..5 {
        let ran = session.eval(&format!("printf \"<%d>\" {number}")).await;
        assert_eq!((ran.report.ending, ran.stdout), (JobEnding::Completed, format!("<{number}>")));
        assert_eq!(ran.stderr.trim_matches('x'), "");
    }
}

#[tokio::test]
async fn an_exception_message_larger_than_a_frame_is_cut() {
    let mut session = Session::start().await;
    let ran = session.eval("(failwith (System.String('x', 80 * 1024 * 1024)) : int)").await;
    let JobEnding::Raised(error) = ran.report.ending else { panic!("{:?}", ran.report.ending) };
    let mark = "… (cut: 1048576 of 83886080 characters)";
    assert_eq!(error.message.trim_start_matches('x'), mark);
    assert_eq!(error.message.len(), 1024 * 1024 + mark.len());
    assert_eq!(session.value("1 + 1").await, "2");
}

#[tokio::test]
async fn values_that_together_exceed_a_frame_are_cut_and_all_named() {
    let mut session = Session::start().await;
    let bindings = |count: usize| -> String {
        (0..count).map(|n| format!("let s{n} = System.String('ä', 2 * 1024 * 1024)\n")).collect()
    };
    let ran = session.eval(&bindings(50)).await;
    assert_eq!(ran.report.ending, JobEnding::Completed);
    let names: Vec<_> = ran.report.result.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, (0..50).map(|n| format!("s{n}")).collect::<Vec<_>>());
    assert_eq!(session.value("s49.Length").await, "2097152");
}

#[tokio::test]
async fn of_very_many_bindings_the_first_thousand_are_told() {
    let mut session = Session::start().await;
    let code: String = (0..1100).map(|n| format!("let b{n} = {n}\n")).collect();
    let ran = session.eval(&code).await;
    assert_eq!(ran.report.ending, JobEnding::Completed);
    assert_eq!(ran.report.result.bindings.len(), 1000);
    assert_eq!(session.value("b1099").await, "1099");
}

#[tokio::test]
async fn an_interrupt_right_behind_an_eval_ends_it_and_not_the_worker() {
    let mut session = Session::start().await;
    for _ in 0..10 {
        let job = session.submit("System.Threading.Thread.Sleep(-1)").await;
        soon(session.worker.runner.process().interrupt()).await;
        assert_eq!(session.end_of(job).await.report.ending, JobEnding::Interrupted { kept: 0 });
    }
    assert_eq!(session.value("1 + 1").await, "2");
}

/// One session for all of it: none of these depends on what the others define.
#[tokio::test]
async fn code_that_reads_its_input_asks_for_it_and_is_answered() {
    let mut session = Session::start().await;
    code_that_reads_a_line_asks_for_it(&mut session).await;
    the_line_that_the_code_has_begun_is_what_it_asks(&mut session).await;
    an_answer_is_read_by_characters_lines_or_whole(&mut session).await;
    what_nobody_answers_is_the_end_of_input(&mut session).await;
    an_interrupt_ends_the_wait_for_an_answer(&mut session).await;
}

async fn code_that_reads_a_line_asks_for_it(session: &mut Session) {
    for read in [
        "System.Console.ReadLine()",
        "stdin.ReadLine()",
        "System.Console.In.ReadLine()",
        "stdin.ReadLineAsync().Result",
        "async { return stdin.ReadLine() } |> Async.RunSynchronously",
    ] {
        let (prompts, value) = session.converse(read, &["Ada é"]).await;
        assert_eq!((prompts, &*value), (vec!["the code reads a line".to_owned()], "\"Ada é\""), "{read}");
    }
}

async fn the_line_that_the_code_has_begun_is_what_it_asks(session: &mut Session) {
    let asks = |prompt: &str| format!("printf \"first\\n{prompt} \"; stdin.ReadLine()");
    assert_eq!(session.converse(&asks("Näme?"), &["Ada"]).await.0, ["Näme?"]);
    let two = format!("let name = ({})\n{}", asks("Name?"), asks("Age?"));
    assert_eq!(session.converse(&two, &["Ada", "36"]).await.0, ["Name?", "Age?"]);
    let long = "printf \"%s?\" (String.replicate 100000 \"é\"); stdin.ReadLine()";
    let long = session.converse(long, &["x"]).await.0;
    assert!(long[0].ends_with("éé?") && long[0].chars().count() < 500, "{long:?}");
    session.eval("printf \"of an earlier job\"").await;
    assert_eq!(session.converse("stdin.ReadLine()", &["x"]).await.0, ["the code reads a line"]);
}

async fn an_answer_is_read_by_characters_lines_or_whole(session: &mut Session) {
    for (code, answers, value) in [
        ("char (stdin.Peek()), char (stdin.Read()), stdin.ReadLine()", &["abc"][..], "('a', 'a', \"bc\")"),
        ("stdin.ReadLine(), stdin.ReadLine()", &["a\r\nb"], "(\"a\", \"b\")"),
        ("stdin.ReadLine(), stdin.ReadLine()", &["", "b"], "(\"\", \"b\")"),
        ("stdin.ReadLine(), stdin.ReadToEnd()", &["a\nb", "c\nd"], "(\"a\", \"b\nc\nd\")"),
        ("let text = Array.zeroCreate 9 in stdin.Read(text, 1, 8), text.[2]", &["ab"], "(3, 'b')"),
        ("stdin.Read(Array.zeroCreate 1, 0, 1)", &["left over"], "1"),
        ("stdin.ReadLine()", &["fresh"], "\"fresh\""),
    ] {
        assert_eq!(session.converse(code, answers).await.1, value, "{code}");
    }
}

async fn what_nobody_answers_is_the_end_of_input(session: &mut Session) {
    let code = "isNull (stdin.ReadLine()), stdin.Read(), stdin.Peek(), stdin.ReadToEnd()";
    let job = session.submit(code).await;
    for _ in 0..4 {
        let (ask, _) = session.asks(job).await;
        session
            .worker
            .runner
            .process()
            .answer(AskAnswer::open(ask, Err(Error::TimedOut { limit_ms: 5 })))
            .await;
    }
    let value = session.end_of(job).await.report.result.value;
    assert_eq!(value.as_deref(), Some("(true, -1, -1, \"\")"));
}

#[tokio::test]
async fn code_that_its_job_left_running_is_at_the_end_of_its_input() {
    let mut session = Session::start().await;
    session.eval("let gate = new System.Threading.ManualResetEventSlim()").await;
    session.eval("let late = System.Threading.Tasks.Task.Run(fun () -> gate.Wait(); stdin.ReadLine())").await;
    let reads_after = |late: &str| format!("gate.Set(); isNull {late}.Result, stdin.ReadLine()");
    assert_eq!(session.converse(&reads_after("late"), &["a"]).await.1, "(true, \"a\")");

    let begins = "let waits = System.Threading.Tasks.Task.Run(fun () -> stdin.ReadLine());;\nSystem.Threading.Thread.Sleep -1";
    let begins = session.submit(begins).await;
    session.asks(begins).await;
    soon(session.worker.runner.process().interrupt()).await;
    session.end_of(begins).await;
    assert_eq!(session.converse(&reads_after("waits"), &["b"]).await.1, "(true, \"b\")");
}

#[tokio::test]
async fn an_exception_has_the_frames_of_the_clients_code_and_of_what_caused_it() {
    let mut session = Session::start().await;
    let code = "let inner () : int = failwith \"inner\"
let outer () = try inner () with e -> raise (System.InvalidOperationException(\"outer\", e))";
    session.eval(code).await;
    let ran = session.eval("let all =\n  [ 1 ] |> List.map (fun _ -> outer ())").await;
    let JobEnding::Raised(raised) = ran.report.ending else { panic!("{:?}", ran.report.ending) };
    insta::assert_snapshot!(raised.stack.unwrap(), @"
      at outer(), line 2
      at all@2.Invoke(Int32 _arg1), line 2
      at line 2
    ---> System.Exception: inner
      at outer(), line 2
    ");
}

/// .NET aborts a thread out of a tight loop only once; SDK 3.1's cannot do it at all.
#[tokio::test]
async fn tight_loops_are_interrupted_again_and_again_and_the_worker_stays() {
    let mut session = Session::start().await;
    session.eval("let kept = 5").await;
    for _ in 0..3 {
        let job = session.submit("printf \"spins\"\nwhile true do ()").await;
        assert!(session.prints("spins").await);
        session.worker.runner.process().interrupt().await;
        let ran = session.end_of(job).await;
        assert!(matches!(ran.report.ending, JobEnding::Interrupted { .. }), "{:?}", ran.report.ending);
    }
    assert_eq!(session.value("kept").await, "5");
}

#[tokio::test]
async fn what_code_set_of_its_thread_stays_also_after_an_interrupt() {
    let mut session = Session::start().await;
    session
        .eval("System.Globalization.CultureInfo.CurrentCulture <- System.Globalization.CultureInfo \"de-DE\"")
        .await;
    let culture = "System.Globalization.CultureInfo.CurrentCulture.Name";
    assert_eq!(session.value(culture).await, "\"de-DE\"");
    let job = session.submit("printf \"waits\"; System.Threading.Thread.Sleep 600000").await;
    assert!(session.prints("waits").await);
    session.worker.runner.process().interrupt().await;
    session.end_of(job).await;
    assert_eq!(session.value(culture).await, "\"de-DE\"");
}

async fn an_interrupt_ends_the_wait_for_an_answer(session: &mut Session) {
    for read in ["stdin.ReadLine()", "async { return stdin.ReadLine() } |> Async.RunSynchronously"] {
        let job = session.submit(&format!("let before = 1;;\nlet never = {read}")).await;
        let (ask, _) = session.asks(job).await;
        soon(session.worker.runner.process().interrupt()).await;
        session.worker.runner.process().answer(AskAnswer::open(ask, Err(Error::Cancelled))).await;
        assert_eq!(session.end_of(job).await.report.ending, JobEnding::Interrupted { kept: 16 }, "{read}");
    }
    assert_eq!(session.converse("stdin.ReadLine()", &["a"]).await.1, "\"a\"");
}

#[tokio::test]
async fn interrupted_code_says_how_much_of_it_had_run_and_matters() {
    let mut session = Session::start().await;
    let spin = "System.Threading.Thread.Sleep(-1)";
    for (before, kept) in [
        ("", ""),
        ("printfn \"é\";; let é = 1;; é + 1;;\n", "printfn \"é\";; let é = 1;; é + 1;;"),
        ("1 + 1;; ", "1 + 1;;"),
        ("let x = 1;;\n\n;;  ", "let x = 1;;"),
    ] {
        let job = session.submit(&format!("{before}printfn \"spins\"\n{spin};; let never = 1")).await;
        while !session.prints("spins").await {}
        session.worker.runner.process().interrupt().await;
        let ending = session.end_of(job).await.report.ending;
        assert_eq!(ending, JobEnding::Interrupted { kept: kept.len() }, "{before}");
    }
}

/// Code that leaves something running which ends the process later.
const TOO_LATE: [&str; 3] = [
    "System.Threading.Thread(fun () -> block ()).Start()",
    "System.Threading.ThreadPool.QueueUserWorkItem(fun _ -> block ()) |> ignore",
    "async { block () } |> Async.Start",
];

#[tokio::test]
async fn a_worker_that_is_ended_by_what_earlier_code_left_running_names_its_job() {
    for haunts in TOO_LATE {
        let mut session = Session::start().await;
        session.eval("let gate = new System.Threading.ManualResetEventSlim()").await;
        session.eval("let block () = gate.Wait(); failwith \"too late\"").await;
        let haunter = session.submit(haunts).await;
        assert_eq!(session.end_of(haunter).await.report.ending, JobEnding::Completed, "{haunts}");
        session.eval("let innocent = 1").await;
        let releases = "try failwith \"caught\" with _ -> ()\ngate.Set()\nSystem.Threading.Thread.Sleep(-1)";
        session.submit(releases).await;
        let reason = Some("System.Exception: too late".to_owned());
        assert_eq!(
            session.last_words().await,
            Some(LastWords { blame: Blame { job: haunter, is_sure: true }, reason, diagnostics: Vec::new() }),
            "{haunts}"
        );
    }
}

#[tokio::test]
async fn of_those_who_throw_the_same_exception_the_last_is_named() {
    let mut session = Session::start().await;
    session.eval("let broken : Lazy<int> = lazy (failwith \"too late\")").await;
    session.eval("try broken.Value |> ignore with _ -> ()").await;
    let haunter =
        session.submit("System.Threading.Thread(fun () -> printfn \"%d\" broken.Value).Start()").await;
    let reason = Some("System.Exception: too late".to_owned());
    let blame = Blame { job: haunter, is_sure: true };
    assert_eq!(session.last_words().await, Some(LastWords { blame, reason, diagnostics: Vec::new() }));
}

#[tokio::test]
async fn a_worker_that_is_killed_names_nobody() {
    let mut session = Session::start().await;
    session.eval("try failwith \"caught\" with _ -> ()").await;
    session.worker.runner.process().kill();
    assert_eq!(session.last_words().await, None);
}

#[tokio::test]
async fn an_interrupt_without_a_job_leaves_the_next_one_alone() {
    let mut session = Session::start().await;
    session.worker.runner.process().interrupt().await;
    assert_eq!(session.value("1 + 1").await, "2");
}

#[tokio::test]
async fn killing_a_worker_ends_what_it_started() {
    let mut session = Session::start().await;
    let child = session.value("System.Diagnostics.Process.Start(\"sleep\", \"1000\").Id").await;
    let child = watch(child.parse().unwrap());
    assert!(!has_ended(&child, Duration::ZERO));
    session.worker.runner.process().kill();
    assert!(has_ended(&child, PATIENCE));
    let exited = soon(session.worker.notices.recv()).await;
    assert_eq!(exited, Some(RunnerNotice::Exited { exit: WorkerExit::Signal(9), last_words: None }));
    assert_eq!(soon(session.worker.notices.recv()).await, None);
}

#[tokio::test]
async fn a_worker_whose_last_handle_is_dropped_ends() {
    let session = Session::start().await;
    let process = watch(session.worker.runner.process().info().pid.unwrap());
    drop(session);
    assert!(has_ended(&process, PATIENCE));
}

/// A killed one would leave them behind.
#[tokio::test]
async fn a_worker_opens_no_doors_for_debuggers_unless_it_is_told_to() {
    let told =
        ["COMPlus_EnableDiagnostics", "DOTNET_EnableDiagnostics"].map(|name| (name.into(), "1".into()));
    for (said, opens) in [(Vec::new(), false), (told.into(), true)] {
        let temporary = tempfile::tempdir().unwrap();
        let mut environment: Vec<(OsString, OsString)> = said;
        environment.push(("TMPDIR".into(), temporary.path().into()));
        let mut session = Session::start_in(environment).await;
        assert_eq!(session.value("1 + 1").await, "2");
        let names = std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let is_door = |name: &OsString| {
            let name = name.to_str().unwrap();
            name.starts_with("clr-debug-pipe-") || name.starts_with("dotnet-diagnostic-")
        };
        assert_eq!(names.filter(is_door).count() > 0, opens);
    }
}

/// A worker on its bare channel, its session open.
struct Bare {
    process: Child,
    channel: Framed<UnixStream, LengthDelimitedCodec>,
    folder: TempDir,
}

impl Bare {
    async fn start() -> Self {
        let program = program().await;
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut process = Command::new(&program.program);
        process.args(&program.arguments).envs(program.environment).kill_on_drop(true);
        process.env("MAINSTAY_WORKER_ADDRESS", format!("unix:{}", socket.display()));
        process.env("MAINSTAY_WORKER_TOKEN", "secret");
        let process = process.spawn().unwrap();
        let (stream, _) = soon(listener.accept()).await.unwrap();
        let hello = json!({"type": "hello", "id": 1, "protocol": 1, "workingDirectory": folder.path()});
        let channel = Framed::new(stream, LengthDelimitedCodec::new());
        let mut bare = Self { process, channel, folder };
        assert_eq!(bare.receive().await["type"], "attach");
        bare.send(hello).await;
        assert_eq!(bare.receive().await["type"], "ready");
        bare
    }

    async fn send(&mut self, message: Value) {
        self.channel.send(Bytes::from(message.to_string())).await.unwrap();
    }

    /// Code that waits for [`Bare::release`].
    fn waiting(&self) -> String {
        let release = self.folder.path().join("release");
        format!("while not (System.IO.File.Exists {release:?}) do System.Threading.Thread.Sleep 5")
    }

    fn release(&self) {
        std::fs::write(self.folder.path().join("release"), "").unwrap();
    }

    /// The next message that is not about progress.
    async fn receive(&mut self) -> Value {
        loop {
            let frame = soon(self.channel.next()).await.expect("the worker closed its channel").unwrap();
            let message: Value = serde_json::from_slice(&frame).unwrap();
            if message["type"] != "progress" {
                return message;
            }
        }
    }
}

#[tokio::test]
async fn an_eval_that_is_interrupted_before_it_begins_never_runs() {
    let mut worker = Bare::start().await;
    worker
        .send(json!({"type": "eval", "id": 2, "code": "System.Threading.Thread.Sleep 500; \"first\""}))
        .await;
    worker.send(json!({"type": "eval", "id": 3, "code": "let second = 1"})).await;
    worker.send(json!({"type": "interrupt", "id": 4, "eval": 3})).await;
    worker.send(json!({"type": "eval", "id": 5, "code": "second"})).await;
    let gist =
        |message: Value| (message["id"].clone(), message["outcome"].clone(), message["changesState"].clone());
    assert_eq!(worker.receive().await, json!({"type": "interrupted", "id": 4}));
    worker.release();
    assert_eq!(gist(worker.receive().await), (json!(2), json!("completed"), json!(true)));
    assert_eq!(gist(worker.receive().await), (json!(3), json!("interrupted"), json!(false)));
    assert_eq!(gist(worker.receive().await), (json!(5), json!("rejected"), json!(false)));
}

#[tokio::test]
async fn an_interrupt_for_an_eval_that_has_ended_leaves_the_next_one_alone() {
    let mut worker = Bare::start().await;
    worker.send(json!({"type": "eval", "id": 2, "code": "1"})).await;
    assert_eq!(worker.receive().await["outcome"], "completed");
    let waiting = worker.waiting();
    worker.send(json!({"type": "eval", "id": 3, "code": waiting})).await;
    worker.send(json!({"type": "interrupt", "id": 4, "eval": 2})).await;
    assert_eq!(worker.receive().await, json!({"type": "interrupted", "id": 4}));
    worker.release();
    assert_eq!(worker.receive().await["outcome"], "completed");
}

#[tokio::test]
async fn a_worker_whose_channel_closes_ends_although_its_code_goes_on() {
    let mut worker = Bare::start().await;
    let busy = "let thread = System.Threading.Thread(fun () -> while true do ())
thread.Start()";
    worker.send(json!({"type": "eval", "id": 2, "code": busy})).await;
    assert_eq!(worker.receive().await["outcome"], "completed");
    worker.send(json!({"type": "eval", "id": 3, "code": "while true do ()"})).await;
    let process = watch(worker.process.id().unwrap());
    drop(worker.channel);
    assert!(has_ended(&process, PATIENCE));
}

/// Compiles a library with the compiler of the SDK under test.
async fn compile(library: &Path, source: &str) {
    compile_with(library, source, &[]).await;
}

/// The same, for one that needs others.
async fn compile_with(library: &Path, source: &str, needs: &[&Path]) {
    let WorkerProgram { program, environment, .. } = program().await;
    let sdk = program.parent().unwrap();
    let compilers = ["fsc.dll", "fsc.exe"].map(|name| only(&sdk.join("sdk")).join("FSharp").join(name));
    let fsc = compilers.into_iter().find(|compiler| compiler.exists()).unwrap();
    let pack = only(&only(&sdk.join("packs/Microsoft.NETCore.App.Ref")).join("ref"));
    let file = library.with_extension("fs");
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new(&program);
    compiler.envs(environment).arg("exec").arg(&fsc);
    compiler.args([
        "--target:library",
        "--nologo",
        "--targetprofile:netcore",
        "--noframework",
        "--debug-",
        "--nocopyfsharpcore",
    ]);
    compiler.arg(format!("-o:{}", library.display()));
    let assemblies = std::fs::read_dir(pack).unwrap().map(|entry| entry.unwrap().path());
    for path in assemblies.filter(|path| path.extension().is_some_and(|end| end == "dll")) {
        compiler.arg(format!("-r:{}", path.display()));
    }
    for need in needs {
        compiler.arg(format!("-r:{}", need.display()));
    }
    compiler.arg(format!("-r:{}", fsc.with_file_name("FSharp.Core.dll").display())).arg(&file);
    let output = compiler.output().await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr)
    );
}

/// The one folder in a folder.
fn only(folder: &Path) -> PathBuf {
    std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// What a worker says of each submission: what it touched, where it could tell.
async fn touched(worker: &mut Bare, codes: &[&str]) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for (code, id) in codes.iter().zip(100..) {
        worker.send(json!({"type": "eval", "id": id, "code": code})).await;
        let result = worker.receive().await;
        assert_eq!(result["outcome"], "completed", "{code}: {result}");
        let names = result["touched"].as_array();
        all.push(
            names.map(|names| names.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>().join(" ")),
        );
    }
    all
}

fn some(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|names| Some((*names).to_owned())).collect()
}

const LIBRARY: &str =
    "module Lib\nlet rate () = 1\n[<Literal>]\nlet Limit = 7\ntype Box(x: int) =\n  member _.X = x";

/// A worker that has used nothing of a library and two scripts yet, one of which loads the other.
async fn with_library() -> Bare {
    let worker = Bare::start().await;
    let folder = worker.folder.path();
    compile(&folder.join("lib.dll"), LIBRARY).await;
    std::fs::write(folder.join("inner.fsx"), "let deep = 3").unwrap();
    std::fs::write(folder.join("helpers.fsx"), "#load \"inner.fsx\"\nlet help x = x + Inner.deep").unwrap();
    worker
}

#[tokio::test]
async fn a_worker_says_what_code_touched_of_a_library_and_of_scripts() {
    let mut worker = with_library().await;
    let codes = [
        ("let plain = 1", ""),
        ("#r \"lib.dll\"\nlet a = Lib.rate ()", "lib.dll"),
        ("plain + 1", ""),
        ("a + plain", "lib.dll"),
        ("Lib.Limit", "lib.dll"),
        ("Lib.Box 2", "lib.dll"),
        ("it.X", "lib.dll"),
        ("#load \"helpers.fsx\"", "helpers.fsx inner.fsx"),
        ("Helpers.help 1", "helpers.fsx inner.fsx"),
        ("Inner.deep", "inner.fsx"),
        ("type P = { V: int }", ""),
        ("{ V = Lib.rate () }.V", "lib.dll"),
        ("({ V = 3 }).V", ""),
    ];
    let said = touched(&mut worker, &codes.map(|(code, _)| code)).await;
    assert_eq!(said, some(&codes.map(|(_, names)| names)));
}

#[tokio::test]
async fn what_a_value_got_from_a_library_goes_on_with_it() {
    let mut worker = with_library().await;
    let codes = [
        ("let early = ref 0", ""),
        ("#r \"lib.dll\"\nlet a = Lib.rate ()", "lib.dll"),
        ("let double y = y * 2", ""),
        ("let b = double a", "lib.dll"),
        ("double 2", ""),
        ("b", "lib.dll"),
        // What changes is followed to whatever was made of the same.
        ("early.Value", ""),
        ("let one, other = ref 1, ref 2", ""),
        ("let alias = one", ""),
        ("alias.Value <- Lib.rate ()", "lib.dll"),
        ("one.Value", "lib.dll"),
        ("early.Value <- Lib.rate ()", "lib.dll"),
        ("early.Value", "lib.dll"),
        ("let cache = System.Collections.Generic.List<int>()", ""),
        ("let put x = cache.Add x", ""),
        ("put (Lib.rate ())", "lib.dll"),
        ("cache.Count", "lib.dll"),
        // A name that is given anew is another.
        ("let b = 5", ""),
        ("b", ""),
    ];
    let said = touched(&mut worker, &codes.map(|(code, _)| code)).await;
    assert_eq!(said, some(&codes.map(|(_, names)| names)));
}

#[tokio::test]
async fn code_that_reflects_cannot_be_told_from_and_neither_can_what_came_of_it() {
    let mut worker = with_library().await;
    let reflects = "let found = System.Reflection.Assembly.GetExecutingAssembly().GetName().Name.Length";
    let codes = ["#r \"lib.dll\"", reflects, "found", "1 + 1"];
    let said = touched(&mut worker, &codes).await;
    assert_eq!(said[1..], [None, None, Some(String::new())]);
}

#[tokio::test]
async fn what_a_session_rests_on_is_told_with_its_content_when_it_changes() {
    let mut worker = with_library().await;
    let mut id = 100;
    let mut environment = async |worker: &mut Bare, code: &str| {
        id += 1;
        worker.send(json!({"type": "eval", "id": id, "code": code})).await;
        let result = worker.receive().await;
        assert_eq!(result["outcome"], "completed", "{code}: {result}");
        result["environment"].clone()
    };
    assert_eq!(environment(&mut worker, "1 + 1").await, Value::Null);
    let library = worker.folder.path().join("lib.dll");
    let script = worker.folder.path().join("helpers.fsx");
    let of = |path: &Path| {
        let digest = Sha256::digest(std::fs::read(path).unwrap());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"name": path.file_name().unwrap().to_str(), "path": path, "hash": hash})
    };
    let first = environment(&mut worker, "#r \"lib.dll\"\nLib.rate ()").await;
    assert_eq!(first["references"], json!([of(&library)]));
    assert_eq!(environment(&mut worker, "Lib.rate ()").await, Value::Null);
    // An assembly stays as it is in its process, a script is read anew.
    let had = of(&library);
    compile(&worker.folder.path().join("other.dll"), "module Lib\nlet rate () = 2").await;
    std::fs::rename(worker.folder.path().join("other.dll"), &library).unwrap();
    assert_eq!(environment(&mut worker, "Lib.rate ()").await, Value::Null);
    for text in ["let x = 1".to_owned(), "// ".to_owned() + &"é".repeat(40_000)] {
        std::fs::write(&script, text).unwrap();
        let loaded = environment(&mut worker, "#load \"helpers.fsx\"").await;
        assert_eq!(loaded["references"], json!([had, of(&script)]));
    }
}

/// What the process's objects take once those are gone that nothing refers to, in bytes.
async fn memory_after_reset(session: &mut Session) -> i64 {
    soon(session.worker.runner.kernel().unwrap().reset()).await.unwrap();
    session.eval("type Kept = { A: int }").await;
    soon(session.worker.runner.kernel().unwrap().check("let a = { A = 1 }".to_owned(), None)).await.unwrap();
    session.value("System.GC.GetTotalMemory true").await.trim_end_matches('L').parse().unwrap()
}

#[tokio::test]
async fn a_session_that_was_reset_takes_no_memory_any_more() {
    let mut session = Session::start().await;
    // What the first sessions read is kept for all.
    let mut taken = Vec::new();
    for _ in 0..6 {
        taken.push(memory_after_reset(&mut session).await);
    }
    // A session's own tables are 32 MB.
    assert!(taken[5] - taken[1] < 32_000_000, "{taken:?}");
}

#[tokio::test]
async fn what_code_left_running_prints_is_of_its_own_job() {
    let mut session = Session::start().await;
    for starts in [
        "Async.Start(async { late () })",
        "System.Threading.Tasks.Task.Run(late) |> ignore",
        "let timer = new System.Threading.Timer((fun _ -> late ()), null, 0, -1)",
        "System.Threading.Thread(late).Start()",
    ] {
        let code = format!(
            "open System.Threading
let go, printed = new ManualResetEventSlim(false), new ManualResetEventSlim(false)
let late () =
    go.Wait()
    printf \"läte\"
    eprintf \"error\"
    Mainstay.display 1
    printed.Set()
{starts}"
        );
        let left = session.submit(&code).await;
        session.end_of(left).await;
        let stirs = session.submit("go.Set()\nprinted.Wait()\nprintf \"own\"").await;
        let mut seen = Vec::new();
        loop {
            match soon(session.worker.notices.recv()).await.unwrap() {
                RunnerNotice::Output { job, stream, text } => seen.push((job, format!("{stream:?} {text}"))),
                RunnerNotice::Display { job, .. } => seen.push((job, "a display".to_owned())),
                RunnerNotice::Finished { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        let of = |job, text: &str| (Some(job), text.to_owned());
        let expected = [
            of(left, "Stdout läte"),
            of(left, "Stderr error"),
            of(left, "a display"),
            of(stirs, "Stdout own"),
        ];
        assert_eq!(seen, expected, "{starts}");
    }
}

#[tokio::test]
async fn what_withheld_code_left_running_prints_names_no_job() {
    let mut session = Session::start().await;
    let code = "let go = new System.Threading.ManualResetEventSlim(false)
Async.Start(async { go.Wait(); printf \"secret\" })";
    let job = JobId::from_uuid(uuid::Uuid::now_v7());
    let submission =
        Submission { job, code: code.to_owned(), file: None, command_line: None, is_withheld: true };
    session.worker.runner.kernel().unwrap().run(submission).await;
    session.end_of(job).await;
    let stirs = session.submit("go.Set(); System.Threading.Thread.Sleep -1").await;
    match soon(session.worker.notices.recv()).await.unwrap() {
        RunnerNotice::Output { job, .. } => assert_eq!(job, Some(stirs)),
        other => panic!("{other:?}"),
    }
}

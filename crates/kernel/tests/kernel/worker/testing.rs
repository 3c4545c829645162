//! Tests that code of a session runs: those it defined, and those of assemblies it refers to. NUnit is the old one of `cargo xtask test`, which has
//! no engine at hand; the other frameworks are those of the projects in `engines/`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::OnceLock;

use mainstay_model::{
    Display, TestFailure, TestOutcome, TestProgress, TestResult, TestRun, TestSelection, TestTimeout,
};
use mainstay_runner::query::{KernelQuery, Tests};

use super::displays::Out;
use super::*;

/// The assemblies of MSTest that tests refer to. Its engine is in others.
const MSTEST: [&str; 2] = ["MSTest.TestFramework", "MSTest.TestFramework.Extensions"];

/// The folder of a library of tests of MSTest, with its framework and without its adapter; compiled once for all tests and for as long as its source stays as it is.
fn shop_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(compiled).clone()
}

fn compiled() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks/Shop.Tests.fs");
    let hash = Sha256::digest(fs::read(&source).unwrap());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let shelf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frameworks");
    let folder = shelf.join(hash);
    fs::create_dir_all(&shelf).unwrap();
    let lock = fs::File::create(shelf.join("lock")).unwrap();
    lock.lock().unwrap();
    if !folder.is_dir() {
        let staging = tempfile::tempdir_in(&shelf).unwrap();
        let references = MSTEST.map(|name| {
            let framework = staging.path().join(format!("{name}.dll"));
            fs::copy(engines::assembly("MS", name), &framework).unwrap();
            framework
        });
        compile(&source, &staging.path().join("Shop.Tests.dll"), references.into_iter());
        fs::rename(staging.keep(), &folder).unwrap();
    }
    folder
}

/// Compiles a library with the compiler of the SDK under test.
pub(super) fn compile(source: &Path, output: &Path, references: impl Iterator<Item = PathBuf>) {
    let parts = choose(&support::search(Path::new("/nowhere"))).unwrap().parts().unwrap();
    let assemblies = fs::read_dir(parts.references).unwrap().map(|entry| entry.unwrap().path());
    let assemblies = assemblies.filter(|path| path.extension().is_some_and(|extension| extension == "dll"));
    let option = |name: &str, path: &Path| {
        let mut option = OsString::from(name);
        option.push(path);
        option
    };
    let mut program = Program::new(parts.host);
    program.arg("exec").arg(parts.compiler);
    program.args(["--target:library", "--nologo", "--targetprofile:netcore", "--noframework", "--debug-"]);
    program.args(["--nocopyfsharpcore", "--nowarn:52"]);
    program.args(
        assemblies
            .chain([parts.fsharp.join("FSharp.Core.dll")])
            .chain(references)
            .map(|path| option("-r:", &path)),
    );
    program.arg(option("-o:", output)).arg(source);
    program.envs([("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"), ("DOTNET_CLI_TELEMETRY_OPTOUT", "1")]);
    let compiled = program.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stdout));
}

fn nunit() -> String {
    let path = env::var("MAINSTAY_TEST_NUNIT")
        .expect("MAINSTAY_TEST_NUNIT must name NUnit's assembly; `cargo xtask test` sets it");
    format!("#r @\"{path}\"\nopen NUnit.Framework\n")
}

fn shop() -> String {
    let folder = shop_library();
    let files = MSTEST.iter().copied().chain(["Shop.Tests"]);
    files.map(|name| format!("#r @\"{}/{name}.dll\"\n", folder.display())).collect()
}

/// What a run put out.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) run: TestRun,
    pub(super) text: String,
    printed: String,
    report: JobReport,
}

impl Session {
    pub(super) async fn defines(&mut self, code: &str) {
        let ran = self.eval(code).await;
        assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);
    }

    pub(super) async fn test(&mut self, selection: &TestSelection) -> Tested {
        let (outputs, report) = self.outputs(&selection.code()).await;
        assert_eq!(report.ending, JobEnding::Completed, "{:?}", report.result.diagnostics);
        let mut printed = String::new();
        let mut shown = None;
        for output in outputs {
            match output {
                Out::Printed(text) => printed.push_str(&text),
                Out::Shown(display) => shown = Some(display),
            }
        }
        let shown = shown.unwrap();
        let run = TestRun::shown(&shown).unwrap();
        Tested { run, text: shown.data.text().to_owned(), printed, report }
    }

    pub(super) async fn test_all(&mut self) -> Tested {
        self.test(&TestSelection::default()).await
    }

    pub(super) async fn tests(&self, pattern: Option<&str>, category: Option<&str>) -> Tests {
        let query =
            KernelQuery::Tests { pattern: pattern.map(str::to_owned), category: category.map(str::to_owned) };
        soon(self.worker.runner.kernel().unwrap().query(query)).await.unwrap().tests().unwrap()
    }
}

/// Runs tests of which the second waits to be answered, which it is once the first is told to have ended. A line for each result by the
/// displays in which it was told, the lines that people were told, and the report.
pub(super) async fn told_while_it_runs(session: &mut Session) -> (Vec<String>, String, TestRun) {
    let job = session.submit("Mainstay.Tests.run(progressMs = 1)").await;
    let (mut asked, mut shown) = (None, Vec::<Display>::new());
    loop {
        match soon(session.worker.notices.recv()).await.unwrap() {
            RunnerNotice::Asks { ask, .. } => asked = Some(ask),
            RunnerNotice::Display { display, .. } => shown.push(*display),
            RunnerNotice::Finished { job: ended, report } if ended == job => {
                assert_eq!(report.ending, JobEnding::Completed);
                break;
            }
            _ => {}
        }
        if !shown.is_empty()
            && let Some(ask) = asked.take()
        {
            session.worker.runner.process().answer(AskAnswer::open(ask, Ok(json!("go on")))).await;
        }
    }
    let report = shown.pop().unwrap();
    assert!(shown.iter().all(|display| display.id.is_some() && display.id == report.id), "it replaces them");
    let progress: Vec<_> = shown.iter().map(|display| TestProgress::shown(display).unwrap()).collect();
    let nth = |number: usize| u64::try_from(number).unwrap();
    assert!(progress.iter().enumerate().all(|(index, one)| one.nth == nth(index + 1)), "{progress:?}");
    let results = progress.iter().map(|one| one.tests.iter().map(line).collect::<Vec<_>>().join("; "));
    let lines: Vec<_> = progress.iter().map(|one| &*one.lines).filter(|lines| !lines.is_empty()).collect();
    assert!(progress.last().unwrap().has_told_all);
    (results.collect(), lines.join("\n"), TestRun::shown(&report).unwrap())
}

#[tokio::test]
async fn a_result_is_told_while_the_run_goes_on() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session
        .defines("[<Test>]\nlet adds () = ()\n[<Test>]\nlet waits () = stdin.ReadLine() |> ignore\n[<Test>]\nlet fails () = Assert.Fail \"no\"")
        .await;
    let (told, lines, run) = told_while_it_runs(&mut session).await;
    assert_eq!(told[0], "NUnit adds: passed", "the next waited");
    assert_eq!(told.join("; ").split("; ").filter(|line| !line.is_empty()).count(), 3, "{told:?}");
    assert!(lines.starts_with("passed   adds (") && lines.contains("\n2 passed, 1 failed in "), "{lines}");
    assert_eq!((run.passed, run.failed, run.tests.len()), (2, 1, 3));
    let (shown, _) = session.outputs("Mainstay.Tests.run(pattern = \"adds\", progressMs = 0)").await;
    assert!(matches!(&shown[..], [Out::Shown(Display { id: None, .. })]), "{shown:?}");
}

/// A line for each test, without what differs from run to run.
pub(super) fn lines(run: &TestRun) -> String {
    let mut lines: Vec<_> = run.tests.iter().map(line).collect();
    lines.extend(run.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

fn line(test: &TestResult) -> String {
    let TestResult { name, framework, categories, outcome, .. } = test;
    let categories = if categories.is_empty() { String::new() } else { format!(" {categories:?}") };
    match outcome {
        TestOutcome::Passed => format!("{framework} {name}{categories}: passed"),
        TestOutcome::Skipped { reason } => format!("{framework} {name}{categories}: skipped, {reason}"),
        TestOutcome::TimedOut { limit_ms } => format!("{framework} {name}{categories}: over {limit_ms} ms"),
        TestOutcome::Failed { failure } => {
            let TestFailure { kind, message, expected, actual, .. } = &**failure;
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{framework} {name}{categories}: {kind}, {message} ({expected:?}, {actual:?})")
        }
    }
}

fn pattern(pattern: &str) -> TestSelection {
    TestSelection { pattern: Some(pattern.to_owned()), ..TestSelection::default() }
}

const SUMS: &str = "
[<Test>]
let ``one and one`` () = Assert.AreEqual(2, 1 + 1)
[<Test; Category \"wrong\">]
let ``two and two`` () = Assert.AreEqual(5, 2 + 2)
[<Test>]
let raises () = printfn \"printed by a test\"; invalidOp \"it cannot be\"
[<Test; Ignore \"not today\">]
let ignored () = failwith \"it must not run\"
[<TestCase(1, 2); TestCase(2, 5, TestName = \"named\"); TestCase(3, 6, Category = \"three\")>]
let doubled (given: int, expected: int) = Assert.AreEqual(expected, given * 2)
[<TestCase(4, ExpectedResult = 16)>]
let squared (given: int) = given * given
let rows = [ [| box 1; box \"one\" |]; [| box 2; box null |] ]
[<TestCaseSource \"rows\">]
let sourced (number: int, word: string) = Assert.IsNotNull word
[<Test>]
let awaited () = async { do! Async.Sleep 1
                         return Assert.AreEqual(1, 2) }
[<Test>]
let ``a task`` () : System.Threading.Tasks.Task = System.Threading.Tasks.Task.Run(fun () -> Assert.Fail \"later\")
[<Test>]
let unjudged () = Assert.Inconclusive \"who knows\"
";

#[tokio::test]
async fn tests_that_the_session_defined_are_run() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines(SUMS).await;
    let tested = session.test_all().await;
    insta::assert_snapshot!(lines(&tested.run));
    assert_eq!(tested.printed, "printed by a test\n");
    assert!(!tested.report.changes_state && tested.report.result.value_type.is_none(), "it is not run again");
    insta::assert_snapshot!(
        tested.text.lines().filter(|line| !line.contains(" ms")).collect::<Vec<_>>().join("\n")
    );
    let raised = tested.run.tests.iter().find(|test| test.name == "raises").unwrap();
    let TestOutcome::Failed { failure } = &raised.outcome else { panic!("{raised:?}") };
    assert!(failure.stack[0].starts_with("raises") && failure.stack.len() == 1, "{:?}", failure.stack);
}

#[tokio::test]
async fn a_test_is_meant_by_a_part_of_its_name_or_its_category() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines(SUMS).await;
    for (selection, names) in [
        (pattern("AND"), &["one and one", "two and two"][..]),
        (pattern("*and one"), &["one and one"]),
        (pattern("doubled(1, 2)"), &["doubled(1, 2)"]),
        (TestSelection { category: Some("Wrong".to_owned()), ..TestSelection::default() }, &["two and two"]),
        (TestSelection { category: Some("three".to_owned()), ..pattern("doub") }, &["doubled(3, 6)"]),
    ] {
        let run = session.test(&selection).await.run;
        assert_eq!(run.tests.iter().map(|test| &*test.name).collect::<Vec<_>>(), names, "{selection:?}");
    }
    let none = session.test(&pattern("nothing has this")).await.run;
    assert_eq!((none.count(), none.succeeded()), (0, false));
    insta::assert_snapshot!(none.notes.join("\n"), @"
    the tests of NUnit that the session defined run without its own engine, so not all of it works: version 2 is older than the engines that are known here
    none of the 13 tests is meant: the pattern is a part of a name, or with `*` the whole of it, and a category is named whole
    ");
}

#[tokio::test]
async fn of_tests_defined_again_only_the_newest_count() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines("[<Test>]\nlet adds () = Assert.AreEqual(3, 1 + 1)\n[<Test>]\nlet gone () = ()").await;
    session
        .defines(
            "module Sums =\n  [<Test>]\n  let first () = failwith \"old\"\n  [<Test>]\n  let dropped () = ()",
        )
        .await;
    assert_eq!(session.test_all().await.run.failed, 2);
    session.defines("[<Test>]\nlet adds () = Assert.AreEqual(2, 1 + 1)").await;
    session.defines("let gone = 1").await;
    session.defines("module Sums =\n  [<Test>]\n  let first () = ()").await;
    // What failed is not in the session.
    let failed = session
        .eval("[<Test>]\nlet adds () = failwith \"never defined\"\nif adds () then failwith \"stop\"")
        .await;
    assert!(matches!(failed.report.ending, JobEnding::Raised(_)));
    let run = session.test_all().await.run;
    insta::assert_snapshot!(lines(&run), @"
    NUnit adds: passed
    NUnit Sums.first: passed
    note: the tests of NUnit that the session defined run without its own engine, so not all of it works: version 2 is older than the engines that are known here
    ");
}

#[tokio::test]
async fn a_test_that_hangs_is_given_up_and_the_others_run() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session
        .defines(
            "let mutable goesOn = true
[<Test>]
let spins () = while goesOn do ()
[<Test>]
let sleeps () = System.Threading.Thread.Sleep -1
[<Test>]
let waits () = async { do! Async.Sleep 100000 }
[<Test>]
let works () = ()
[<Test; Timeout 20>]
let ``has less time`` () = System.Threading.Thread.Sleep -1",
        )
        .await;
    let short = TestSelection { timeout_ms: TestTimeout::new(100), ..TestSelection::default() };
    let tested = session.test(&short).await;
    insta::assert_snapshot!(lines(&tested.run), @"
    NUnit spins: over 100 ms
    NUnit sleeps: over 100 ms
    NUnit waits: over 100 ms
    NUnit works: passed
    NUnit has less time: over 20 ms
    note: the tests of NUnit that the session defined run without its own engine, so not all of it works: version 2 is older than the engines that are known here
    ");
    assert!(tested.run.must_restart);
    assert!(tested.text.contains("a hard reset of the session ends it"), "{}", tested.text);
    let others = session.test(&TestSelection { pattern: Some("s*s".to_owned()), ..short.clone() }).await.run;
    assert_eq!((others.timed_out, others.must_restart), (2, true));
    session.defines("goesOn <- false").await;
    let sleeper = session.test(&TestSelection { pattern: Some("sleeps".to_owned()), ..short }).await.run;
    assert_eq!((sleeper.timed_out, sleeper.must_restart), (1, false), "what can be woken up ends");
}

#[tokio::test]
async fn each_attribute_of_a_kind_gives_rows_of_its_own() {
    let mut session = Session::start().await;
    session.defines(&engines::xunit()).await;
    session
        .defines(
            "[<System.AttributeUsage(System.AttributeTargets.Method, AllowMultiple = true)>]
type RowAttribute(number: int) =
    inherit Xunit.Sdk.DataAttribute()
    member val Word = \"\" with get, set
    override this.GetData _ = Seq.singleton [| box number; box this.Word |]",
        )
        .await;
    session
        .defines(
            "[<Xunit.Theory; Row(1, Word = \"one\"); Row(2, Word = \"two\")>]
let given (number: int, word: string) = ()",
        )
        .await;
    insta::assert_snapshot!(engines::sorted(&session.test_all().await.run), @r#"
    xUnit given(number: 1, word: "one"): passed
    xUnit given(number: 2, word: "two"): passed
    "#);
}

const SOURCED: &str = "
let rows: seq<obj[]> = seq { printfn \"asked\"; yield [| box 1 |] }
[<Xunit.Theory; Xunit.MemberData(\"rows\"); Xunit.Trait(\"Category\", \"slow\")>]
let fetched (number: int) = ()";

#[tokio::test]
async fn only_submissions_whose_tests_may_be_meant_are_asked_for_arguments() {
    let mut session = Session::start().await;
    session.defines(&engines::xunit()).await;
    session.defines(SOURCED).await;
    session.defines("[<Xunit.Fact; Xunit.Trait(\"Category\", \"fast\")>]\nlet plain () = ()").await;
    let category = |name: &str| TestSelection { category: Some(name.to_owned()), ..TestSelection::default() };
    for (selection, names, printed) in [
        (pattern("plain"), &["plain"][..], ""),
        (pattern("pl*"), &["plain"], ""),
        (category("fast"), &["plain"], ""),
        (pattern("nothing"), &[], ""),
        (pattern("FETCH"), &["fetched(number: 1)"], "asked\n"),
        (pattern("fetched(*"), &["fetched(number: 1)"], "asked\n"),
        (pattern("(number: 1)"), &["fetched(number: 1)"], "asked\n"),
        (category("slow"), &["fetched(number: 1)"], "asked\n"),
    ] {
        let tested = session.test(&selection).await;
        assert_eq!(
            tested.run.tests.iter().map(|test| &*test.name).collect::<Vec<_>>(),
            names,
            "{selection:?}"
        );
        assert_eq!(tested.printed, printed, "{selection:?}");
    }
    let none = session.test(&pattern("nothing")).await.run.notes.join("\n");
    assert!(none.starts_with("none of the 2 tests is meant"), "{none}");
}

#[tokio::test]
async fn what_goes_on_is_told_also_where_it_is_not_meant() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session
        .defines(
            "let mutable goesOn = true
let rows: seq<obj[]> = seq { while goesOn do () }
[<Test; TestCaseSource \"rows\">]
let stuck (number: int) = ()",
        )
        .await;
    let short = TestSelection { timeout_ms: TestTimeout::new(100), ..pattern("(1)") };
    let run = session.test(&short).await.run;
    assert_eq!((run.count(), run.must_restart), (0, true));
    session.defines("goesOn <- false").await;
}

#[tokio::test]
async fn of_many_tests_of_one_name_those_that_did_not_pass_are_told() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session
        .defines(
            "let mutable count = 0
let rows: seq<obj[]> = Seq.replicate 1005 [| box 1 |]
[<Test; TestCaseSource \"rows\">]
let counted (number: int) =
    count <- count + 1
    if count = 1005 then failwith \"the last\"",
        )
        .await;
    let (shown, _) = session.outputs("Mainstay.Tests.run(progressMs = 1)").await;
    let shown = shown.into_iter().map(|out| match out {
        Out::Shown(display) => display,
        Out::Printed(text) => panic!("{text}"),
    });
    let (progress, run): (Vec<_>, Vec<_>) = shown.partition(|display| TestProgress::shown(display).is_some());
    let progress: Vec<_> = progress.iter().filter_map(TestProgress::shown).collect();
    let told: u64 = progress.iter().map(|one| one.tests.len() as u64 + one.left_out).sum();
    assert_eq!(told, 1005, "each is told once, however many displays there are");
    let lines: Vec<_> = progress.iter().flat_map(|one| one.lines.lines()).collect();
    let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!((count("passed "), count("failed ")), (50, 1), "of many that pass people see the first");
    let run = TestRun::shown(&run[0]).unwrap();
    assert_eq!((run.passed, run.failed, run.tests.len()), (1004, 1, 1000));
    let failed = |test: &TestResult| matches!(test.outcome, TestOutcome::Failed { .. });
    assert_eq!(run.tests.iter().position(failed), Some(999), "in the order in which they ran");
}

#[tokio::test]
async fn of_long_results_only_so_many_are_told_as_a_display_has_room_for() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session
        .defines(
            "let rows: seq<obj[]> = Seq.init 300 (fun number -> [| box number |])
[<Test; TestCaseSource \"rows\">]
let wordy (number: int) = failwith (String.replicate 8000 \"ä\")",
        )
        .await;
    let run = session.test_all().await.run;
    assert_eq!((run.failed, run.tests.len() as u64 + run.left_out), (300, 300));
    assert!(run.left_out > 0 && !run.tests.is_empty(), "{} of 300 are told", run.tests.len());
}

#[tokio::test]
async fn a_run_of_tests_is_cancelled_like_any_eval() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines("[<Test>]\nlet sleeps () = printfn \"begun\"; System.Threading.Thread.Sleep -1").await;
    let job = session.submit("Mainstay.Tests.run()").await;
    assert!(session.prints("begun").await);
    soon(session.worker.runner.process().interrupt()).await;
    assert_eq!(session.end_of(job).await.report.ending, JobEnding::Interrupted { kept: 0 });
    assert_eq!(session.value("1 + 1").await, "2");
}

#[tokio::test]
async fn compiled_tests_without_their_engine_are_run_with_what_they_are_set_up_with() {
    let mut session = Session::start().await;
    session.defines(&shop()).await;
    insta::assert_snapshot!(lines(&session.test_all().await.run));
    assert_eq!(session.value("Shop.Tests.noted()").await, "\"receipts opened; receipts closed\"");
}

#[tokio::test]
async fn tests_are_listed_and_none_of_them_runs() {
    let mut session = Session::start().await;
    session.defines(&(shop() + &nunit())).await;
    session.defines(SUMS).await;
    session.defines(&(engines::xunit() + SOURCED)).await;
    session.defines(&(engines::expecto() + "[<Expecto.Tests>]\nlet here = Expecto.Tests.testList \"here\" [ Expecto.Tests.ptestCase \"later\" ignore ]")).await;
    let all = session.tests(None, None).await;
    let told: Vec<_> = all
        .items
        .iter()
        .map(|test| {
            let place = test.assembly.as_deref().unwrap_or("session");
            let skipped = test.skipped.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            let cases = test.cases.map_or("?".to_owned(), |cases| cases.to_string());
            format!("{} {} in {place} x{cases} {:?}{skipped}", test.framework, test.name, test.categories)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(all.found, told.len() as u64);
    assert_eq!(session.value("Shop.Tests.noted()").await, "\"\"");
    let slow = session.tests(Some("fetch"), Some("slow")).await;
    assert_eq!(slow.items.iter().map(|test| &*test.name).collect::<Vec<_>>(), ["fetched"]);
}

#[tokio::test]
async fn what_makes_tests_when_it_is_asked_for_them_is_not_asked_by_a_list() {
    let mut session = Session::start().await;
    session.defines(&engines::expecto()).await;
    session
        .defines(
            "let mutable asked = 0
type Made() =
    [<Expecto.Tests>]
    static member All = asked <- asked + 1; Expecto.Tests.testCase \"one\" ignore",
        )
        .await;
    let listed = session.tests(None, None).await;
    let told: Vec<_> = listed.items.iter().map(|test| (&*test.name, test.cases)).collect();
    assert_eq!(told, [("Made.All", None)]);
    assert_eq!(session.value("asked").await, "0");
    assert_eq!(lines(&session.test_all().await.run), "Expecto one: passed");
}

#[tokio::test]
async fn where_there_are_no_tests_it_is_said_what_would_make_some() {
    let mut session = Session::start().await;
    insta::assert_snapshot!(session.test_all().await.text, @"no test was found, and nothing the session refers to knows a test framework: `#r` the assembly of your tests, or that of NUnit, xUnit, MSTest, TUnit or Expecto, and define tests with its attributes");
    session.defines(&nunit()).await;
    insta::assert_snapshot!(session.tests(None, None).await.notes.join("\n"), @"no test was found, although nunit.framework is referred to: mark functions or methods with its attributes, or `#r` the assembly of your tests");
}

#[tokio::test]
async fn withheld_code_and_an_ended_session_leave_no_tests() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    let job = JobId::from_uuid(uuid::Uuid::now_v7());
    let code = "[<Test>]\nlet secret () = ()".to_owned();
    session
        .worker
        .runner
        .kernel()
        .unwrap()
        .run(Submission { job, code, file: None, command_line: None, is_withheld: true })
        .await;
    assert_eq!(session.end_of(job).await.report.ending, JobEnding::Completed);
    assert_eq!((session.tests(None, None).await.found, session.test_all().await.run.count()), (0, 0));
    session.defines("[<Test>]\nlet open' () = ()").await;
    assert_eq!(session.test_all().await.run.count(), 1);
    soon(session.worker.runner.kernel().unwrap().reset()).await.unwrap();
    assert_eq!(session.test_all().await.run.count(), 0);
}

#[tokio::test]
async fn only_a_run_and_nothing_else_counts_as_no_change() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    for (code, changes) in [
        ("Mainstay.Tests.run()", false),
        ("Mainstay.Tests.run(pattern = \"a\", timeoutMs = 5)", false),
        ("Mainstay.Tests.run(pattern = stdin.ReadToEnd())", true),
        ("Mainstay.Tests.run(); ignore (System.Environment.CurrentDirectory <- \"/\")", true),
        ("let ran = Mainstay.Tests.run()", true),
        ("module Mainstay =\n  type Tests = static member run() = ()", true),
        ("Mainstay.Tests.run()", true),
    ] {
        let report = self::changes(&mut session, code).await;
        assert_eq!((report.ending, report.changes_state), (JobEnding::Completed, changes), "{code}");
    }
}

/// How many submissions the compiler has taken.
async fn compiled_so_far(session: &mut Session) -> u32 {
    let name = session.value("type Numbered = Numbered\ntypeof<Numbered>.FullName").await;
    name.trim_matches('"')["FSI_".len()..].split(['+', '.']).next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_run_that_is_written_with_literals_needs_no_compiler_and_does_the_same() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines("[<Test>]\nlet ``a \"quoted\\word`` () = ()\n[<Test>]\nlet other () = ()").await;
    let before = compiled_so_far(&mut session).await;
    let names = async |session: &mut Session, selection: &TestSelection| {
        let run = session.test(selection).await.run;
        run.tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>()
    };
    let timed = TestSelection { timeout_ms: TestTimeout::new(1500), ..TestSelection::default() };
    assert_eq!(names(&mut session, &timed).await.len(), 2);
    assert_eq!(names(&mut session, &pattern("\"quoted\\w")).await, ["a \"quoted\\word"]);
    assert_eq!(names(&mut session, &pattern("\u{1b}")).await, [""; 0]);
    assert_eq!(compiled_so_far(&mut session).await, before + 1, "but for the question itself");

    // What is wrong with it is said as it is of any code, with its place.
    for (wrong, message) in [
        ("Mainstay.Tests.run(timeoutMs = 0)", "one millisecond"),
        ("Mainstay.Tests.run(part = \"none\")", "`reached` or `rest`"),
        ("Mainstay.Tests.run(policies = \"slow\")", "category=policy"),
    ] {
        match session.eval(wrong).await.report.ending {
            JobEnding::Raised(raised) => {
                assert!(raised.message.contains(message) && raised.stack.is_some(), "{raised:?}")
            }
            ending => panic!("{wrong}: {ending:?}"),
        }
    }
    for wrong in [
        "Mainstay.Tests.run(patern = \"a\")",
        "Mainstay.Tests.run(pattern = 5)",
        "Mainstay.Tests.run(pattern = \"a\", pattern = \"b\")",
        "Mainstay.Tests.run(pattern = \"a\",)",
    ] {
        let report = session.eval(wrong).await.report;
        assert!(matches!(report.ending, JobEnding::Rejected), "{wrong}: {:?}", report.ending);
    }
}

async fn changes(session: &mut Session, code: &str) -> JobReport {
    let job = session.submit(code).await;
    loop {
        match soon(session.worker.notices.recv()).await.unwrap() {
            RunnerNotice::Asks { ask, .. } => {
                session.worker.runner.process().answer(AskAnswer::open(ask, Ok(json!("a")))).await;
            }
            RunnerNotice::Finished { job: ended, report } if ended == job => return report,
            _ => {}
        }
    }
}

const SET_UP: &str = "
let noted = System.Collections.Generic.List<string>()
[<SetUp>]
let before () = noted.Add \"before\"
[<TearDown>]
let after () = noted.Add \"after\"
[<Test>]
let combined ([<Values(1, 2)>] number: int, [<Values(\"a\", \"b\")>] word: string) = noted.Add(word + string number)
[<Test; ExpectedException(typeof<System.InvalidOperationException>)>]
let raises () = invalidOp \"as it should\"
[<Test; ExpectedException(typeof<System.InvalidOperationException>)>]
let raises_nothing () = ()
[<TestFixture(1); TestFixture(2)>]
type Numbers(number: int) =
    let mutable count = 0
    [<TestFixtureSetUp>]
    member _.Open() = noted.Add(sprintf \"open %d\" number)
    [<TestFixtureTearDown>]
    member _.Close() = noted.Add(sprintf \"close %d\" number)
    [<SetUp>]
    member _.Before() = count <- count + 1
    [<Test>]
    member _.first() = Assert.AreEqual(1, count)
    [<Test>]
    member _.second() = Assert.AreEqual(2, count)
    interface System.IDisposable with
        member _.Dispose() = noted.Add \"disposed\"
type Bad() =
    [<TestFixtureSetUp>]
    member _.Open() = failwith \"there is no database\"
    [<Test>]
    member _.one() = ()
    [<Test>]
    member _.two() = ()
";

#[tokio::test]
async fn tests_of_nunit_are_set_up_and_torn_down() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    session.defines(SET_UP).await;
    insta::assert_snapshot!(lines(&session.test_all().await.run));
    insta::assert_snapshot!(session.value("String.concat \" \" noted").await, @r#""before a1 after before b1 after before a2 after before b2 after before after before after open 1 close 1 disposed open 2 close 2 disposed""#);
}

#[tokio::test]
async fn a_failure_says_where_in_a_file_it_was() {
    let mut session = Session::start().await;
    session.defines(&nunit()).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().display().to_string();
    // The source of a package is not there.
    let code = format!(
        "type Placed() =
  inherit System.Exception \"wrong\"
  override _.StackTrace = \"   at FsCheck.check() in /_/src/FsCheck.fs:line 3\\n   at Shop.price() in {file}:line 7\\n   at System.Reflection.X()\"
[<Test>]
let placed () = if true then raise (Placed())"
    );
    session.defines(&code).await;
    let tested = session.test_all().await;
    let TestOutcome::Failed { failure } = &tested.run.tests[0].outcome else { panic!("{:?}", tested.run) };
    assert_eq!((failure.file.as_deref(), failure.line), (Some(file.as_str()), Some(7)));
    assert_eq!(
        failure.stack,
        ["FsCheck.check(), line 3".to_owned(), format!("Shop.price() in {file}:line 7")]
    );
    assert!(tested.text.contains(&format!("at {file}:7")), "{}", tested.text);
}

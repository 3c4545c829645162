//! Tests by the engines of their frameworks: compiled ones, and those that the session's code defined. The projects in `engines/` are built with the SDK under test; beside each stands
//! what `dotnet test`, or the project's own program, says of each of its tests (`truth.tsv`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::OnceLock;

use mainstay_model::{TestOutcome, TestRun, TestSelection, TestTimeout};

use super::*;

/// Projects that one session can refer to: a session has one version of an assembly.
const TOGETHER: [&[&str]; 4] = [&["XU2", "NU", "MS", "EX"], &["XU3"], &["TU"], &["FN", "FX3"]];

/// The folder of the built projects, filled once for all tests and for as long as their sources stay as they are.
fn built() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines");
    let projects = || TOGETHER.iter().copied().flatten();
    let files: Vec<_> = projects()
        .flat_map(|name| [format!("{name}/{name}.fsproj"), format!("{name}/T.fs")])
        .chain(["all.proj".to_owned(), "Directory.Build.props".to_owned()])
        .collect();
    let mut hash = Sha256::new();
    for file in &files {
        hash.update(fs::read(sources.join(file)).unwrap());
    }
    let host = choose(&support::search(Path::new("/nowhere"))).unwrap().parts().unwrap().host;
    hash.update(host.to_string_lossy().as_bytes());
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let shelf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engines");
    // Builds know the path that they are in, so one that was cut off is made again in its place.
    let folder = shelf.join(hash);
    fs::create_dir_all(&shelf).unwrap();
    let lock = fs::File::create(shelf.join("lock")).unwrap();
    lock.lock().unwrap();
    if !folder.join("built").exists() {
        for file in &files {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::copy(sources.join(file), folder.join(file)).unwrap();
        }
        let output = Program::new(host)
            .args(["msbuild", "all.proj", "-m", "-nodeReuse:false", "-v:quiet", "-nologo"])
            .arg("-p:UseSharedCompilation=false")
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        fs::write(folder.join("built"), "").unwrap();
    }
    folder
}

/// An assembly in the build of a project, such as its framework's.
pub(super) fn assembly(project: &str, name: &str) -> PathBuf {
    built().join(project).join(format!("bin/Debug/net10.0/{name}.dll"))
}

/// Code that refers to assemblies in the build of a project.
fn refer(project: &str, names: &[&str]) -> String {
    names.iter().map(|name| format!("#r @\"{}\"\n", assembly(project, name).display())).collect()
}

/// Code that refers to xUnit 2; its engine lies beside it.
pub(super) fn xunit() -> String {
    refer("XU2", &["xunit.abstractions", "xunit.core", "xunit.assert"])
}

/// Code that refers to Expecto.
pub(super) fn expecto() -> String {
    refer("EX", &["Expecto"])
}

/// What the truth says of each test: how often which outcome.
type Outcomes = BTreeMap<String, BTreeMap<String, usize>>;

fn count(outcomes: impl Iterator<Item = (String, String)>) -> Outcomes {
    let mut counted = Outcomes::new();
    for (name, outcome) in outcomes {
        *counted.entry(name).or_default().entry(outcome).or_default() += 1;
    }
    counted
}

fn truth(project: &str) -> Outcomes {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines").join(project).join("truth.tsv");
    let text = fs::read_to_string(file).unwrap();
    count(text.lines().map(|line| {
        let (name, outcome) = line.split_once('\t').unwrap();
        // What is explicit is not run, whatever its platform calls that.
        (name.to_owned(), outcome.replace("NotRunnable", "NotExecuted"))
    }))
}

/// What came of the tests of a project, by the names that the truth has for them: some platforms leave out the class.
fn told(run: &TestRun, project: &str) -> Outcomes {
    let truth = truth(project);
    let known = |name: &str| {
        let is_its = |known: &&String| {
            name == *known || name.ends_with(&format!(".{known}")) || name.ends_with(&format!(": {known}"))
        };
        truth.keys().find(is_its).cloned().unwrap_or_else(|| name.to_owned())
    };
    let own = run.tests.iter().filter(|test| test.assembly.as_deref() == Some(project));
    count(own.map(|test| {
        let outcome = match &test.outcome {
            TestOutcome::Passed => "Passed",
            TestOutcome::Skipped { .. } => "NotExecuted",
            TestOutcome::Failed { .. } => "Failed",
            TestOutcome::TimedOut { .. } => "TimedOut",
        };
        (known(&test.name), outcome.to_owned())
    }))
}

async fn session_of(projects: &[&str]) -> Session {
    let mut session = Session::start().await;
    for project in projects {
        session.defines(&refer(project, &[project])).await;
    }
    session
}

async fn agrees_with_the_truth(projects: &[&str]) {
    let mut session = session_of(projects).await;
    for again in [false, true] {
        let run = session.test_all().await.run;
        for project in projects {
            let (told, truth) = (told(&run, project), truth(project));
            let said: Vec<_> = run.tests.iter().filter(|test| !truth.contains_key(&test.name)).collect();
            assert_eq!(told, truth, "{project}, again: {again}; by names that differ: {said:#?}");
        }
        assert_eq!((&run.notes, run.must_restart), (&Vec::new(), false));
    }
}

#[tokio::test]
async fn xunit_2_nunit_mstest_and_expecto_say_what_dotnet_test_says() {
    agrees_with_the_truth(TOGETHER[0]).await;
}

#[tokio::test]
async fn xunit_3_says_what_its_own_program_says() {
    agrees_with_the_truth(TOGETHER[1]).await;
}

#[tokio::test]
async fn tunit_says_what_its_own_program_says() {
    agrees_with_the_truth(TOGETHER[2]).await;
}

#[tokio::test]
async fn properties_of_fscheck_are_run() {
    agrees_with_the_truth(TOGETHER[3]).await;
}

fn selection(pattern: Option<&str>, category: Option<&str>) -> TestSelection {
    TestSelection {
        pattern: pattern.map(str::to_owned),
        category: category.map(str::to_owned),
        ..TestSelection::default()
    }
}

#[tokio::test]
async fn tests_are_chosen_by_name_and_category_and_explicit_ones_by_their_whole_name() {
    let mut session = session_of(TOGETHER[0]).await;
    let mut told = Vec::new();
    for (pattern, category) in [
        (Some("theory"), None),
        (Some("NU.Tests.sum(1,1)"), None),
        (Some("expl"), None),
        (Some("NU.Tests.expl"), None),
        (Some("Rows (1"), None),
        (Some("all.theory.1"), None),
        (None, Some("slow")),
    ] {
        let run = session.test(&selection(pattern, category)).await.run;
        told.push(format!("{pattern:?} {category:?}\n{}", testing::lines(&run)));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test]
async fn what_a_test_wrote_comes_with_it_and_a_failure_with_its_place() {
    let mut session = session_of(&["XU2"]).await;
    let tested = session.test(&selection(Some("WithFixture"), None)).await;
    let test = |name: &str| tested.run.tests.iter().find(|test| test.name.ends_with(name)).unwrap();
    assert_eq!(test(".Uses").output.as_deref(), Some("hello from output"));
    let TestOutcome::Failed { failure } = &test(".Throws").outcome else { panic!("{tested:?}") };
    assert!(failure.file.as_deref().unwrap().ends_with("/XU2/T.fs"), "{failure:?}");
    assert_eq!(failure.line, Some(46));
}

#[tokio::test]
async fn compiled_tests_are_listed_as_their_engines_know_them() {
    let session = session_of(TOGETHER[0]).await;
    let listed = session.tests(None, Some("slow")).await;
    let names: Vec<_> = listed.items.iter().map(|test| format!("{} {}", test.framework, test.name)).collect();
    insta::assert_snapshot!(names.join("\n"), @"
    xUnit XU2.Tests.traited
    NUnit NU.Tests.cat
    MSTest MS.Tests.Slow
    ");
}

/// Refers to these assemblies of a project's build, and to a library that is compiled against them; its source is in `frameworks/`.
async fn session_of_library(name: &str, folder: &Path, (project, frameworks): (&str, &[&str])) -> Session {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frameworks/{name}.fs"));
    let library = folder.join(format!("{name}.dll"));
    testing::compile(&source, &library, frameworks.iter().map(|name| assembly(project, name)));
    let mut session = Session::start().await;
    session.defines(&format!("{}#r @\"{}\"", refer(project, frameworks), library.display())).await;
    session
}

const NUNIT: (&str, &[&str]) = ("NU", &["nunit.framework"]);

#[tokio::test]
async fn the_engine_of_a_library_may_lie_beside_its_framework() {
    let folder = tempfile::tempdir().unwrap();
    let xunit = ("XU2", &["xunit.abstractions", "xunit.core", "xunit.assert"][..]);
    let mut session = session_of_library("Apart.Tests", folder.path(), xunit).await;
    let run = session.test_all().await.run;
    insta::assert_snapshot!(testing::lines(&run), @"xUnit Apart.Tests.adds: passed");
}

#[tokio::test]
async fn a_result_of_an_engine_is_told_while_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session_of_library("Asking.Tests", folder.path(), NUNIT).await;
    let (told, lines, run) = testing::told_while_it_runs(&mut session).await;
    assert_eq!(told[0], "NUnit Asking.Tests.adds before: passed");
    assert!(lines.contains("\nfailed   Asking.Tests.fails after ("), "{lines}");
    assert_eq!((run.passed, run.failed), (2, 1));
}

#[tokio::test]
async fn a_compiled_test_that_hangs_is_given_up_and_the_others_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session_of_library("Hanging.Tests", folder.path(), NUNIT).await;
    let limit = TestTimeout::new(2000);
    let run = session.test(&TestSelection { timeout_ms: limit, ..TestSelection::default() }).await.run;
    insta::assert_snapshot!(testing::lines(&run), @r"
    NUnit Hanging.Tests.adds before: passed
    NUnit Hanging.Tests.hangs: over 2000 ms
    NUnit Hanging.Tests.subtracts after: passed
    ");
    assert!(!run.must_restart, "what can be woken up ends");
}

#[tokio::test]
async fn what_cannot_be_initialised_fails_and_hides_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session_of_library("Broken.Tests", folder.path(), NUNIT).await;
    session.defines("[<NUnit.Framework.Test>]\nlet fine () = ()").await;
    let run = session.test_all().await.run;
    insta::assert_snapshot!(testing::lines(&run));
}

/// A line for each test, by name: xUnit and Expecto run them in an order of their own each time.
pub(super) fn sorted(run: &TestRun) -> String {
    let lines = testing::lines(run);
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Tests of xUnit as they are typed at the prompt, a submission each. The last of one name counts.
const OF_XUNIT: &[&str] = &[
    "[<Xunit.Fact>]
let ``it adds`` () = Xunit.Assert.Equal(2, 1 + 1)
[<Xunit.Theory; Xunit.InlineData(1); Xunit.InlineData(2)>]
let one (number: int) = Xunit.Assert.Equal(1, number)
[<Xunit.Fact>]
let again () : unit = failwith \"it was defined again\"",
    "[<Xunit.Fact>]
let again () = ()
[<Xunit.Fact; Xunit.Trait(\"Category\", \"slow\")>]
let later () = async { do! Async.Sleep 1
                       return Xunit.Assert.Equal(1, 2) }
[<Xunit.Fact(Skip = \"not today\")>]
let skipped () = ()",
];

#[tokio::test]
async fn tests_of_xunit_2_that_the_session_defined_are_run_by_its_engine() {
    let mut session = Session::start().await;
    session.defines(&(xunit() + &refer("XU2", &["FsCheck", "FsCheck.Xunit"]))).await;
    for code in OF_XUNIT {
        session.defines(code).await;
    }
    session
        .defines(
            "[<FsCheck.Xunit.Property>]
let law (number: int) = number + 0 = number
type Shared() =
    member _.Price = 4
type Prices(shared: Shared, output: Xunit.Abstractions.ITestOutputHelper) =
    interface Xunit.IClassFixture<Shared>
    [<Xunit.Fact>]
    member _.written() = output.WriteLine \"told\"; Xunit.Assert.Equal(4, shared.Price)",
        )
        .await;
    let run = session.test_all().await.run;
    insta::assert_snapshot!(sorted(&run));
    let written = run.tests.iter().find(|test| test.name == "Prices.written").unwrap();
    assert_eq!((written.assembly.as_deref(), written.output.as_deref()), (None, Some("told")));
    let slow = session.test(&selection(None, Some("slow"))).await.run;
    assert_eq!(slow.tests.iter().map(|test| &*test.name).collect::<Vec<_>>(), ["later"]);
}

#[tokio::test]
async fn tests_of_xunit_3_that_the_session_defined_are_run_by_its_engine() {
    let mut session = Session::start().await;
    session.defines(&refer("XU3", &["xunit.v3.common", "xunit.v3.core", "xunit.v3.assert"])).await;
    for code in OF_XUNIT {
        session.defines(code).await;
    }
    session.defines("type Prices() =\n  [<Xunit.Fact(Explicit = true)>]\n  member _.costly() = ()").await;
    insta::assert_snapshot!(sorted(&session.test_all().await.run));
    let named = session.test(&selection(Some("Prices.costly"), None)).await.run;
    insta::assert_snapshot!(testing::lines(&named), @"xUnit Prices.costly: passed");
}

#[tokio::test]
async fn tests_of_nunit_that_the_session_defined_are_run_by_its_engine() {
    let mut session = Session::start().await;
    session.defines(&(refer("NU", &["nunit.framework"]) + "open NUnit.Framework")).await;
    for code in [
        "[<Test>]
let ``it adds`` () = Assert.That(1 + 1, Is.EqualTo 2)
[<TestCase(1); TestCase(2, TestName = \"named\")>]
let one (number: int) = Assert.That(number, Is.EqualTo 1)
[<Test>]
let again () : unit = failwith \"it was defined again\"",
        "[<Test>]
let again () = ()
[<Test; Explicit>]
let explicit () : unit = failwith \"it must not run\"
[<Test; Category \"slow\"; Ignore \"no time\">]
let ignored () : unit = failwith \"it must not run\"",
        "[<TestFixture(1); TestFixture(2)>]
type Numbers(number: int) =
    let mutable count = 0
    [<SetUp>]
    member _.Before() = count <- count + 1
    [<Test>]
    member _.range([<Range(1, 2)>] other: int) = TestContext.Out.WriteLine(count); Assert.That(number, Is.EqualTo other)",
    ] {
        session.defines(code).await;
    }
    let run = session.test_all().await.run;
    insta::assert_snapshot!(testing::lines(&run));
    let last = run.tests.iter().find(|test| test.name == "Numbers(2).range(2)").unwrap();
    assert_eq!(last.output.as_deref(), Some("2"), "each was set up");
    let named = session.test(&selection(Some("explicit"), None)).await.run;
    insta::assert_snapshot!(testing::lines(&named), @"NUnit explicit: System.Exception, it must not run (None, None)");
}

#[tokio::test]
async fn tests_of_expecto_that_the_session_defined_are_run_by_its_engine() {
    let mut session = Session::start().await;
    session.defines(&(expecto() + "open Expecto")).await;
    session.defines("[<Tests>]\nlet sums = testList \"sums\" [ testCase \"old\" ignore ]").await;
    session
        .defines("[<Tests>]\nlet sums = testList \"sums\" [ testCase \"plain\" ignore; ptestCase \"pending\" ignore ]")
        .await;
    session.defines("module More =\n  [<Tests>]\n  let others = testCase \"other\" (fun () -> Expect.equal 1 2 \"one\")").await;
    insta::assert_snapshot!(sorted(&session.test_all().await.run), @r#"
    Expecto other: Expecto.AssertException, one. expected: 2 actual: 1 (Some("2"), Some("1"))
    Expecto sums.pending: skipped, The test or one of its parents is marked as Pending
    Expecto sums.plain: passed
    "#);
    session.defines("[<Tests>]\nlet focused = ftestCase \"focused\" ignore").await;
    insta::assert_snapshot!(sorted(&session.test_all().await.run), @"
    Expecto focused: passed
    Expecto other: skipped, The test is skipped because other tests are Focused
    Expecto sums.pending: skipped, The test or one of its parents is marked as Pending
    Expecto sums.plain: skipped, The test is skipped because other tests are Focused
    ");
}

#[tokio::test]
async fn tests_of_expecto_run_one_after_the_other() {
    let mut session = Session::start().await;
    session.defines(&(expecto() + "open Expecto\nopen System.Threading")).await;
    session
        .defines(
            "module Alone =
    let mutable private inside = 0
    let check () =
        let together = Interlocked.Increment &inside
        Thread.Sleep 100
        Interlocked.Decrement &inside |> ignore
        Expect.equal together 1 \"another test runs\"
[<Tests>]
let alone = testList \"alone\" [ testCase \"first\" Alone.check; testCase \"second\" Alone.check ]",
        )
        .await;
    insta::assert_snapshot!(testing::lines(&session.test_all().await.run), @"
    Expecto alone.first: passed
    Expecto alone.second: passed
    ");
}

#[tokio::test]
async fn tests_that_no_engine_is_at_hand_for_are_said_to_be() {
    let mut session = Session::start().await;
    session
        .defines(
            &(refer("MS", &["MSTest.TestFramework"]) + "open Microsoft.VisualStudio.TestTools.UnitTesting"),
        )
        .await;
    session
        .defines("[<TestMethod; DataRow(1); DataRow(2)>]\nlet one (number: int) = Assert.AreEqual(1, number)")
        .await;
    insta::assert_snapshot!(testing::lines(&session.test_all().await.run), @r#"
    MSTest one(1): passed
    MSTest one(2): Microsoft.VisualStudio.TestTools.UnitTesting.AssertFailedException, Assertion failed. Expected values to be equal. expected: 1 actual: 2 (Some("1"), Some("2"))
    note: the tests of MSTest that the session defined run without its own engine, so not all of it works: its adapter reads files alone
    "#);
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::start().await;
    for name in ["xunit.abstractions", "xunit.core"] {
        let copy = folder.path().join(format!("{name}.dll"));
        fs::copy(assembly("XU2", name), &copy).unwrap();
        session.defines(&format!("#r @\"{}\"", copy.display())).await;
    }
    session.defines("[<Xunit.Fact>]\nlet adds () = ()").await;
    insta::assert_snapshot!(testing::lines(&session.test_all().await.run), @"note: the tests of xUnit that the session defined cannot be run: xunit.execution.dotnet.dll is not among what the session refers to");
}

//! Which tests reach a change. The projects in `affected/` are built with the SDK under test: a library over another one, and tests of xUnit and
//! Expecto. What reaches each function is asked for by its name; then each function in turn is made to raise, and no test may fail that was
//! not chosen.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command as Program;

use mainstay_kernel::{Project, ShadowCopy, StartupContext};
use mainstay_model::{
    ChosenPart, CodeMark, LiveTesting, LoadedProject, Swap, TestOutcome, TestPart, TestPolicy, TestRun,
    TestSelection,
};

use super::*;

const PROJECTS: [&str; 3] = ["Core", "Lib", "Tests"];

/// The projects in a folder of their own, built.
pub(super) struct Solution {
    folder: TempDir,
}

impl Solution {
    pub(super) fn build() -> Self {
        Self::build_changed(|_, text| text)
    }

    /// Builds them with files that are otherwise.
    pub(super) fn build_changed(change: impl Fn(&str, String) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in PROJECTS {
            fs::create_dir(folder.path().join(name)).unwrap();
            for file in [format!("{name}/{name}.fsproj"), format!("{name}/{name}.fs")] {
                fs::write(folder.path().join(&file), change(&file, Self::original(&file))).unwrap();
            }
        }
        let host = choose(&support::search(Path::new("/nowhere"))).unwrap().parts().unwrap().host;
        let output = Program::new(host)
            .args(["build", "-v:quiet", "-nologo", "-nodeReuse:false", "-p:UseSharedCompilation=false"])
            .current_dir(folder.path().join("Tests"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        Self { folder }
    }

    pub(super) fn original(file: &str) -> String {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/affected");
        fs::read_to_string(sources.join(file)).unwrap()
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(super) async fn session(&self) -> Session {
        let assemblies = PROJECTS.map(|name| self.path(&format!("Tests/bin/Debug/net10.0/{name}.dll")));
        let sources = PROJECTS.map(|name| self.path(&format!("{name}/{name}.fs")));
        let known = LoadedProject {
            path: self.path("Tests/Tests.fsproj").display().to_string(),
            sources: sources.iter().map(|path| path.display().to_string()).collect(),
            ..LoadedProject::default()
        };
        let own = assemblies.map(|path| ShadowCopy { origin: path.clone(), copy: path }).into();
        let arguments = vec!["--define:DEBUG".to_owned()];
        let others = ["Expecto", "xunit.assert", "xunit.core"]
            .map(|name| self.path(&format!("Tests/bin/Debug/net10.0/{name}.dll")))
            .map(|path| ShadowCopy { origin: path.clone(), copy: path })
            .into();
        let project = Project { known, own, others, arguments, ..Project::default() };
        let beginning =
            StartupContext { project: Some(project), ..StartupContext::in_folder(self.folder.path()) };
        Session::begin(beginning, Vec::new()).await
    }

    pub(super) async fn save(&self, session: &Session, file: &str, text: &str) -> Swap {
        fs::write(self.path(file), text).unwrap();
        let files = vec![self.path(file).display().to_string()];
        soon(session.worker.runner.kernel().unwrap().swap(files)).await.unwrap().unwrap()
    }
}

pub(super) fn live(part: Option<TestPart>, code: Option<CodeMark>) -> TestSelection {
    let policies = [("integration".to_owned(), TestPolicy::OnDemand)].into();
    TestSelection { live: Some(LiveTesting { part, policies, code }), ..TestSelection::default() }
}

fn names(run: &TestRun) -> BTreeSet<String> {
    run.tests.iter().map(|test| test.name.clone()).collect()
}

pub(super) fn failed(run: &TestRun) -> BTreeSet<String> {
    let failed = run.tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Failed { .. }));
    failed.map(|test| test.name.clone()).collect()
}

/// The source with the body of the function in this line replaced by one that raises; none where the line has no function.
fn mutant(source: &str, line: usize) -> Option<(String, String)> {
    let mut lines: Vec<_> = source.lines().map(str::to_owned).collect();
    let text = lines[line].clone();
    let (head, rest) = text.split_once(") : ")?;
    let (result, _) = rest.split_once(" = ")?;
    lines[line] = format!("{head}) : {result} = failwith \"mutant\"");
    Some((head.trim().to_owned(), lines.join("\n") + "\n"))
}

#[tokio::test]
async fn the_tests_that_reach_a_function_are_known_by_the_calls_in_its_assemblies() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let mut told = Vec::new();
    for name in [
        "Calc.direct",
        "Calc.viaClosure",
        "Calc.inAsync",
        "Calc.inTask",
        "Calc.inSequence",
        "Calc.square",
        "Calc.inObject",
        "Calc.inBase",
        "Calc.generic",
        "Calc.throughInline",
        "Calc.op_BarPlusBar",
        "Calc.|Big|Small|",
        "Calc.makes",
        "Calc.value",
        "Calc.onStart",
        "Calc.partly",
        "Calc.later",
        "Calc.even",
        "Calc.odd",
        "Calc.Nested.deep",
        "Core.Base.low",
        "Core.Base.unused",
        "Maybe.Bind",
        "Money.op_Addition",
        "Money.ToString",
        "Uses.area",
    ] {
        let reached =
            session.value(&format!("Mainstay.Tests.reaching @\"{name}\" |> String.concat \"; \"")).await;
        told.push(format!("{name}: {}", reached.trim_matches('"')));
    }
    insta::assert_snapshot!(told.join("\n"));
    let unknown = session.eval("Mainstay.Tests.reaching \"Calc.nothing\"").await;
    assert!(matches!(unknown.report.ending, JobEnding::Raised(_)), "{:?}", unknown.report);
}

#[tokio::test]
async fn no_test_fails_by_a_change_that_was_not_chosen_for_it() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let all = session.test(&live(None, None)).await.run;
    assert_eq!(
        (failed(&all), all.choice.as_ref().map(|choice| choice.on_demand)),
        (BTreeSet::new(), Some(1))
    );
    let mut code = all.code.unwrap();
    let (mut killed, mut chosen, mut wrong, mut left) = (0, 0, Vec::new(), Vec::new());
    for file in ["Core/Core.fs", "Lib/Lib.fs"] {
        let original = Solution::original(file);
        for line in 0..original.lines().count() {
            let Some((head, text)) = mutant(&original, line) else { continue };
            let swap = solution.save(&session, file, &text).await;
            if !swap.is_applied() {
                left.push(head);
                continue;
            }
            let reached = session.test(&live(Some(TestPart::Reached(code.clone())), None)).await.run;
            let whole = session.test(&TestSelection::default()).await.run;
            let missed: Vec<_> = failed(&whole).difference(&names(&reached)).cloned().collect();
            let missed: Vec<_> = missed.into_iter().filter(|name| !name.ends_with("Slowly")).collect();
            if !missed.is_empty() {
                wrong.push(format!("{head}: {missed:?} of {:?}", names(&reached)));
            }
            killed += usize::from(!failed(&whole).is_empty());
            chosen += reached.tests.len();
            assert!(solution.save(&session, file, &original).await.is_applied());
            code = session.test(&live(Some(TestPart::Reached(code)), None)).await.run.code.unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    insta::assert_snapshot!(left.join("\n"));
    println!("{killed} mutants were noticed, {chosen} tests chosen");
    assert!(killed >= 25 && chosen <= killed * 5, "{killed} mutants were noticed, {chosen} tests chosen");
}

#[tokio::test]
async fn a_change_runs_what_reaches_it_and_then_the_rest_until_the_code_changes_again() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let before = session.test(&live(None, None)).await.run.code.unwrap();
    let source = Solution::original("Lib/Lib.fs");

    // What a new body calls counts as well: here a function that nothing has called.
    let calls = source.replace(
        "let partly (x: int) (y: int) : int = x - y",
        "let partly (x: int) (y: int) : int = Core.Base.unused (x - y)",
    );
    assert!(solution.save(&session, "Lib/Lib.fs", &calls).await.is_applied());
    let tested = session.test(&live(Some(TestPart::Reached(before.clone())), None)).await;
    assert!(tested.text.contains("1 of 31 tests reaches this change: 1 passed ("), "{}", tested.text);
    let choice = tested.run.choice.unwrap();
    assert_eq!(
        (choice.part, &choice.changed[..]),
        (ChosenPart::Reached, &["Lib.Calc.partly".to_owned()][..])
    );
    let place = tested.run.tests[0].place.clone().unwrap();
    assert!(place.file.ends_with("/Tests/Tests.fs") && place.line > 1, "{place:?}");
    let after = tested.run.code.unwrap();
    assert_ne!(before, after);
    let core = Solution::original("Core/Core.fs");
    let unused = core.replace("let unused (x: int) : int = x", "let unused (x: int) : int = x * 1");
    let swap = solution.save(&session, "Core/Core.fs", &unused).await;
    assert!(swap.is_applied(), "{swap:?}");
    let run = session.test(&live(Some(TestPart::Reached(after.clone())), None)).await.run;
    assert_eq!(names(&run), ["Lib.Tests.applied".to_owned()].into());

    // The rest are all others, unless the code is not that which they were to run with.
    let now = run.code.unwrap();
    let rest = session.test(&live(Some(TestPart::Rest(after.clone())), Some(now))).await.run;
    let choice = rest.choice.clone().unwrap();
    assert_eq!((rest.passed, choice.on_demand, choice.found), (29, 1, 31), "{rest:?}");
    assert!(!names(&rest).contains("Lib.Tests.applied"));
    let overtaken = session.test(&live(Some(TestPart::Rest(after.clone())), Some(after))).await.run;
    assert!(overtaken.choice.is_some_and(|choice| choice.overtaken) && overtaken.tests.is_empty());

    // A policy of the session counts before that of the run.
    session.defines("Mainstay.Tests.policy(\"integration\", \"save\")").await;
    let run = session.test(&live(None, None)).await.run;
    assert!(names(&run).contains("Lib.Tests+WithConstructor.Slowly"), "{:?}", names(&run));

    // Tests of Expecto's are values: what holds one holds the new one from then on.
    let tests = Solution::original("Tests/Tests.fs").replace("Expect.equal 1 1", "Expect.equal 1 2");
    let swap = solution.save(&session, "Tests/Tests.fs", &tests).await;
    assert!(swap.is_applied(), "{swap:?}");
    let run = session.test(&live(Some(TestPart::Reached(run.code.unwrap())), None)).await.run;
    assert_eq!(failed(&run), ["outer.inner.one".to_owned()].into(), "{:?}", names(&run));
    let swap = solution.save(&session, "Tests/Tests.fs", &Solution::original("Tests/Tests.fs")).await;
    assert!(swap.is_applied(), "{swap:?}");
    let run = session.test(&live(Some(TestPart::Reached(run.code.unwrap())), None)).await.run;
    assert!(failed(&run).is_empty() && names(&run).contains("outer.inner.one"), "{run:?}");

    // One that contains an inline function of another file is made again with it, and so is what holds it.
    let contains =
        Solution::original("Tests/Tests.fs").replace("Expect.equal 1 1", "Expect.equal (Calc.inlined 1) 7");
    let swap = solution.save(&session, "Tests/Tests.fs", &contains).await;
    assert!(swap.is_applied(), "{swap:?}");
    let library = Solution::original("Lib/Lib.fs").replace("= throughInline x\n", "= throughInline x + 1\n");
    let swap = solution.save(&session, "Lib/Lib.fs", &library).await;
    assert!(swap.is_applied(), "{swap:?}");
    let run = session.test(&live(None, None)).await.run;
    let both = ["Lib.Tests.inlined".to_owned(), "outer.inner.one".to_owned()];
    assert_eq!(failed(&run), both.into(), "{run:?}");
    let swap = solution.save(&session, "Lib/Lib.fs", &Solution::original("Lib/Lib.fs")).await;
    assert!(swap.is_applied(), "{swap:?}");
    let run = session.test(&live(None, None)).await.run;
    assert!(failed(&run).is_empty() && names(&run).contains("outer.inner.one"), "{run:?}");
}

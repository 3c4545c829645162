//! Which lines the tests of a project reach, and how they ended: as it was built, and after saves that were swapped in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use mainstay_model::{
    CodeMark, Coverage, Error, LineState, ReachedLines, TestEnding, TestHistory, TestRun, TestSelection,
};
use mainstay_runner::query::KernelQuery;

use super::affected::{Solution, failed};
use super::*;

/// What a session's worker says, joined with what came of tests.
async fn asked(
    session: &Session,
    history: &TestHistory,
    file: Option<&str>,
    name: Option<&str>,
    since: &[CodeMark],
) -> Result<Coverage, Error> {
    let query = KernelQuery::Coverage {
        file: file.map(str::to_owned),
        name: name.map(str::to_owned),
        since: since.to_vec(),
    };
    let lines = soon(session.worker.runner.kernel().unwrap().query(query)).await?.coverage()?;
    Ok(Coverage::of(lines, history, true))
}

/// The ranges of lines, one a line.
fn told(coverage: &Coverage) -> String {
    let mut text = Vec::new();
    for file in &coverage.files {
        let path = file.path.rsplit('/').next().unwrap();
        text.push(format!("{path} {}/{}", file.lines.passing, file.lines.total));
        for range in &file.ranges {
            let names: Vec<_> = range.names.iter().map(|test| test.name.trim_start_matches("Lib.")).collect();
            let state = match (range.state, range.moved) {
                (LineState::Passing, false) => String::new(),
                (state, false) => format!(" {state:?}"),
                (state, true) => format!(" {state:?} moved"),
            };
            text.push(format!("{}-{} {}{state}: {}", range.first, range.last, range.name, names.join(", ")));
        }
    }
    text.join("\n")
}

fn history(runs: &[&TestRun]) -> (TestHistory, Vec<CodeMark>) {
    let mut history = TestHistory::default();
    runs.iter().for_each(|run| history.take_in(run));
    (history, runs.iter().filter_map(|run| run.code.clone()).collect())
}

#[tokio::test]
async fn each_line_has_the_tests_that_reach_it_before_and_after_a_save_that_is_swapped() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let none = TestHistory::default();
    let never = asked(&session, &none, Some("Core.fs"), None, &[]).await.unwrap();
    insta::assert_snapshot!(told(&never));
    let begun = Instant::now();
    let whole = asked(&session, &none, None, None, &[]).await.unwrap();
    println!("{} lines of {} files in {:?}", whole.lines.total, whole.files.len(), begun.elapsed());

    let all = session.test(&TestSelection::default()).await.run;
    let (results, marks) = history(&[&all]);
    let built = asked(&session, &results, Some("Lib/Lib.fs"), None, &marks).await.unwrap();
    insta::assert_snapshot!("coverage_as_built", told(&built));
    assert_eq!((built.tests, built.unknown), (31, 0));

    // A body of more lines, a function that is new, one that is gone, and one that breaks a test.
    let source = Solution::original("Lib/Lib.fs");
    let saved = source
        .replace(
            "    let partly (x: int) (y: int) : int = x - y\n",
            "    let partly (x: int) (y: int) : int =\n        let low = fresh y\n        x - low\n",
        )
        .replace("    let onStart ", "    let fresh (x: int) : int = x + 0\n\n    let onStart ")
        .replace(
            "let sequence (x: int) : int seq = seq { yield",
            "let sequence (x: int) : int seq = seq { yield 1 + ",
        );
    let swap = solution.save(&session, "Lib/Lib.fs", &saved).await;
    assert!(swap.is_applied(), "{swap:?}");
    let unrun = asked(&session, &results, Some("Lib/Lib.fs"), None, &marks).await.unwrap();
    let not_run: Vec<_> =
        unrun.files[0].ranges.iter().filter(|range| range.state == LineState::NotRun).collect();
    let names: Vec<_> = not_run.iter().map(|range| range.name.as_str()).collect();
    insta::assert_snapshot!(names.join(" "));
    let again = session.test(&TestSelection::default()).await.run;
    assert_eq!(failed(&again), ["Lib.Tests.sequence".to_owned()].into());
    let (results, marks) = history(&[&all, &again]);
    let swapped = asked(&session, &results, Some("Lib/Lib.fs"), None, &marks).await.unwrap();
    insta::assert_snapshot!("coverage_after_a_swap", told(&swapped));

    // What is saved and cannot be swapped is not what runs.
    let text = saved.replace("type Square(side: int) =", "type Square(side: int, _other: int) =");
    let text = text.replace("x + low", "x - low - 1");
    assert!(!solution.save(&session, "Lib/Lib.fs", &text).await.is_applied());
    let moved = asked(&session, &results, None, Some("Square"), &marks).await;
    assert!(moved.is_ok_and(|moved| moved.files[0].ranges.iter().any(|range| range.moved)));
    fs::write(solution.path("Lib/Lib.fs"), "module Lib.Calc\nlet = \n").unwrap();
    let broken = asked(&session, &results, Some("Lib.fs"), None, &marks).await.unwrap();
    assert!(broken.files[0].ranges.iter().all(|range| range.moved));
}

#[tokio::test]
async fn a_declaration_has_its_tests_its_callers_and_what_it_calls() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let all = session.test(&TestSelection::default()).await.run;
    let (results, marks) = history(&[&all]);
    let mut text = Vec::new();
    for name in [
        "Calc.viaClosure",
        "Calc.inTask",
        "Calc.square",
        "Calc.makes",
        "Uses.numbers",
        "Base.unused",
        "Uses.tasks",
    ] {
        let coverage = asked(&session, &results, None, Some(name), &marks).await.unwrap();
        let calling = |all: &[mainstay_model::CallingDeclaration]| {
            let all = all.iter().map(|one| {
                let file = one.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("?");
                format!("{} ({file}:{})", one.name, one.line.unwrap_or_default())
            });
            all.collect::<Vec<_>>().join(", ")
        };
        text.push(format!(
            "{}\n  called by {}\n  calls {}",
            told(&coverage),
            calling(&coverage.callers),
            calling(&coverage.callees)
        ));
    }
    insta::assert_snapshot!(text.join("\n"));
    let unknown = asked(&session, &results, None, Some("Calc.nothing"), &marks).await;
    assert!(matches!(unknown, Err(Error::InvalidArgument { .. })), "{unknown:?}");
    let reached = asked(&session, &results, None, Some("Calc.direct"), &marks).await.unwrap();
    let range = &reached.files[0].ranges[0];
    assert!(
        range
            .names
            .iter()
            .all(|test| test.ending == Some(TestEnding::Passed) || test.name.ends_with("Slowly")),
        "{range:?}"
    );
    assert!(ReachedLines::default().files.is_empty());
}

/// The lines of a file, each with the tests that reach it.
fn lines_of(coverage: &Coverage) -> BTreeMap<u32, (String, BTreeSet<String>)> {
    let ranges = coverage.files.iter().flat_map(|file| &file.ranges);
    ranges
        .flat_map(|range| {
            let names: BTreeSet<_> = range.names.iter().map(|test| test.name.clone()).collect();
            assert_eq!(range.tests, names.len() as u64, "all tests are told");
            (range.first..=range.last).map(move |line| (line, (range.name.clone(), names.clone())))
        })
        .collect()
}

async fn measured(beside: &Session, limit_ms: u64, timeout_ms: u64) -> serde_json::Value {
    let query = KernelQuery::Measure { policies: "Slow=demand".to_owned(), limit_ms, timeout_ms };
    soon(beside.worker.runner.kernel().unwrap().query(query)).await.unwrap().measured().unwrap()
}

async fn takes(session: &Session, code: &CodeMark, measurement: serde_json::Value) -> bool {
    let query = KernelQuery::TakeMeasurement { code: code.clone(), measurement };
    soon(session.worker.runner.kernel().unwrap().query(query)).await.unwrap().measurement_taken().unwrap()
}

#[tokio::test]
async fn tests_that_were_measured_have_the_lines_that_they_ran() {
    let solution = Solution::build();
    let mut session = solution.session().await;
    let all = session.test(&TestSelection::default()).await.run;
    let (results, marks) = history(&[&all]);
    let files = ["Core/Core.fs", "Lib/Lib.fs"];
    let by_calls = asked(&session, &results, None, None, &marks).await.unwrap();
    assert_eq!((by_calls.measured, by_calls.tests), (0, 31));
    let by_calls = lines_of(&by_calls);

    let mut beside = solution.session().await;
    let measurement = measured(&beside, 60_000, 10_000).await;
    // The code does with probes what it did without.
    let with_probes = beside.test(&TestSelection::default()).await.run;
    assert_eq!(failed(&with_probes), failed(&all));
    assert_eq!(with_probes.passed, all.passed);

    let code = all.code.clone().unwrap();
    let other = CodeMark("another session's:0".to_owned());
    assert!(!takes(&session, &other, measurement.clone()).await, "it is of another session");
    let mut foreign = measurement.clone();
    foreign["assemblies"][0]["build"] = "0".repeat(32).into();
    assert!(!takes(&session, &code, foreign).await, "it is of another build");
    assert!(takes(&session, &code, measurement.clone()).await);

    let mut text = Vec::new();
    for file in files {
        text.push(told(&asked(&session, &results, Some(file), None, &marks).await.unwrap()));
    }
    insta::assert_snapshot!("coverage_as_measured", text.join("\n"));
    let ran = asked(&session, &results, None, None, &marks).await.unwrap();
    insta::assert_snapshot!(format!("{} of {} tests measured", ran.measured, ran.tests));
    // What runs is among what the calls have.
    let ran = lines_of(&ran);
    assert_eq!(ran.keys().collect::<Vec<_>>(), by_calls.keys().collect::<Vec<_>>());
    let beyond: Vec<_> = ran
        .iter()
        .filter(|(line, (_, tests))| !tests.is_subset(&by_calls[line].1))
        .map(|(line, (name, tests))| format!("{line} {name}: {:?}", tests - &by_calls[line].1))
        .collect();
    assert!(beyond.is_empty(), "{beyond:#?}");
    let narrower = ran.iter().filter(|(line, (_, tests))| tests.len() < by_calls[line].1.len()).count();
    assert!(narrower > 0, "nothing was measured");

    // What a save changes counts by its calls again, until it is measured.
    let before = asked(&session, &results, Some("Lib/Lib.fs"), None, &marks).await.unwrap();
    let saved = Solution::original("Lib/Lib.fs")
        .replace("(x: int) (y: int) : int = x - y", "(x: int) (y: int) : int = x - y - 0");
    let swap = solution.save(&session, "Lib/Lib.fs", &saved).await;
    assert!(swap.is_applied(), "{swap:?}");
    let after = asked(&session, &results, Some("Lib/Lib.fs"), None, &marks).await.unwrap();
    let changed = asked(&session, &results, None, Some("Calc.partly"), &marks).await.unwrap();
    assert_eq!(after.measured, before.measured - changed.files[0].ranges[0].tests, "{changed:?}");

    // What runs as it was saved and not as it was built is no line that is measured.
    let again = solution.session().await;
    let caught_up = soon(again.worker.runner.kernel().unwrap().swap_all()).await.unwrap().unwrap();
    assert!(caught_up.is_applied(), "{caught_up:?}");
    let present = session.test(&TestSelection::default()).await.run.code.unwrap();
    assert!(takes(&session, &present, measured(&again, 60_000, 10_000).await).await);
    let saved = asked(&session, &results, None, Some("Calc.partly"), &marks).await.unwrap();
    assert_eq!((saved.measured, told(&saved)), (31, told(&changed)));
    assert!(saved.notes.iter().any(|note| note.starts_with("Lib.Calc.partly: ")), "{:?}", saved.notes);
}

/// Code that goes on in many places: of several of these the compiler makes tables, short distances, and regions within others.
const BRANCHES: &str = r#"
module Branches =
    let grade (x: int) : string =
        match x with
        | 0 -> "none"
        | 1 -> "one"
        | 2 -> "two"
        | 3 -> "three"
        | 4 -> "four"
        | _ when x < 0 -> "below"
        | _ -> "many"

    let guarded (text: string) : int =
        let mutable steps = 0
        try
            try
                steps <- steps + int text
                if steps > 100 then invalidArg "text" "large"
                steps
            with
            | :? System.FormatException -> -1
            | :? System.ArgumentException as e when e.ParamName = "text" -> -2
        finally
            steps <- 0

    let collatz (start: int) : int =
        let mutable x, count = start, 0
        while x <> 1 do
            x <- if x % 2 = 0 then x / 2 else 3 * x + 1
            count <- count + 1
        count

    let sum (items: int seq) : int =
        use all = items.GetEnumerator()
        let mutable total = 0
        while all.MoveNext() do
            for step in 1 .. all.Current do
                total <- total + (if step % 15 = 0 then 15 elif step % 5 = 0 then 5 elif step % 3 = 0 then 3 else 0)
        total

    let once : int = collatz 1
"#;

const BRANCHING: &str = r#"
[<Fact>]
let branches () =
    let graded = List.map Branches.grade [ 0; 1; 2; 3; 4; -1; 9 ]
    Assert.Equal<string list>([ "none"; "one"; "two"; "three"; "four"; "below"; "many" ], graded)
    Assert.Equal<int list>([ 7; -1; -2 ], List.map Branches.guarded [ "7"; "x"; "700" ])
    Assert.Equal(111, Branches.collatz 27)
    Assert.Equal(40, Branches.sum [ 3; 15 ])

[<Fact>]
let grades () = Assert.Equal("two", Branches.grade 2)

[<Fact>]
let guards () = Assert.Equal(5 + Branches.once, Branches.guarded "5")
"#;

#[tokio::test]
async fn each_branch_has_the_tests_that_took_it_and_what_cannot_be_measured_counts_by_the_calls() {
    let solution = Solution::build_changed(|file, text| match file {
        "Lib/Lib.fs" => text + BRANCHES,
        "Tests/Tests.fs" => text + BRANCHING,
        // The runtime does not exchange the code of an optimized assembly.
        "Core/Core.fsproj" => text.replace("<TargetFramework>", "<Optimize>true</Optimize><TargetFramework>"),
        _ => text,
    });
    let mut session = solution.session().await;
    let all = session.test(&TestSelection::default()).await.run;
    assert_eq!(failed(&all), BTreeSet::new());
    let (results, marks) = history(&[&all]);
    let core = asked(&session, &results, Some("Core.fs"), None, &marks).await.unwrap();
    let mut beside = solution.session().await;
    let measurement = measured(&beside, 60_000, 10_000).await;
    let with_probes = beside.test(&TestSelection::default()).await.run;
    assert_eq!((failed(&with_probes), with_probes.passed), (BTreeSet::new(), all.passed));
    assert!(takes(&session, &all.code.clone().unwrap(), measurement).await);
    insta::assert_snapshot!(told(
        &asked(&session, &results, None, Some("Branches.grade"), &marks).await.unwrap()
    ));
    insta::assert_snapshot!(told(
        &asked(&session, &results, None, Some("Branches.guarded"), &marks).await.unwrap()
    ));
    insta::assert_snapshot!(told(
        &asked(&session, &results, None, Some("Branches.collatz"), &marks).await.unwrap()
    ));
    insta::assert_snapshot!(told(
        &asked(&session, &results, None, Some("Branches.sum"), &marks).await.unwrap()
    ));
    let optimized = asked(&session, &results, Some("Core.fs"), None, &marks).await.unwrap();
    assert_eq!(told(&optimized), told(&core));
    assert!(optimized.notes.iter().any(|note| note.contains("Core")), "{:?}", optimized.notes);

    // It ends with its time, and says so.
    let hasty = measured(&solution.session().await, 1, 10_000).await;
    assert!(hasty["tests"].as_array().unwrap().len() < 10, "{hasty}");
    assert!(hasty["notes"].to_string().contains("measure-ms"), "{hasty}");
}

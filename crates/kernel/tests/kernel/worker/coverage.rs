//! Which lines the tests of a project reach, and how they ended: as it was built, and after saves that were swapped in.

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

//! What comes of what is reached and how tests ended.

use super::*;
use crate::testing::{TestFailure, TestOutcome, TestResult, TestRun};

fn reached() -> ReachedLines {
    let names = ["a", "b", "c", "rows", "never"];
    let tests = names.map(|name| CoveringTests {
        assembly: Some("T".to_owned()),
        names: vec![name.to_owned()],
        is_measured: name == "a",
    });
    let sets = [vec![], vec![0], vec![0, 1], vec![2], vec![3], vec![0, 4], vec![4]];
    let range = |set: usize| {
        let line = 10 * set as u32 + 1;
        ReachedRange {
            first: line,
            last: line + 2,
            count: 2,
            name: format!("M.f{set}"),
            set,
            is_moved: set == 2,
        }
    };
    ReachedLines {
        tests: tests.into(),
        unknown: 1,
        assemblies: [("T".to_owned(), "now".to_owned())].into(),
        changed: vec![ChangedSince { since: CodeMark("w:1".to_owned()), tests: vec![2] }],
        sets: sets.map(|tests| TestSet { tests }).into(),
        files: vec![ReachedFile { path: "/M.fs".to_owned(), lines: (0..7).map(range).collect() }],
        ..ReachedLines::default()
    }
}

fn result(name: &str, passed: bool) -> TestResult {
    let failure = TestFailure {
        kind: "E".to_owned(),
        message: String::new(),
        expected: None,
        actual: None,
        stack: Vec::new(),
        file: None,
        line: None,
    };
    TestResult {
        name: name.to_owned(),
        framework: "NUnit".to_owned(),
        assembly: Some("T".to_owned()),
        categories: Vec::new(),
        duration_ms: 1,
        output: None,
        place: None,
        outcome: if passed {
            TestOutcome::Passed
        } else {
            TestOutcome::Failed { failure: Box::new(failure) }
        },
    }
}

fn run(fingerprint: &str, code: &str, tests: Vec<TestResult>) -> TestHistory {
    let mut history = TestHistory::default();
    history.take_in(&TestRun {
        assemblies: [("T".to_owned(), fingerprint.to_owned())].into(),
        code: Some(CodeMark(code.to_owned())),
        tests,
        ..TestRun::default()
    });
    history
}

fn told(coverage: &Coverage) -> String {
    let ranges = coverage.files[0].ranges.iter().map(|range| {
        let names = range.names.iter().map(|test| format!("{}:{:?}", test.name, test.ending));
        let names = names.collect::<Vec<_>>().join(" ");
        let moved = if range.moved { " moved" } else { "" };
        format!(
            "{}-{} {:?}{moved} {}/{} {names}",
            range.first, range.last, range.state, range.failing, range.tests
        )
    });
    ranges.collect::<Vec<_>>().join("\n")
}

fn results() -> Vec<TestResult> {
    vec![
        result("a", true),
        result("b", false),
        result("c", true),
        result("rows(1)", true),
        result("rows(2)", false),
    ]
}

#[test]
fn lines_are_as_the_tests_that_reach_them_ended() {
    let coverage = Coverage::of(reached(), &run("now", "x:1", results()), true);
    insta::assert_snapshot!(told(&coverage));
    assert_eq!(
        coverage.lines,
        LineCounts { total: 14, passing: 6, failing: 4, not_run: 2, unreached: 2 },
        "a test that never ran hides none that passed"
    );
    assert_eq!((coverage.tests, coverage.unknown), (5, 1));
    assert!(Coverage::of(reached(), &TestHistory::default(), false).files[0].ranges.is_empty());
}

#[test]
fn what_ran_with_other_code_counts_only_where_nothing_it_reaches_has_changed() {
    let known = Coverage::of(reached(), &run("before", "w:1", results()), true);
    insta::assert_snapshot!(told(&known));
    let other_process = Coverage::of(reached(), &run("before", "v:1", results()), true);
    assert_eq!(
        other_process.lines,
        LineCounts { total: 14, passing: 0, failing: 0, not_run: 12, unreached: 2 }
    );
}

#[test]
fn sets_and_tests_that_there_are_not_are_no_tests() {
    let mut wrong = reached();
    wrong.sets[1].tests = vec![99];
    wrong.files[0].lines[0].set = 99;
    let coverage = Coverage::of(wrong, &TestHistory::default(), true);
    assert_eq!(coverage.lines.unreached, 4);
}

//! What came of each test when it last ran, and of which it cannot be relied upon: the same code gave one result, and then another.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{CodeMark, TestChoice, TestOutcome, TestResult, TestRun};

/// How many outcomes of a test are kept.
const KEPT: usize = 20;

/// How a test ended, without why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TestEnding {
    /// It ran to its end.
    Passed,
    /// It was not run.
    Skipped,
    /// It failed, or ran longer than it may.
    Failed,
}

impl From<&TestOutcome> for TestEnding {
    fn from(outcome: &TestOutcome) -> Self {
        match outcome {
            TestOutcome::Passed => Self::Passed,
            TestOutcome::Skipped { .. } => Self::Skipped,
            TestOutcome::Failed { .. } | TestOutcome::TimedOut { .. } => Self::Failed,
        }
    }
}

/// The runs of one test, the newest last.
#[derive(Clone, Debug, Default)]
struct PastRuns {
    /// What its assembly and all that it needs were, and how it ended.
    endings: VecDeque<(Option<String>, TestEnding)>,
    /// What the session's code was in the newest of them.
    code: Option<CodeMark>,
    is_flaky: bool,
}

/// How a test ended when it last ran, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEnding<'a> {
    /// How the test ended.
    pub ending: TestEnding,
    /// What its assembly and all that it needs were.
    pub fingerprint: Option<&'a str>,
    /// What the session's code was.
    pub code: Option<&'a CodeMark>,
}

/// How many tests ended in which way when they last ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndingCounts {
    /// How many of them passed.
    pub passed: u64,
    /// How many failed, or ran longer than they may.
    pub failed: u64,
    /// How many were not run.
    pub skipped: u64,
}

impl PastRuns {
    fn take_in(&mut self, code: Option<&String>, ending: TestEnding) {
        let before = self.endings.iter().rev().find(|(known, _)| code.is_some() && known.as_ref() == code);
        let differs = before.is_some_and(|(_, before)| {
            *before != ending && *before != TestEnding::Skipped && ending != TestEnding::Skipped
        });
        self.is_flaky |= differs;
        if self.endings.len() == KEPT {
            self.endings.pop_front();
        }
        self.endings.push_back((code.cloned(), ending));
    }
}

/// The assembly of a test, none for what the session's code defined, and its name.
type TestKey = (Option<String>, String);

/// What came of tests in the runs that were taken in, one after the other.
#[derive(Clone, Debug, Default)]
pub struct TestHistory {
    tests: BTreeMap<TestKey, PastRuns>,
}

impl TestHistory {
    /// Takes in a run. One of all tests knows which there are: what it did not run of an assembly that it looked at is there no more.
    pub fn take_in(&mut self, run: &TestRun) {
        if run.choice.as_ref().is_none_or(TestChoice::is_whole) && run.left_out == 0 {
            let ran: std::collections::BTreeSet<_> = run.tests.iter().map(key).collect();
            let is_unchanged = |assembly: &Option<String>| {
                assembly.as_ref().is_some_and(|name| run.unchanged.contains(name))
            };
            self.tests.retain(|key, _| is_unchanged(&key.0) || ran.contains(key));
        }
        for test in &run.tests {
            let code = test.assembly.as_ref().and_then(|name| run.assemblies.get(name));
            let runs = self.tests.entry(key(test)).or_default();
            runs.take_in(code, TestEnding::from(&test.outcome));
            runs.code.clone_from(&run.code);
        }
    }

    /// The tests that failed when they last ran.
    pub fn failing(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let failing =
            |runs: &PastRuns| runs.endings.back().is_some_and(|(_, ending)| *ending == TestEnding::Failed);
        self.tests
            .iter()
            .filter(move |(_, runs)| failing(runs))
            .map(|((assembly, name), _)| (assembly.as_deref(), name.as_str()))
    }

    /// The tests that ended in one way and in another with the same code.
    pub fn flaky(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(|(_, runs)| runs.is_flaky).map(|((_, name), _)| name.as_str())
    }

    /// How many tests ended in which way when they last ran.
    pub fn counts(&self) -> EndingCounts {
        let mut counts = EndingCounts::default();
        for (_, ending) in self.tests.values().filter_map(|runs| runs.endings.back()) {
            match ending {
                TestEnding::Passed => counts.passed += 1,
                TestEnding::Failed => counts.failed += 1,
                TestEnding::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// How a test ended when it last ran: once for each of its cases, where these are known by their arguments alone.
    pub fn last<'a>(&'a self, assembly: Option<&str>, name: &'a str) -> impl Iterator<Item = LastEnding<'a>> {
        let from = (assembly.map(str::to_owned), name.to_owned());
        let is_its = move |known: &str| {
            known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        };
        let assembly = from.0.clone();
        self.tests
            .range(from..)
            .take_while(move |((of, known), _)| *of == assembly && known.starts_with(name))
            .filter(move |((_, known), _)| is_its(known))
            .filter_map(|(_, runs)| {
                let (fingerprint, ending) = runs.endings.back()?;
                Some(LastEnding {
                    ending: *ending,
                    fingerprint: fingerprint.as_deref(),
                    code: runs.code.as_ref(),
                })
            })
    }

    /// How the last runs of a test ended, the newest last.
    pub fn endings(&self, assembly: Option<&str>, name: &str) -> Vec<TestEnding> {
        let key = (assembly.map(str::to_owned), name.to_owned());
        self.tests
            .get(&key)
            .map_or_else(Vec::new, |runs| runs.endings.iter().map(|(_, ending)| *ending).collect())
    }
}

fn key(test: &TestResult) -> TestKey {
    (test.assembly.clone(), test.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ChosenPart, TestFailure};

    fn test(name: &str, ending: TestEnding) -> TestResult {
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
            assembly: Some("A".to_owned()),
            categories: Vec::new(),
            duration_ms: 1,
            output: None,
            place: None,
            outcome: match ending {
                TestEnding::Passed => TestOutcome::Passed,
                TestEnding::Skipped => TestOutcome::Skipped { reason: String::new() },
                TestEnding::Failed => TestOutcome::Failed { failure: Box::new(failure) },
            },
        }
    }

    fn run(code: &str, tests: Vec<TestResult>) -> TestRun {
        let assemblies = [("A".to_owned(), code.to_owned())].into();
        TestRun { assemblies, tests, ..TestRun::default() }
    }

    fn part(run: TestRun) -> TestRun {
        let choice = TestChoice {
            part: ChosenPart::Reached,
            changed: Vec::new(),
            chosen: 1,
            found: 2,
            on_demand: 0,
            over_budget: 0,
            overtaken: false,
        };
        TestRun { choice: Some(choice), ..run }
    }

    #[test]
    fn a_test_is_flaky_that_ends_otherwise_with_the_same_code() {
        let mut history = TestHistory::default();
        history.take_in(&run("1", vec![test("a", TestEnding::Passed), test("b", TestEnding::Failed)]));
        history.take_in(&run("2", vec![test("a", TestEnding::Failed), test("b", TestEnding::Failed)]));
        assert_eq!(history.flaky().count(), 0, "the code was another");
        history.take_in(&run("1", vec![test("a", TestEnding::Failed), test("b", TestEnding::Skipped)]));
        assert_eq!(history.flaky().collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            history.endings(Some("A"), "b"),
            [TestEnding::Failed, TestEnding::Failed, TestEnding::Skipped]
        );
    }

    #[test]
    fn what_a_part_did_not_run_is_as_it_was_and_what_is_gone_is_forgotten() {
        let mut history = TestHistory::default();
        history.take_in(&run("1", vec![test("a", TestEnding::Failed), test("b", TestEnding::Failed)]));
        history.take_in(&part(run("2", vec![test("a", TestEnding::Passed)])));
        assert_eq!(history.failing().collect::<Vec<_>>(), [(Some("A"), "b")]);
        history.take_in(&TestRun { unchanged: vec!["A".to_owned()], ..run("2", Vec::new()) });
        assert_eq!(history.failing().count(), 1, "its assembly was left alone");
        history.take_in(&run("3", vec![test("a", TestEnding::Passed)]));
        assert_eq!(history.failing().count(), 0);
        assert!(history.endings(Some("A"), "b").is_empty());
    }
}

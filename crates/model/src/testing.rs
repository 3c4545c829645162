//! Tests that a session's code runs: which, and what came of them. They run as an eval does; what came of them is one of the forms
//! of what it shows.

mod buffer;
mod choice;
mod coverage;
mod history;
mod recorded;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::affordance::Action;
use crate::capability::Capabilities;
use crate::display::{Display, Form, TEST_PROGRESS, TESTS};
use crate::error::Error;
use crate::id::{DisplayId, SessionKind};

pub use self::buffer::{BufferEnding, BufferRun, UnsavedBuffer};
pub use self::choice::{ChosenPart, CodeMark, LiveTesting, TestChoice, TestPart, TestPolicy};
pub use self::coverage::{
    CallingDeclaration, Coverage, CoveredRange, CoveringTest, FileCoverage, LineCounts, LineState,
    ReachedLines,
};
pub use self::history::{EndingCounts, LastEnding, TestEnding, TestHistory};
pub use self::recorded::{FailedTest, RecordedRun, RecordedRuns};

/// Which tests to run, and how long each may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestSelection {
    /// A part of a name, in any case; with `*` it is the whole name.
    pub pattern: Option<String>,
    /// A category, or a trait as `name=value`.
    pub category: Option<String>,
    /// How long one test may take, in milliseconds.
    pub timeout_ms: Option<TestTimeout>,
    /// Not those of assemblies that are still what they were when an earlier run told.
    pub changed_since: BTreeMap<String, String>,
    /// How they are chosen, where they run because something has changed.
    pub live: Option<LiveTesting>,
}

/// How long one test may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestTimeout(u32);

impl TestTimeout {
    /// The longest: what the worker counts with.
    pub const MAX: u64 = 2_147_483_647;

    /// None where it is nothing, or longer than can be counted.
    pub fn new(milliseconds: u64) -> Option<Self> {
        u32::try_from(milliseconds).ok().filter(|_| (1..=Self::MAX).contains(&milliseconds)).map(Self)
    }
}

/// The function of F# that runs tests.
const RUN: &str = "Mainstay.Tests.run";

impl TestSelection {
    /// The code that runs them in a session of F#.
    pub fn code(&self) -> String {
        let Self { pattern, category, timeout_ms, changed_since, live } = self;
        let known = changed_since.iter().map(|(name, fingerprint)| format!("{name}={fingerprint}"));
        let known = known.collect::<Vec<_>>().join(";");
        let arguments = [
            pattern.as_deref().map(|text| format!("pattern = {}", literal(text))),
            category.as_deref().map(|text| format!("category = {}", literal(text))),
            timeout_ms.map(|TestTimeout(limit)| format!("timeoutMs = {limit}")),
            (!known.is_empty()).then(|| format!("changedSince = {}", literal(&known))),
        ];
        let live = live.iter().flat_map(choice::arguments);
        let live = live.map(|(name, value)| format!("{name} = {}", literal(&value)));
        let arguments: Vec<_> = arguments.into_iter().flatten().chain(live).collect();
        format!("{RUN}({})", arguments.join(", "))
    }

    /// Whether a session of this kind, which can do this, runs tests.
    ///
    /// # Errors
    /// [`Error::NotOfKind`].
    pub fn is_known_to(kind: &SessionKind, capabilities: Capabilities) -> Result<(), Error> {
        match Action::Test.is_of(capabilities) {
            true => Ok(()),
            false => Err(Error::NotOfKind { action: Action::Test, kind: kind.clone() }),
        }
    }

    /// Whether this is code that runs tests.
    pub fn is_run_by(code: &str) -> bool {
        code.strip_prefix(RUN).is_some_and(|rest| rest.starts_with('('))
    }
}

/// A text as F# writes it.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            control if control.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => literal.push(plain),
        }
    }
    literal.push('"');
    literal
}

/// What came of tests that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestRun {
    /// How many tests passed.
    pub passed: u64,
    /// How many tests failed.
    pub failed: u64,
    /// How many ran longer than they may.
    pub timed_out: u64,
    /// How many were not run.
    pub skipped: u64,
    /// How long all took together, in milliseconds.
    pub duration_ms: u64,
    /// Each of them, in the order in which they ran.
    pub tests: Vec<TestResult>,
    /// How many are not told one by one; all of them passed, unless there are very many that did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The assemblies with tests, each with what it and all that it needs are: another build gives another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assemblies: BTreeMap<String, String>,
    /// Those of them whose tests were left alone, since nothing of them had changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
    /// What the session's code was. A later run can ask for the tests that reach what has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeMark>,
    /// What was chosen of the tests that were found; none where all that were meant ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<TestChoice>,
    /// Whether a test goes on although its time is over: only a hard reset of the session ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_restart: bool,
    /// What could not be looked at; where no test was found, what would make some be found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What came of one test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// Its full name, with the arguments it was given.
    pub name: String,
    /// Whose test it is: `xUnit`, `NUnit`, `MSTest`, `Expecto`, `TUnit`, or the name of another framework's adapter.
    pub framework: String,
    /// The assembly it is in; none where the session's code defined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembly: Option<String>,
    /// Its categories, and its traits as `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The end of what it wrote to its framework's own output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Where its source stands, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<TestPlace>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: TestOutcome,
}

/// Where the source of a test stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TestPlace {
    /// The path of the file.
    pub file: String,
    /// The line at which it begins.
    pub line: u32,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TestOutcome {
    /// It ran to its end.
    Passed,
    /// It was not run, or did not want to be judged.
    Skipped {
        /// The reason why the test was skipped.
        reason: String,
    },
    /// It ran longer than it may.
    TimedOut {
        /// How long it might, in milliseconds.
        limit_ms: u64,
    },
    /// An exception escaped it.
    Failed {
        /// The failure of the test.
        failure: Box<TestFailure>,
    },
}

/// Why a test failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestFailure {
    /// The type of what was raised.
    pub kind: String,
    /// The message of the failure.
    pub message: String,
    /// What was expected, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was there instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Where it was raised, as far as that is the author's code, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// The file of the innermost that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// How far a run of tests has come. A later display under the same name replaces it, the report of the run in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestProgress {
    /// Which of the displays of this run it is, counted from one.
    pub nth: u64,
    /// How many have passed so far.
    pub passed: u64,
    /// How many have failed so far.
    pub failed: u64,
    /// How many have run longer than they may.
    pub timed_out: u64,
    /// How many were not run.
    pub skipped: u64,
    /// The results that no earlier display of the run has told, in the order in which the tests ran.
    pub tests: Vec<TestResult>,
    /// How many more of them there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// What people have not been told by an earlier display.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lines: String,
    /// Whether the lines of this display and those before it are all that people are told, so that the report adds nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_told_all: bool,
}

impl TestProgress {
    /// How far a display says that a run of tests is; none where it is of something else.
    pub fn shown(display: &Display) -> Option<Self> {
        read(display, TEST_PROGRESS)
    }
}

fn read<T: DeserializeOwned>(display: &Display, kind: &str) -> Option<T> {
    match display.data.form(kind) {
        Some(Form::Json(value)) => T::deserialize(value).ok(),
        Some(Form::Text(_) | Form::Binary(_)) | None => None,
    }
}

/// What a reader is told of runs of tests who sees one display after the other, and none replaced: each result once.
#[derive(Clone, Debug, Default)]
pub struct TestResultFeed {
    /// The run that goes on, and how many of its displays were seen from the first on.
    seen: Option<(DisplayId, u64)>,
    /// The run whose results were all told.
    told: Option<DisplayId>,
}

impl TestResultFeed {
    /// What is new in a display of a run of tests, which may be nothing. None where the display is to be shown as any other.
    pub fn of(&mut self, display: &Display) -> Option<String> {
        let id = display.id.as_ref()?;
        if let Some(TestProgress { nth, lines, has_told_all, .. }) = TestProgress::shown(display) {
            let before = self.seen.as_ref().filter(|(of, _)| of == id).map_or(0, |(_, seen)| *seen);
            // Who has missed one is told all by the report.
            let seen = if nth == before + 1 { nth } else { before };
            self.told = (has_told_all && seen == nth).then(|| id.clone());
            self.seen = Some((id.clone(), seen));
            return Some(lines);
        }
        let was_told = self.told.as_ref() == Some(id) && TestRun::shown(display).is_some();
        was_told.then(String::new)
    }
}

impl TestRun {
    /// What a display tells of tests; none where it is of something else.
    pub fn shown(display: &Display) -> Option<Self> {
        read(display, TESTS)
    }

    /// Whether there were tests, and none failed.
    pub fn succeeded(&self) -> bool {
        self.failed == 0 && self.timed_out == 0 && self.count() > 0
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.passed + self.failed + self.timed_out + self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::Bundle;

    #[test]
    fn what_is_selected_is_written_as_code() {
        let selection = TestSelection {
            pattern: Some("adds \"two\\three\"\n".to_owned()),
            category: Some("slow é".to_owned()),
            timeout_ms: TestTimeout::new(1500),
            changed_since: BTreeMap::from([
                ("A".to_owned(), "1".to_owned()),
                ("B".to_owned(), "2".to_owned()),
            ]),
            live: None,
        };
        insta::assert_snapshot!(selection.code(), @r#"Mainstay.Tests.run(pattern = "adds \"two\\three\"\u000a", category = "slow é", timeoutMs = 1500, changedSince = "A=1;B=2")"#);
        assert_eq!(TestSelection::default().code(), "Mainstay.Tests.run()");
        let live = LiveTesting {
            part: Some(TestPart::Reached(CodeMark("a:1".to_owned()))),
            policies: [("slow", TestPolicy::Within(5000)), ("web", TestPolicy::OnDemand)]
                .map(|(name, policy)| (name.to_owned(), policy))
                .into(),
            code: None,
        };
        let rest = LiveTesting {
            part: Some(TestPart::Rest(CodeMark("a:1".to_owned()))),
            policies: BTreeMap::new(),
            code: Some(CodeMark("a:2".to_owned())),
        };
        let code = |live| TestSelection { live: Some(live), ..TestSelection::default() }.code();
        insta::assert_snapshot!(code(live), @r#"Mainstay.Tests.run(part = "reached", since = "a:1", code = "", policies = "slow=5000;web=demand")"#);
        insta::assert_snapshot!(code(rest), @r#"Mainstay.Tests.run(part = "rest", since = "a:1", code = "a:2")"#);
    }

    #[test]
    fn a_test_has_some_time_and_no_more_than_can_be_counted() {
        assert_eq!((TestTimeout::new(0), TestTimeout::new(TestTimeout::MAX + 1)), (None, None));
        assert!(TestTimeout::new(1).is_some() && TestTimeout::new(TestTimeout::MAX).is_some());
    }

    #[test]
    fn a_display_of_tests_is_read_and_no_other() {
        let run = r#"{"passed":1,"failed":0,"timedOut":0,"skipped":0,"durationMs":3,"tests":[{"name":"adds","framework":"NUnit","durationMs":2,"outcome":"passed"}]}"#;
        let display = |kind: &str| Display {
            id: None,
            is_value: false,
            is_update: false,
            is_in_place: false,
            data: Bundle::from(
                [(kind.to_owned(), serde_json::from_str(run).unwrap())]
                    .into_iter()
                    .collect::<std::collections::BTreeMap<_, _>>(),
            ),
        };
        let read = TestRun::shown(&display(TESTS)).unwrap();
        assert_eq!((read.passed, read.tests.len(), read.succeeded()), (1, 1, true));
        assert_eq!(TestRun::shown(&display("application/json")), None);
    }

    fn shown(id: &str, kind: &str, form: serde_json::Value) -> Display {
        let data = serde_json::json!({ "text/plain": "in place", kind: form });
        Display {
            id: Some(DisplayId::new(id).unwrap()),
            is_value: false,
            is_update: false,
            is_in_place: false,
            data: serde_json::from_value(data).unwrap(),
        }
    }

    #[test]
    fn results_are_told_once_to_who_reads_one_display_after_the_other() {
        let progress = |nth, lines: &str, has_told_all| {
            let lines = lines.to_owned();
            let progress = TestProgress { nth, lines, has_told_all, ..TestProgress::default() };
            shown("a", TEST_PROGRESS, serde_json::to_value(progress).unwrap())
        };
        let report = |id| shown(id, TESTS, serde_json::to_value(TestRun::default()).unwrap());
        let mut news = TestResultFeed::default();
        let mut told = |display| news.of(&display);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(told(progress(1, "passed   adds", false)), text("passed   adds"));
        assert_eq!(told(progress(2, "", false)), text(""));
        assert_eq!(told(report("a")), None, "not all of it was told");
        assert_eq!(told(progress(3, "2 passed", true)), text("2 passed"));
        assert_eq!(told(report("b")), None, "it is of another run");
        assert_eq!(told(shown("a", "text/markdown", "x".into())), None);
        assert_eq!(told(report("a")), text(""));
        let mut late = TestResultFeed::default();
        assert_eq!(late.of(&progress(2, "", false)), text(""));
        assert_eq!(late.of(&progress(3, "2 passed", true)), text("2 passed"));
        assert_eq!(late.of(&report("a")), None, "the first was missed");
    }

    #[test]
    fn no_tests_are_no_success() {
        assert!(!TestRun::default().succeeded());
        assert!(!TestRun { passed: 1, timed_out: 1, ..TestRun::default() }.succeeded());
    }
}

//! Runs of tests that somebody's watch begins, in words: a line where something came out otherwise than before, and else nothing.

use std::collections::{BTreeSet, HashMap};

use mainstay_model::{
    ChosenPart, Event, EventBody, JobId, RecordedRuns, TestHistory, TestOutcome, TestRun, TestSelection,
};
use mainstay_terminal::{Paint, Tone, printable};

/// Follows runs that a watch begins.
#[derive(Default)]
pub(crate) struct WatchedTests {
    /// The runs under way, each with what came of it as far as that was said.
    runs: HashMap<JobId, Option<TestRun>>,
    history: TestHistory,
}

/// What an event tells of a watch's run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchedRun {
    /// Nothing that is to be shown.
    Quiet,
    /// Tests fail that did not, or failed otherwise than before.
    Fails(String),
    /// None fails any more.
    Passes(String),
}

impl WatchedRun {
    /// The line that says so; nothing of what is quiet.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let (tone, text) = match self {
            Self::Quiet => return String::new(),
            Self::Fails(text) => (Tone::Error, text),
            Self::Passes(text) => (Tone::Good, text),
        };
        format!("{} {}\n", paint.tone(Tone::Faint, "· tests:"), paint.tone(tone, &printable(text)))
    }
}

impl WatchedTests {
    /// What an event tells of such a run; none where it is of something else.
    pub(crate) fn take_in(&mut self, event: &Event) -> Option<WatchedRun> {
        match &event.body {
            EventBody::EvalRequested { job, code, .. } if is_watch(code) => {
                self.runs.insert(*job, None);
                Some(WatchedRun::Quiet)
            }
            EventBody::OutputProduced { job: Some(job), .. } | EventBody::OutputCut { job, .. } => {
                self.runs.contains_key(job).then_some(WatchedRun::Quiet)
            }
            EventBody::OutputDisplayed { job: Some(job), .. } => {
                let run = self.runs.get_mut(job)?;
                if let Some(shown) = RecordedRuns::run_of(event) {
                    *run = Some(shown);
                }
                Some(WatchedRun::Quiet)
            }
            EventBody::EvalCompleted { job, .. } => Some(match self.runs.remove(job)? {
                Some(run) => self.ended(&run),
                None => WatchedRun::Quiet,
            }),
            EventBody::EvalCancelled { job, .. } => self.runs.remove(job).map(|_| WatchedRun::Quiet),
            EventBody::EvalFailed { job, .. } | EventBody::EvalInterrupted { job } => {
                self.runs.remove(job)?;
                None
            }
            _ => None,
        }
    }

    fn failing(&self) -> BTreeSet<String> {
        self.history.failing().map(|(_, name)| name.to_owned()).collect()
    }

    fn ended(&mut self, run: &TestRun) -> WatchedRun {
        let before = self.failing();
        self.history.take_in(run);
        let failing = self.failing();
        let reach = run.choice.as_ref().filter(|choice| choice.part == ChosenPart::Reached);
        let reach = reach.map(|choice| format!("{} of {} reach the change, ", choice.chosen, choice.found));
        let reach = reach.unwrap_or_default();
        match (before == failing, failing.len()) {
            (true, _) => WatchedRun::Quiet,
            (false, 0) => WatchedRun::Passes(format!("{reach}all pass")),
            (false, count) => {
                let news: Vec<_> = failing.difference(&before).map(|name| named(run, name)).collect();
                let fail = if count == 1 { "fails" } else { "fail" };
                let news = if news.is_empty() { String::new() } else { format!(": {}", news.join(", ")) };
                WatchedRun::Fails(format!("{reach}{count} {fail}{news}"))
            }
        }
    }
}

/// A test that failed, with its place where that is known.
fn named(run: &TestRun, name: &str) -> String {
    let found = run.tests.iter().find(|test| test.name == name);
    let place = found.and_then(|test| match &test.outcome {
        TestOutcome::Failed { failure } => failure.file.clone().zip(failure.line),
        TestOutcome::Passed | TestOutcome::Skipped { .. } | TestOutcome::TimedOut { .. } => None,
    });
    let place = place.or_else(|| found?.place.clone().map(|place| (place.file, place.line)));
    match place {
        Some((file, line)) => {
            let file = file.rsplit(['/', '\\']).next().unwrap_or(&file);
            format!("{name} ({file}:{line})")
        }
        None => name.to_owned(),
    }
}

/// Whether code runs tests as a watch does: for the code as it is.
fn is_watch(code: &str) -> bool {
    TestSelection::is_run_by(code) && code.contains("code = \"")
}

#[cfg(test)]
mod tests {
    use mainstay_model::{TestFailure, TestPlace, TestResult};

    use super::*;

    fn test(name: &str, passes: bool) -> TestResult {
        let failure = TestFailure {
            kind: "E".to_owned(),
            message: "no".to_owned(),
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
            place: Some(TestPlace { file: "/shop/Tests.fs".to_owned(), line: 4 }),
            outcome: match passes {
                true => TestOutcome::Passed,
                false => TestOutcome::Failed { failure: Box::new(failure) },
            },
        }
    }

    #[test]
    fn a_run_is_told_where_it_differs_from_the_one_before() {
        let mut watched = WatchedTests::default();
        let mut ended = |first: bool, second: bool| {
            watched.ended(&TestRun {
                tests: vec![test("first", first), test("second", second)],
                ..TestRun::default()
            })
        };
        assert_eq!(ended(true, true), WatchedRun::Quiet);
        assert_eq!(ended(false, true), WatchedRun::Fails("1 fails: first (Tests.fs:4)".to_owned()));
        assert_eq!(ended(false, true), WatchedRun::Quiet, "it is known");
        assert_eq!(ended(false, false), WatchedRun::Fails("2 fail: second (Tests.fs:4)".to_owned()));
        assert_eq!(ended(false, true), WatchedRun::Fails("1 fails".to_owned()));
        assert_eq!(ended(true, true), WatchedRun::Passes("all pass".to_owned()));
    }

    #[test]
    fn a_run_that_somebody_asks_for_is_told_as_other_code_is() {
        assert!(is_watch("Mainstay.Tests.run(part = \"reached\", since = \"a:1\", code = \"\")"));
        assert!(!is_watch("Mainstay.Tests.run(pattern = \"code = \\\"\\\"\")"));
        assert!(!is_watch("Mainstay.Tests.run()"));
    }
}

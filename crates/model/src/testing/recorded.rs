//! The runs of tests that a session's events tell of, with what has changed since.

use jiff::Timestamp;

use super::{CodeMark, TestHistory, TestOutcome, TestPlace, TestResult, TestRun, TestSelection};
use crate::event::{Event, EventBody};
use crate::id::Seq;

/// How many changes since the last run are kept.
const CHANGES: usize = 200;

/// Runs of tests, and changes of the code since the last of them.
#[derive(Clone, Debug, Default)]
pub struct RecordedRuns {
    /// The newest runs that came to their ends, at most [`RecordedRuns::KEPT`], the oldest first.
    pub runs: Vec<RecordedRun>,
    /// What was said after the last run of code that is another, or is to be, at most 200 times, the oldest first.
    pub changes: Vec<String>,
    /// Whether tests run now.
    pub is_running: bool,
    /// The last event that was taken in.
    at: Seq,
}

/// A run of tests that came to its end.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The event that tells of it.
    pub seq: Seq,
    /// When the run ended.
    pub at: Timestamp,
    /// What came of it.
    pub run: TestRun,
}

/// A test that failed when it last ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest<'a> {
    /// The name of the test.
    pub name: &'a str,
    /// What it said, or that it took too long.
    pub message: String,
    /// Where it failed; where that is not known, where the test begins.
    pub place: Option<TestPlace>,
}

impl RecordedRuns {
    /// How many runs are kept.
    pub const KEPT: usize = 20;

    /// What events tell, the oldest first.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut recorded = Self::default();
        events.into_iter().for_each(|event| recorded.take_in(event));
        recorded
    }

    /// Takes in the next event; one that was taken in changes nothing.
    pub fn take_in(&mut self, event: &Event) {
        if event.seq <= self.at {
            return;
        }
        self.at = event.seq;
        match &event.body {
            EventBody::EvalRequested { code, .. } => self.is_running = TestSelection::is_run_by(code),
            EventBody::EvalCompleted { .. } | EventBody::JobEnded { .. } => self.is_running = false,
            _ => {}
        }
        if let Some(run) = Self::run_of(event) {
            self.changes.clear();
            if self.runs.len() == Self::KEPT {
                self.runs.remove(0);
            }
            self.runs.push(RecordedRun { seq: event.seq, at: event.at, run });
        } else if !self.runs.is_empty()
            && self.changes.len() < CHANGES
            && let Some(change) = change_of(event)
        {
            self.changes.push(change);
        }
    }

    /// What an event tells of a run of tests that came to its end.
    pub fn run_of(event: &Event) -> Option<TestRun> {
        match &event.body {
            EventBody::OutputDisplayed { display, .. } => TestRun::shown(display),
            _ => None,
        }
    }

    /// How each test ended in these runs.
    pub fn history(&self) -> TestHistory {
        let mut history = TestHistory::default();
        self.runs.iter().for_each(|recorded| history.take_in(&recorded.run));
        history
    }

    /// What the code was in these runs, each once.
    pub fn marks(&self) -> Vec<CodeMark> {
        let mut marks: Vec<CodeMark> = Vec::new();
        for mark in self.runs.iter().filter_map(|recorded| recorded.run.code.as_ref()) {
            if !marks.contains(mark) {
                marks.push(mark.clone());
            }
        }
        marks
    }

    /// What a test that failed said when it last ran.
    pub fn failure<'a>(&'a self, assembly: Option<&str>, name: &'a str) -> FailedTest<'a> {
        let mut results = self.runs.iter().rev().flat_map(|recorded| &recorded.run.tests);
        let found = results.find(|test| test.assembly.as_deref() == assembly && test.name == name);
        let (message, place) = found.map_or_else(|| (String::new(), None), said);
        FailedTest { name, message, place }
    }
}

/// What a test that failed said, and where.
fn said(test: &TestResult) -> (String, Option<TestPlace>) {
    match &test.outcome {
        TestOutcome::Failed { failure } => {
            let place = failure.file.clone().zip(failure.line).map(|(file, line)| TestPlace { file, line });
            (failure.message.trim().to_owned(), place.or_else(|| test.place.clone()))
        }
        TestOutcome::TimedOut { limit_ms } => {
            (format!("it ran longer than {limit_ms} ms"), test.place.clone())
        }
        TestOutcome::Passed | TestOutcome::Skipped { .. } => (String::new(), None),
    }
}

/// What an event says of code that is another now, or is to be.
fn change_of(event: &Event) -> Option<String> {
    match &event.body {
        EventBody::SourcesSwapped(swap) => (!swap.is_nothing()).then(|| swap.to_string()),
        EventBody::SourcesChanged { .. }
        | EventBody::AssembliesChanged { .. }
        | EventBody::WarmUpCompleted { .. }
        | EventBody::EvalCompleted { changes_state: true, .. } => Some(event.body.describe().sentence()),
        _ => None,
    }
}

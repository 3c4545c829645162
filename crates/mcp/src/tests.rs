//! `run_tests` and `list_tests`: the tests that a session's code defined, and those of the assemblies it refers to.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::screen::settled;
use mainstay_model::{
    Action, Error, SessionCommand, TestFailure, TestOutcome, TestProgress, TestResult, TestRun,
    TestSelection, TestTimeout,
};
use mainstay_protocol::{OperationId, operations};
use mainstay_runner::query::{KernelQuery, Test, Tests};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::eval::evaluated;
use super::needs::{Waits, Works};
use super::rebuild::HardResetSession;
use super::text::{TEXT_BYTES, shortened};
use super::tool::{Answer, Effect, Tool};
use mainstay_protocol::view::EvalView;

/// The most tests in one answer: of a run, of those that did not pass.
const ITEMS: usize = 200;
/// The most of a message, of a value, and of what the tests printed.
const MESSAGE_BYTES: usize = 2 * 1024;
/// How much of the stack is told.
const STACK_LINES: usize = 5;

/// Runs the tests of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunTests {
    session_id: Option<String>,
    /// Part of a name; with `*`, the whole.
    pattern: Option<String>,
    /// A category, or a trait as `name=value`.
    category: Option<String>,
    /// Of each test; 60000 by default.
    timeout_ms: Option<u64>,
}

/// What came of them.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunAnswer {
    session_id: String,
    /// Whether there were tests, and none failed.
    success: bool,
    /// The event that ended the run.
    seq: u64,
    passed: u64,
    failed: u64,
    timed_out: u64,
    skipped: u64,
    duration_ms: u64,
    /// Those that did not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<ResultLine>,
    /// How many more there are of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
    /// A test goes on although its time is over: hard reset the session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    must_restart: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What the tests printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// Why the run did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A test that did not pass.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResultLine {
    name: String,
    framework: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl Tool for RunTests {
    const NAME: &'static str = "run_tests";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Eval>()];
    const DESCRIPTION: &'static str =
        "Run xUnit, NUnit, MSTest and Expecto tests of a session's code and the assemblies it refers to.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Test);
    const WORKS: Works = Works::InAny(Action::Eval, Reach::InTurn);
    const WAITS: Waits = Waits::AsAsked;
    // Its words say all of it that matters.
    const SAYS_ANSWER: bool = false;
    type Answer = RunAnswer;

    async fn carry_out(self, call: &Call) -> Result<RunAnswer, Error> {
        let Self { session_id, pattern, category, timeout_ms } = self;
        let timeout_ms = timeout_ms.map(timeout).transpose()?;
        let session = call.workplace(session_id.as_deref(), Action::Test).await?;
        let ready = call.bring_up(session).await?;
        let command = call.code(
            &ready,
            SessionCommand::Eval(command::Eval {
                code: TestSelection { pattern, category, timeout_ms, ..TestSelection::default() }.code(),
                file: None,
                command_line: None,
                origin: None,
                withheld: false,
            }),
        );
        let old_build = ready.unbuilt_words().map(|what| {
            let rebuild = call.names().of::<HardResetSession>();
            format!(
                "these tests are of an older build: {what}; call {rebuild} with rebuild to run the new ones"
            )
        });
        let mut answer = RunAnswer::from(evaluated(call, &ready, command).await?);
        answer.notes.splice(0..0, old_build);
        Ok(answer)
    }
}

fn timeout(milliseconds: u64) -> Result<TestTimeout, Error> {
    TestTimeout::new(milliseconds).ok_or_else(|| Error::InvalidArgument {
        argument: "timeoutMs".to_owned(),
        reason: format!("it must be between 1 and {}", TestTimeout::MAX),
    })
}

impl From<EvalView> for RunAnswer {
    fn from(view: EvalView) -> Self {
        let run = view.displays.iter().find_map(|shown| TestRun::shown(&shown.display));
        let error = if run.is_some() { None } else { Some(why_none(&view)) };
        let run = run.or_else(|| until_cut_off(&view)).unwrap_or_default();
        let success = view.success && run.succeeded();
        let others: Vec<_> =
            run.tests.into_iter().filter(|test| !matches!(test.outcome, TestOutcome::Passed)).collect();
        let all = run.failed + run.timed_out + run.skipped;
        let tests: Vec<_> = others.into_iter().take(ITEMS).map(ResultLine::from).collect();
        let left_out = Some(all.saturating_sub(tests.len() as u64)).filter(|count| *count > 0);
        Self {
            session_id: view.session.short(),
            success,
            seq: view.seq.0,
            passed: run.passed,
            failed: run.failed,
            timed_out: run.timed_out,
            skipped: run.skipped,
            duration_ms: run.duration_ms,
            tests,
            left_out,
            must_restart: run.must_restart,
            notes: run.notes,
            output: shortened(
                settled(&format!("{}{}", view.stdout, view.stderr)).into_owned(),
                MESSAGE_BYTES,
            ),
            error,
        }
    }
}

/// How many tests had ended when a run was cut off.
fn until_cut_off(view: &EvalView) -> Option<TestRun> {
    let progress = view.displays.iter().find_map(|shown| TestProgress::shown(&shown.display))?;
    let TestProgress { passed, failed, timed_out, skipped, .. } = progress;
    Some(TestRun { passed, failed, timed_out, skipped, ..TestRun::default() })
}

/// Why a run told nothing of its tests.
fn why_none(view: &EvalView) -> String {
    let text = match (&view.error, view.diagnostics.first()) {
        (Some(error), _) => format!("{}: {}", error.kind, error.message),
        (None, Some(diagnostic)) => diagnostic.message.clone(),
        (None, None) => format!("the run ended without an answer: {}", view.ending),
    };
    shortened(text, TEXT_BYTES)
}

impl From<TestResult> for ResultLine {
    fn from(test: TestResult) -> Self {
        let TestResult { name, framework, outcome, .. } = test;
        let line = |outcome| Self {
            name,
            framework,
            outcome,
            reason: None,
            kind: None,
            message: None,
            expected: None,
            actual: None,
            stack: Vec::new(),
            file: None,
            line: None,
        };
        match outcome {
            TestOutcome::Passed => line("passed"),
            TestOutcome::Skipped { reason } => Self { reason: Some(reason), ..line("skipped") },
            TestOutcome::TimedOut { limit_ms } => {
                Self { reason: Some(format!("it ran longer than {limit_ms} ms")), ..line("timedOut") }
            }
            TestOutcome::Failed { failure } => {
                let TestFailure { kind, message, expected, actual, mut stack, file, line: number } = *failure;
                let short = |text| shortened(text, MESSAGE_BYTES);
                stack.truncate(STACK_LINES);
                Self {
                    kind: Some(kind),
                    message: Some(short(message)),
                    expected: expected.map(short),
                    actual: actual.map(short),
                    stack,
                    file,
                    line: number,
                    ..line("failed")
                }
            }
        }
    }
}

impl Answer for RunAnswer {
    const IS_MARKED: bool = true;

    /// Tests that fail are an answer; a run that did not come to its end is none.
    fn is_failure(&self) -> bool {
        self.error.is_some()
    }
}

impl Display for RunAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if !self.output.is_empty() {
            writeln!(f, "{}", self.output.trim_end())?;
        }
        for test in &self.tests {
            write!(f, "{} {}", test.outcome, test.name)?;
            for text in [&test.reason, &test.message].into_iter().flatten() {
                write!(f, ": {}", text.trim())?;
            }
            writeln!(f)?;
            match (&test.file, test.line, test.stack.first()) {
                (Some(file), Some(line), _) => writeln!(f, "  at {file}:{line}")?,
                (_, _, Some(frame)) => writeln!(f, "  at {frame}")?,
                (_, _, None) => {}
            }
        }
        if let Some(count) = self.left_out {
            writeln!(f, "… {count} more")?;
        }
        for note in self.notes.iter().chain(&self.error) {
            writeln!(f, "{note}")?;
        }
        if self.must_restart {
            writeln!(f, "a test goes on although its time is over: hard reset the session")?;
        }
        let Self { passed, failed, timed_out, skipped, session_id, seq, .. } = self;
        write!(
            f,
            "passed {passed}, failed {failed}, timed out {timed_out}, skipped {skipped} \
             [session {session_id}, seq {seq}]"
        )
    }
}

/// Lists the tests of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListTests {
    session_id: Option<String>,
    /// Part of a name; with `*`, the whole.
    pattern: Option<String>,
    /// A category, or a trait as `name=value`.
    category: Option<String>,
}

/// The tests that were listed.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestsAnswer {
    session_id: String,
    tests: Vec<TestLine>,
    /// How many there are in all.
    found: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One test in a list.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TestLine {
    name: String,
    framework: String,
    /// None for what the session defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    assembly: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    /// Why it would not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    /// None where only running it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<u64>,
}

impl From<Test> for TestLine {
    fn from(test: Test) -> Self {
        let Test { name, framework, assembly, categories, skipped, cases } = test;
        Self { name, framework, assembly, categories, skipped, cases }
    }
}

impl Tool for ListTests {
    const NAME: &'static str = "list_tests";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ListTests>()];
    const DESCRIPTION: &'static str = "List the tests that `run_tests` would run; nothing runs.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Test);
    const WORKS: Works = Works::InAny(Action::Test, Reach::Started);
    type Answer = TestsAnswer;

    async fn carry_out(self, call: &Call) -> Result<TestsAnswer, Error> {
        let Self { session_id, pattern, category } = self;
        let session = call.workplace(session_id.as_deref(), Action::Test).await?;
        call.bring_up(session).await?;
        let query = KernelQuery::Tests { pattern, category };
        let Tests { items, found, notes } = call.client().query(session, query).await?.tests()?;
        let tests = items.into_iter().take(ITEMS).map(TestLine::from).collect();
        Ok(TestsAnswer { session_id: session.short(), tests, found, notes })
    }
}

impl Answer for TestsAnswer {
    const IS_MARKED: bool = true;
}

impl Display for TestsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for TestLine { name, framework, assembly, categories, skipped, cases: _ } in &self.tests {
            write!(f, "{name} ({framework}")?;
            if let Some(place) = assembly {
                write!(f, " in {place}")?;
            }
            write!(f, ")")?;
            if !categories.is_empty() {
                write!(f, " [{}]", categories.join(", "))?;
            }
            match skipped {
                Some(reason) => writeln!(f, " skipped: {reason}")?,
                None => writeln!(f)?,
            }
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        write!(f, "tests: {} of {} [session {}]", self.tests.len(), self.found, self.session_id)
    }
}

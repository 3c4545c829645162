//! `get_live_test_status` and `set_run_policy`: what the last runs of tests said, without running any, and which tests run by themselves.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::{
    Action, Error, FailedTest, RecordedRun, RecordedRuns, SessionCommand, SessionId, TestPolicy, Timestamp,
};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::eval::evaluated;
use super::needs::Works;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// How much is told of a failure, and of a change.
const WORDS_BYTES: usize = 400;
/// The most tests and changes in one answer.
const ITEMS: usize = 20;

/// Asks how tests ended when they last ran.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetLiveTestStatus {
    session_id: Option<String>,
}

/// What the last runs said.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveTestStatus {
    session_id: String,
    /// None where no test has run lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastRun>,
    running: bool,
    /// Why the results may be of older code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_since: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failing: Vec<FailingTest>,
    /// Another ending with the same code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flaky: Vec<String>,
    /// How many more there are of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// The run that ended last.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LastRun {
    seq: u64,
    at: Timestamp,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// What had changed, where the run was for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
}

/// A test that failed when it last ran.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct FailingTest {
    name: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl Tool for GetLiveTestStatus {
    const NAME: &'static str = "get_live_test_status";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "How tests ended when they last ran, on which code; nothing runs.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    type Answer = LiveTestStatus;

    async fn carry_out(self, call: &Call) -> Result<LiveTestStatus, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Events).await?;
        Ok(status(&call.client().test_runs(session).await?, session))
    }
}

fn status(told: &RecordedRuns, session: SessionId) -> LiveTestStatus {
    let history = told.history();
    let failing: Vec<_> = history.failing().map(|(assembly, name)| told.failure(assembly, name)).collect();
    let flaky: Vec<_> = history.flaky().map(str::to_owned).collect();
    let left = failing.len().saturating_sub(ITEMS) + flaky.len().saturating_sub(ITEMS);
    LiveTestStatus {
        session_id: session.short(),
        last: told.runs.last().map(LastRun::from),
        running: told.is_running,
        changed_since: told.changes.iter().map(|words| beginning(words, WORDS_BYTES)).take(ITEMS).collect(),
        failing: failing.into_iter().take(ITEMS).map(FailingTest::from).collect(),
        flaky: flaky.into_iter().take(ITEMS).collect(),
        left_out: Some(left).filter(|count| *count > 0),
    }
}

impl From<FailedTest<'_>> for FailingTest {
    fn from(failed: FailedTest<'_>) -> Self {
        let FailedTest { name, message, place } = failed;
        let (file, line) = place.map(|place| (place.file, place.line)).unzip();
        Self { name: name.to_owned(), message: beginning(&message, WORDS_BYTES), file, line }
    }
}

impl From<&RecordedRun> for LastRun {
    fn from(recorded: &RecordedRun) -> Self {
        let RecordedRun { seq, at, run } = recorded;
        let changed = run.choice.as_ref().map(|choice| &choice.changed[..]).unwrap_or_default();
        Self {
            seq: seq.0,
            at: Timestamp::from_second(at.as_second()).unwrap_or(*at),
            passed: run.passed,
            failed: run.failed + run.timed_out,
            skipped: run.skipped,
            changed: changed.iter().take(ITEMS).cloned().collect(),
        }
    }
}

impl Answer for LiveTestStatus {}

impl Display for LiveTestStatus {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for FailingTest { name, message, file, line } in &self.failing {
            write!(f, "failed {name}: {message}")?;
            if let (Some(file), Some(line)) = (file, line) {
                write!(f, " at {file}:{line}")?;
            }
            writeln!(f)?;
        }
        for name in &self.flaky {
            writeln!(f, "flaky {name}")?;
        }
        if let Some(count) = self.left_out {
            writeln!(f, "… {count} more")?;
        }
        match &self.last {
            None => write!(f, "no test has run lately")?,
            Some(LastRun { at, passed, failed, skipped, changed, .. }) => {
                let green = if self.failing.is_empty() { "all green" } else { "not green" };
                write!(f, "{green}, last run {at}: passed {passed}, failed {failed}, skipped {skipped}")?;
                if !changed.is_empty() {
                    write!(f, "; it was for {}", changed.join(", "))?;
                }
            }
        }
        if self.running {
            write!(f, "; tests are running")?;
        }
        if !self.changed_since.is_empty() {
            write!(f, "; since then: {}", self.changed_since.join("; "))?;
        }
        write!(f, " [session {}]", self.session_id)
    }
}

/// Sets when tests of a category run.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SetRunPolicy {
    session_id: Option<String>,
    category: String,
    policy: String,
}

/// The policy that was set.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunPolicyAnswer {
    session_id: String,
    category: String,
    policy: String,
}

impl Tool for SetRunPolicy {
    const NAME: &'static str = "set_run_policy";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Eval>()];
    const DESCRIPTION: &'static str =
        "Set when tests of a category run under watch: `save`, `demand`, or for so many milliseconds.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: true };
    const ACTION: Option<Action> = Some(Action::Test);
    const WORKS: Works = Works::InAny(Action::Eval, Reach::InTurn);
    const SAYS_ANSWER: bool = false;
    type Answer = RunPolicyAnswer;

    async fn carry_out(self, call: &Call) -> Result<RunPolicyAnswer, Error> {
        let Self { session_id, category, policy } = self;
        let invalid = |argument: &str, reason: &str| Error::InvalidArgument {
            argument: argument.to_owned(),
            reason: reason.to_owned(),
        };
        let known = TestPolicy::named(&policy)
            .ok_or_else(|| invalid("policy", "it must be `save`, `demand` or a number of milliseconds"))?;
        if category.trim().is_empty() {
            return Err(invalid("category", "it must be the name of a category"));
        }
        let session = call.workplace(session_id.as_deref(), Action::Test).await?;
        let ready = call.bring_up(session).await?;
        let code = known.code(&category);
        let eval = command::Eval { code, file: None, command_line: None, origin: None, withheld: false };
        let view = evaluated(call, &ready, call.code(&ready, SessionCommand::Eval(eval))).await?;
        match view.success {
            true => Ok(RunPolicyAnswer { session_id: session.short(), category, policy }),
            false => Err(invalid("category", &view.ending.to_string())),
        }
    }
}

impl Answer for RunPolicyAnswer {}

impl Display for RunPolicyAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, category, policy } = self;
        write!(f, "{category}: {policy} [session {session_id}]")
    }
}

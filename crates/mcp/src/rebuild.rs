//! `hard_reset_session`: dropping definitions and worker, or first building the project: what fails to build leaves the session as it is.

use std::collections::VecDeque;
use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::screen::settled;
use mainstay_model::{
    Action, Diagnostic, Error, EventBody, JobSpec, Response, Session, SessionCommand, SessionId, Severity,
    WorkEnding, WorkOutcome,
};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, unexpected};
use super::command_wait::carried_out;
use super::diagnostic::{DiagnosticLine, wants_change};
use super::needs::{Waits, Works};
use super::text::{TEXT_BYTES, shortened};
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::view::for_each_between;

/// How much is told of what a build printed: its last lines.
const LINES: usize = 40;
/// The most of a build's diagnostics, and of what was not loaded.
const ITEMS: usize = 100;

/// Drops the definitions and the worker.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HardResetSession {
    session_id: Option<String>,
    /// Build its project first, in a session that runs nothing and is not Faulted; a build that fails changes nothing.
    rebuild: Option<bool>,
    /// Keep the definitions: the new worker runs them again.
    keep: Option<bool>,
}

/// The session afterwards, and what became of the build.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResetAnswer {
    session_id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<BuildLine>,
    /// What the new worker has loaded, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<String>,
    /// What did not load, or not as it was meant to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// What became of a build.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BuildLine {
    success: bool,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<DiagnosticLine>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// The last lines that it printed, where it did not succeed.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
}

impl Tool for HardResetSession {
    const NAME: &'static str = "hard_reset_session";
    const OPERATIONS: &'static [OperationId] = &[
        OperationId::of::<operations::ResetSession>(),
        OperationId::of::<operations::RefreshSession>(),
        OperationId::of::<operations::DoWork>(),
    ];
    const SEED_NAME: Option<&'static str> = Some("hard_reset_fsi_session");
    const DESCRIPTION: &'static str = "Drop a session's definitions and its worker, whatever it does.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: true };
    const ACTION: Option<Action> = Some(Action::HardReset);
    const WORKS: Works = Works::In(Action::HardReset, Reach::AtOnce);
    const WAITS: Waits = Waits::AsAsked;
    // Its words say all of it that matters.
    const SAYS_ANSWER: bool = false;
    type Answer = ResetAnswer;

    async fn carry_out(self, call: &Call) -> Result<ResetAnswer, Error> {
        let reference = self.session_id.as_deref();
        let keep = self.keep == Some(true);
        if self.rebuild == Some(true) {
            let session = call.existing(reference, Action::Rebuild).await?;
            let ready = call.bring_up(session).await?;
            let work = if keep { JobSpec::Build } else { JobSpec::Rebuild };
            let command = call.command(SessionCommand::Work(work));
            return match carried_out(call, &ready, command).await? {
                Response::Worked(outcome) => ResetAnswer::of_build(call, session, outcome).await,
                response => Err(unexpected(&response)),
            };
        }
        let (action, body) = match keep {
            true => (Action::Refresh, SessionCommand::Refresh(command::Refresh { all: true })),
            false => (Action::HardReset, SessionCommand::HardReset),
        };
        let session = call.existing(reference, action).await?;
        call.submit(session, body).await?;
        Ok(ResetAnswer::of(&*call.settled(session).await?))
    }
}

impl ResetAnswer {
    fn of(session: &Session) -> Self {
        Self {
            session_id: session.id.short(),
            state: session.state().name(),
            fault: session.fault().map(str::to_owned),
            build: None,
            loaded: None,
            problems: Vec::new(),
        }
    }

    /// The answer to a build that has ended. Where it succeeded, this waits until the session is Ready with what was built.
    pub(super) async fn of_build(
        call: &Call,
        session: SessionId,
        outcome: WorkOutcome,
    ) -> Result<Self, Error> {
        let build = BuildLine::load(call, session, outcome).await?;
        let session = match build.success {
            true => call.settled(session).await?,
            false => call.client().status(session).await?.session.into(),
        };
        let startup = session.startup.as_ref().filter(|_| build.success);
        let mut problems = startup.map(|startup| startup.faults()).unwrap_or_default();
        problems.truncate(ITEMS);
        let loaded = startup.map(ToString::to_string);
        Ok(Self { build: Some(build), loaded, problems, ..Self::of(&session) })
    }
}

impl BuildLine {
    async fn load(call: &Call, session: SessionId, outcome: WorkOutcome) -> Result<Self, Error> {
        let WorkOutcome { requested, completed, ending, .. } = outcome;
        let (message, diagnostics) = match ending {
            WorkEnding::Done { value, .. } => (None, serde_json::from_value(value).unwrap_or_default()),
            WorkEnding::Failed { message, diagnostics } => (Some(message), diagnostics),
            ending @ (WorkEnding::Cancelled { .. } | WorkEnding::Interrupted) => {
                (Some(ending.to_string()), Vec::new())
            }
        };
        let output = match message {
            Some(_) => printed(call, session, (requested, completed)).await?,
            None => String::new(),
        };
        let (diagnostics, left_out) = bounded(diagnostics);
        let diagnostics = diagnostics.into_iter().map(DiagnosticLine::from).collect();
        Ok(Self { success: message.is_none(), message, diagnostics, left_out, output })
    }
}

/// What is told of diagnostics, and how many more there are: the errors first, so that many warnings leave none of them out.
fn bounded(diagnostics: Vec<Diagnostic>) -> (Vec<Diagnostic>, Option<usize>) {
    let mut told: Vec<_> = diagnostics.into_iter().filter(wants_change).collect();
    told.sort_by_key(|diagnostic| diagnostic.severity != Severity::Error);
    let left_out = Some(told.len().saturating_sub(ITEMS)).filter(|count| *count > 0);
    told.truncate(ITEMS);
    (told, left_out)
}

/// The last lines that a job printed.
async fn printed(
    call: &Call,
    session: SessionId,
    (requested, completed): (mainstay_model::Seq, mainstay_model::Seq),
) -> Result<String, Error> {
    let mut lines = VecDeque::new();
    let mut begun = String::new();
    for_each_between(call.client(), session, requested, completed, |event| {
        if let EventBody::OutputProduced { text, .. } = &event.body {
            begun.push_str(text);
            while let Some(end) = begun.find('\n') {
                lines.push_back(begun.drain(..=end).collect::<String>());
                if lines.len() > LINES {
                    lines.pop_front();
                }
            }
        }
    })
    .await?;
    lines.push_back(begun);
    Ok(shortened(settled(&String::from_iter(lines)).into_owned(), TEXT_BYTES))
}

impl Answer for ResetAnswer {
    fn is_failure(&self) -> bool {
        self.fault.is_some() || self.build.as_ref().is_some_and(|build| !build.success)
    }
}

impl Display for ResetAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, state, fault, build, loaded, problems } = self;
        if let Some(BuildLine { message, diagnostics, left_out, output, .. }) = build {
            if !output.is_empty() {
                writeln!(f, "{}", output.trim_end())?;
            }
            for diagnostic in diagnostics {
                writeln!(f, "{diagnostic}")?;
            }
            if let Some(count) = left_out {
                writeln!(f, "… {count} more")?;
            }
            match message {
                Some(message) => {
                    writeln!(f, "the build did not succeed, the session is as it was: {message}")?
                }
                None => writeln!(f, "built")?,
            }
        }
        for line in loaded.iter().chain(problems) {
            writeln!(f, "{line}")?;
        }
        match fault {
            Some(fault) => write!(f, "{state}: {fault} [session {session_id}]"),
            None => write!(f, "{state} [session {session_id}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::TextPosition;

    use super::*;

    #[test]
    fn many_warnings_leave_no_error_out() {
        let start = TextPosition { line: 1, column: 1 };
        let of = |severity| Diagnostic {
            severity,
            code: "FS0039".to_owned(),
            message: String::new(),
            file: None,
            start,
            end: start,
        };
        let printed = std::iter::repeat_n(of(Severity::Warning), ITEMS + 1).chain([of(Severity::Error)]);
        let (told, left_out) = bounded(printed.collect());
        assert_eq!((told[0].severity, told.len(), left_out), (Severity::Error, ITEMS, Some(2)));
    }
}

//! `diagnose`: what is wrong with a session, and what to do next.

use std::fmt::{Display, Formatter};

use mainstay_engine::SessionStatus;
use mainstay_model::breaker::BreakerState;
use mainstay_model::startup::Startup;
use mainstay_model::{
    Action, Error, Event, EventBody, PendingAsk, RunningJob, Seq, Session, SessionKind, SessionState,
    Timestamp, ValidityCounts,
};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::error::next_step_in;
use super::eval::SendCode;
use super::events::GetRecentEvents;
use super::lifecycle::StopSession;
use super::names::Names;
use super::needs::Works;
use super::rebuild::HardResetSession;
use super::status::GetStatus;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// Among how many of the newest events ends of workers are looked for.
const EVENTS: usize = 512;
/// The most ends of workers in an answer.
const EXITS: usize = 3;
/// For how many seconds the end of a worker is news.
const NEWS_SECONDS: i64 = 3600;
/// For how many seconds code may run before it is looked at.
const LONG_SECONDS: i64 = 60;
/// How much of a reason is shown, in bytes.
const TEXT_BYTES: usize = 600;

/// Asks what is wrong.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Diagnose {
    session_id: Option<String>,
}

/// What is wrong, the worst first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiagnoseAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    state: &'static str,
    problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Problem {
    what: String,
    next_step: String,
}

impl Tool for Diagnose {
    const NAME: &'static str = "diagnose";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "What is wrong with a session, and what to do next.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Status);
    const WORKS: Works = Works::Always;
    type Answer = DiagnoseAnswer;

    async fn carry_out(self, call: &Call) -> Result<DiagnoseAnswer, Error> {
        let Some(session) = call.find(self.session_id.as_deref()).await? else {
            let problems = unstartable(call, &call.meant().kind().await).into_iter().collect();
            let state = SessionState::Uninitialized.name();
            return Ok(DiagnoseAnswer { session_id: None, state, problems });
        };
        let SessionStatus { session: mut stored, .. } = call.client().status(session).await?;
        let after = Seq(stored.last_seq.0.saturating_sub(EVENTS as u64));
        let events = call.client().events(session, after, EVENTS).await?;
        let validity = call.client().validity(session).await?.unwrap_or_default();
        stored.asks.retain(|pending| call.client().may_be_asked(pending));
        let mut problems = wrong_with(&stored, &events, validity, (Timestamp::now(), call.names()));
        problems.extend(unstartable(call, &stored.kind));
        Ok(DiagnoseAnswer { session_id: Some(session.short()), state: stored.state().name(), problems })
    }
}

/// What is wrong with a session.
fn wrong_with(
    session: &Session,
    events: &[Event],
    stale: ValidityCounts,
    (now, names): (Timestamp, Names),
) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(session.fault().map(|message| faulted(message, names)));
    problems.extend(exits(session, events, now).map(|what| Problem {
        what,
        next_step: format!(
            "Call {} for what ran then; nothing where it is back.",
            names.of::<GetRecentEvents>()
        ),
    }));
    problems.extend(session.asks.iter().map(|ask| asked(ask, names)));
    problems.extend(session.running().and_then(|running| running_long(running, names, now)));
    problems.extend(waiting(session, names));
    problems.extend(session.rebuilt.as_ref().map(|rebuilt| Problem {
        what: beginning(&rebuilt.to_string(), TEXT_BYTES),
        next_step: "Run again what must be as it was.".to_owned(),
    }));
    problems.extend(brought_in(session, names));
    problems.extend(changed(stale, names));
    problems.extend(session.unbuilt_words().map(|what| Problem { what, next_step: rebuild(session, names) }));
    problems
}

/// What of its project and its user's scripts is not there.
fn brought_in(session: &Session, names: Names) -> Vec<Problem> {
    let Some(Startup { notes, project, profiles }) = session.startup.as_deref() else { return Vec::new() };
    let notes = notes.iter().map(|note| Problem {
        what: beginning(note, TEXT_BYTES),
        next_step: format!("Mend it, then call {}.", names.of::<HardResetSession>()),
    });
    let project = project.iter().filter(|project| !project.is_whole()).map(|project| Problem {
        what: beginning(&project.faults().join("; "), TEXT_BYTES),
        next_step: rebuild(session, names),
    });
    let scripts = profiles.iter().filter_map(|script| {
        let what = beginning(&script.fault()?, TEXT_BYTES);
        let next_step = format!("Mend {}, then call {}.", script.path, names.of::<HardResetSession>());
        Some(Problem { what, next_step })
    });
    notes.chain(project).chain(scripts).collect()
}

/// How its project is built, where that can be done as the session is.
fn rebuild(session: &Session, names: Names) -> String {
    let call = format!("all {} with rebuild.", names.of::<HardResetSession>());
    match session.state() {
        // It starts, or gets ready, first.
        SessionState::Uninitialized | SessionState::WarmingUp | SessionState::Ready => format!("C{call}"),
        SessionState::Evaluating | SessionState::Waiting(_) => format!("Once what runs has ended, c{call}"),
        SessionState::Faulted => format!("Once the session is Ready again, c{call}"),
    }
}

fn faulted(message: &str, names: Names) -> Problem {
    let kernel = Error::KernelUnavailable { reason: String::new() };
    let tool_worker = Error::ToolWorkerUnavailable { reason: String::new() };
    let unavailable = [kernel, tool_worker].into_iter().find(|error| message.starts_with(&error.to_string()));
    let next_step = match unavailable {
        Some(error) => error.next_step(),
        None => format!("Call {}, then {}.", names.of::<StopSession>(), names.of::<SendCode>()),
    };
    // A fault may say its next step itself.
    let what = message.trim_end_matches(&next_step).trim_end_matches([' ', '.']);
    Problem { what: beginning(what, TEXT_BYTES), next_step }
}

/// The newest ends of workers that nobody had told to end, the latest first.
fn exits(session: &Session, events: &[Event], now: Timestamp) -> impl Iterator<Item = String> {
    let is_news =
        move |event: &&Event| event.seq > session.definitions_since && seconds(event.at, now) <= NEWS_SECONDS;
    events.iter().rev().filter(is_news).filter_map(move |event| exit(event, now)).take(EXITS)
}

fn exit(event: &Event, now: Timestamp) -> Option<String> {
    // Attempt 0 is code that ended its worker on purpose.
    let EventBody::WorkerExited { exit, attempt: 1.., reason, .. } = &event.body else { return None };
    let ago = seconds(event.at, now);
    let reason = reason.as_ref().map(|reason| format!(", {}", beginning(reason, TEXT_BYTES)));
    Some(format!("the worker was lost {ago} s ago: {exit}{}", reason.unwrap_or_default()))
}

fn asked(pending: &PendingAsk, names: Names) -> Problem {
    let prompt = beginning(&pending.ask.question.prompt, TEXT_BYTES);
    let next_step = format!("Call {} with ask {}.", names.of::<AnswerAsk>(), pending.ask.ask.short());
    Problem { what: format!("it asks: {prompt}"), next_step }
}

fn running_long(running: &RunningJob, names: Names, now: Timestamp) -> Option<Problem> {
    let seconds = seconds(running.requested_at, now);
    (seconds > LONG_SECONDS).then(|| Problem {
        what: format!("what runs has taken {seconds} s"),
        next_step: format!("Call {} with wait, or {}.", names.of::<GetStatus>(), names.of::<CancelEval>()),
    })
}

fn waiting(session: &Session, names: Names) -> Option<Problem> {
    let count = session.lane.len();
    (count > 0).then(|| Problem {
        what: format!("commands that wait for their turn: {count}"),
        next_step: format!("Call {} with wait.", names.of::<GetStatus>()),
    })
}

fn changed(ValidityCounts { stale, invalid, unknown: _ }: ValidityCounts, names: Names) -> Option<Problem> {
    (stale + invalid > 0).then(|| Problem {
        what: format!("evals that used what has changed since: {stale}, or is gone: {invalid}"),
        next_step: format!("{} marks them; run them again.", names.of::<GetRecentEvents>()),
    })
}

/// Why no session of this kind can be started just now.
fn unstartable(call: &Call, kind: &SessionKind) -> Option<Problem> {
    let breaker = call.client().breakers().remove(kind)?;
    match breaker.state {
        BreakerState::Closed => None,
        BreakerState::Open | BreakerState::HalfOpen => {
            let reason = breaker.reason.unwrap_or_else(|| "its start fails".to_owned());
            let retry_after_ms = breaker.retry_after_ms.unwrap_or_default();
            let refused =
                Error::RunnerUnavailable { kind: kind.clone(), provider: None, reason, retry_after_ms };
            let next_step = next_step_in(&refused, call.names());
            Some(Problem { what: beginning(&refused.to_string(), TEXT_BYTES), next_step })
        }
    }
}

fn seconds(then: Timestamp, now: Timestamp) -> i64 {
    now.duration_since(then).as_secs().max(0)
}

impl Answer for DiagnoseAnswer {}

impl Display for DiagnoseAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, state, problems } = self;
        for Problem { what, next_step } in problems {
            writeln!(f, "{what}. {next_step}")?;
        }
        let healthy = if problems.is_empty() { "nothing is wrong, " } else { "" };
        match session_id {
            Some(session) => write!(f, "{healthy}{state} [session {session}]"),
            None => write!(f, "{healthy}no session yet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{Command, CommandId, SessionCommand, SessionId, Source};
    use serde_json::json;

    use super::*;

    fn running_for(seconds: i64) -> Option<String> {
        let now = Timestamp::now();
        let id = CommandId::new("c").unwrap();
        let command = Command::new(id.clone(), Source::System, SessionCommand::Reset);
        let session = SessionId::from_uuid(uuid::Uuid::now_v7());
        let running = json!({
            "job": uuid::Uuid::now_v7(),
            "command": id,
            "source": Source::System,
            "fingerprint": command.fingerprint(session),
            "requested": 1,
            "requestedAt": now - std::time::Duration::from_secs(seconds.unsigned_abs()),
            "cancelRequested": false,
        });
        let running = serde_json::from_value(running).unwrap();
        running_long(&running, Names::Neutral, now).map(|problem| problem.what)
    }

    #[test]
    fn what_runs_long_is_named_once_it_is_long() {
        assert_eq!(running_for(LONG_SECONDS), None);
        assert_eq!(running_for(LONG_SECONDS + 1), Some("what runs has taken 61 s".to_owned()));
    }

    #[test]
    fn evals_that_rest_on_what_has_changed_are_counted() {
        let counted = |stale, invalid| {
            let counts = ValidityCounts { stale, invalid, unknown: 3 };
            changed(counts, Names::Neutral).map(|Problem { what, next_step }| (what, next_step))
        };
        assert_eq!(counted(0, 0), None);
        let next_step = "get_recent_events marks them; run them again.".to_owned();
        let what = "evals that used what has changed since: 2, or is gone: 1".to_owned();
        assert_eq!(counted(2, 1), Some((what, next_step)));
    }
}

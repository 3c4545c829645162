//! The signals of `/eval`: what each event tells of the session's jobs. [`turn`](super::turn) has what it tells of an agent's work.

use mainstay_model::{
    Binding, CommandId, Diagnostic, Display, EvalEnd, EvalResult, Event, EventBody, Failure, JobPart,
    OutputStream, Principal, Seq, Source, Timestamp,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::bare::{choice, told};
use super::turn::{TurnMessageSignal, TurnOutputSignal, TurnResultSignal, agents};

/// What `/eval` tells: of each signal that is there, what is new of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in super::super) struct EvalSignals<'a> {
    /// A job, as far as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval: Option<EvalSignal<'a>>,
    /// What it printed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval_output: Option<OutputSignal<'a>>,
    /// What it showed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval_display: Option<DisplaySignal<'a>>,
    /// That what it has printed and shown so far is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval_cleared: Option<ClearedSignal<'a>>,
    /// What the eval came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval_result: Option<EvalResultSignal<'a>>,
    /// What an agent says next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_output: Option<TurnOutputSignal<'a>>,
    /// What was said, once it is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_message: Option<TurnMessageSignal<'a>>,
    /// What the agent's work came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_result: Option<TurnResultSignal<'a>>,
}

told!(EvalSignals<'a> {
    eval, eval_output, eval_display, eval_cleared, eval_result, turn_output, turn_message, turn_result
});

/// How long the job took that this event ends.
pub(in super::super) const fn duration_of(event: &Event) -> Option<u64> {
    if let EventBody::EvalCompleted { duration_ms, .. }
    | EventBody::EvalFailed { duration_ms, .. }
    | EventBody::JobEnded { duration_ms, .. } = &event.body
    {
        return Some(*duration_ms);
    }
    None
}

/// Whether what was found out about code is out of date with this event.
pub(in super::super) const fn clears_diagnostics(event: &Event) -> bool {
    matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset)
}

/// Whether a job begins with this event.
pub(in super::super) const fn begins_job(event: &Event) -> bool {
    matches!(event.body, EventBody::EvalRequested { .. } | EventBody::JobRequested { .. })
}

/// A job, as far as it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvalSignal<'a> {
    state: JobState,
    /// The command that asked for it.
    command_id: Option<&'a CommandId>,
    /// The event that says so.
    seq: Seq,
    /// When the event happened.
    at: Timestamp,
    /// The code, or what was said to an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    /// The file whose text it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// Who asked: the client's name, and its principal where that is another than the daemon's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

told!(EvalSignal<'a> { state, command_id, seq, at, code, file, by });

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum JobState {
    Idle,
    Running,
    Cancelling,
    Ended,
}

choice!(JobState { Idle, Running, Cancelling, Ended });

/// A piece of output: it stands behind the pieces before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutputSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    stream: OutputStream,
    text: &'a str,
}

told!(OutputSignal<'a> { command_id, seq, stream, text });

/// Something that code showed: it stands behind what was printed before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DisplaySignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    /// It, in its forms by MIME type.
    #[serde(flatten)]
    display: &'a Display,
}

told!(DisplaySignal<'a> { command_id, seq | display });

/// Code took back what it had printed and shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClearedSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
}

told!(ClearedSignal<'a> { command_id, seq });

/// How an eval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Ending {
    Completed,
    Rejected,
    Raised,
    Cancelled,
    Interrupted,
    WorkerExited,
}

choice!(Ending { Completed, Rejected, Raised, Cancelled, Interrupted, WorkerExited });

/// What an eval came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvalResultSignal<'a> {
    /// The command that asked for it.
    command_id: Option<&'a CommandId>,
    /// The event that ended it.
    seq: Seq,
    /// Whether it ran to its end.
    success: bool,
    /// How the eval ended.
    ending: Ending,
    /// The last expression's value.
    result: Option<&'a str>,
    /// The type of the value, as the language writes it.
    type_signature: Option<&'a str>,
    /// What the code defined.
    bindings: &'a [Binding],
    /// The compiler's warnings and errors.
    diagnostics: &'a [Diagnostic],
    /// Why it did not run to its end, where the diagnostics do not say it.
    error: Option<String>,
    /// How long it ran, in milliseconds; none where that is not known.
    duration_ms: Option<u64>,
}

told!(EvalResultSignal<'a> {
    command_id, seq, success, ending, result, type_signature, bindings, diagnostics, error, duration_ms
});

/// What an event tells of the session's jobs; none where that is nothing.
pub(in super::super) fn eval(event: &Event) -> Option<EvalSignals<'_>> {
    let Some((_, part)) = event.body.job_part() else { return agents(event) };
    Some(match part {
        JobPart::Requested { code, file, .. } => requested(event, code, file),
        JobPart::Printed { stream, text } => printed(event, stream, text),
        JobPart::Displayed(display) => displayed(event, display),
        JobPart::Cleared => cleared(event),
        JobPart::OutputCut => {
            printed(event, OutputStream::Stderr, "… (of what follows only the end is kept)\n")
        }
        JobPart::CancelRequested | JobPart::TimedOut | JobPart::Denied(_) => {
            step(event, JobState::Cancelling)
        }
        JobPart::Ended(end) => eval_ended(event, end),
    })
}

fn eval_ended<'a>(event: &'a Event, end: EvalEnd<'a>) -> EvalSignals<'a> {
    match end {
        EvalEnd::Completed { result } => ended_eval(event, Ending::Completed, Some(result), None),
        EvalEnd::Failed { failure, result } => {
            let (ending, error) = match failure {
                Failure::Rejected => (Ending::Rejected, None),
                Failure::Raised { error } => {
                    (Ending::Raised, Some(format!("{}: {}", error.kind, error.message)))
                }
                Failure::WorkerExited { exit } => (Ending::WorkerExited, Some(exit.of_code())),
            };
            ended_eval(event, ending, Some(result), error)
        }
        EvalEnd::Cancelled(_) => {
            ended_eval(event, Ending::Cancelled, None, Some("it was cancelled".to_owned()))
        }
        EvalEnd::Interrupted => {
            ended_eval(event, Ending::Interrupted, None, Some("its worker or the daemon was lost".to_owned()))
        }
    }
}

/// Before the first job, with this event as the newest.
pub(in super::super) fn idle(newest: Seq, at: Timestamp) -> EvalSignals<'static> {
    let eval = EvalSignal {
        state: JobState::Idle,
        command_id: None,
        seq: newest,
        at,
        code: None,
        file: None,
        by: None,
    };
    EvalSignals { eval: Some(eval), ..EvalSignals::default() }
}

/// How far a job is with an event.
pub(super) fn step(event: &Event, state: JobState) -> EvalSignals<'_> {
    let eval = EvalSignal {
        state,
        command_id: event.metadata.correlation.as_ref(),
        seq: event.seq,
        at: event.at,
        code: None,
        file: None,
        by: by(event).filter(|_| state != JobState::Ended),
    };
    EvalSignals { eval: Some(eval), ..EvalSignals::default() }
}

pub(super) fn requested<'a>(event: &'a Event, code: &'a str, file: Option<&'a str>) -> EvalSignals<'a> {
    let mut signals = step(event, JobState::Running);
    if let Some(eval) = &mut signals.eval {
        (eval.code, eval.file) = (Some(code), file);
    }
    signals
}

fn printed<'a>(event: &'a Event, stream: OutputStream, text: &'a str) -> EvalSignals<'a> {
    let command_id = event.metadata.correlation.as_ref();
    let output = OutputSignal { command_id, seq: event.seq, stream, text };
    EvalSignals { eval_output: Some(output), ..EvalSignals::default() }
}

fn displayed<'a>(event: &'a Event, display: &'a Display) -> EvalSignals<'a> {
    let command_id = event.metadata.correlation.as_ref();
    let display = DisplaySignal { command_id, seq: event.seq, display };
    EvalSignals { eval_display: Some(display), ..EvalSignals::default() }
}

fn cleared(event: &Event) -> EvalSignals<'_> {
    let cleared = ClearedSignal { command_id: event.metadata.correlation.as_ref(), seq: event.seq };
    EvalSignals { eval_cleared: Some(cleared), ..EvalSignals::default() }
}

fn ended_eval<'a>(
    event: &'a Event,
    ending: Ending,
    result: Option<&'a EvalResult>,
    error: Option<String>,
) -> EvalSignals<'a> {
    let result = EvalResultSignal {
        command_id: event.metadata.correlation.as_ref(),
        seq: event.seq,
        success: ending == Ending::Completed,
        ending,
        result: result.and_then(|result| result.value.as_deref()),
        type_signature: result.and_then(|result| result.value_type.as_deref()),
        bindings: result.map(|result| result.bindings.as_slice()).unwrap_or_default(),
        diagnostics: result.map(|result| result.diagnostics.as_slice()).unwrap_or_default(),
        error,
        duration_ms: duration_of(event),
    };
    EvalSignals { eval_result: Some(result), ..step(event, JobState::Ended) }
}

/// Who caused an event, for people.
fn by(event: &Event) -> Option<String> {
    match &event.metadata.source {
        Source::Client { principal, name } if *principal == Principal::local() => Some(name.clone()),
        Source::Client { principal, name } => Some(format!("{name} ({principal})")),
        Source::Worker | Source::System => None,
    }
}

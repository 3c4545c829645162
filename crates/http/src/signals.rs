//! What streams tell, as Datastar's signals: objects that clients merge into what they have. Pure: events in, signals out. Source: seed 000,
//! "Datastar SSE for IDE Plugins". Behind each stands its form in BARE.

use std::collections::BTreeMap;

use mainstay_model::agent::JobSpec;
use mainstay_model::{
    Action, Binding, CommandId, Delta, Diagnostic, Display, EvalResult, Event, EventBody, EventKind, Failure,
    JobPart, Message, OutputStream, Principal, Seq, Session, SessionId, SessionState, Source, Timestamp,
    WorkEnding,
};
use mainstay_runner::Completions;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::bare::{Encode, Schema, Shape, choice, member, told};

/// The signals that `/status` sends.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct StatusSignals {
    /// How the session is.
    status: StatusSignal,
    /// What may be done now.
    actions: Vec<Action>,
}

told!(StatusSignals { status, actions });

/// What `/eval` tells: of each signal that is there, what is new of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct EvalSignals<'a> {
    /// A job, as far as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<EvalSignal<'a>>,
    /// What it printed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_output: Option<OutputSignal<'a>>,
    /// What it showed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_display: Option<DisplaySignal<'a>>,
    /// That what it has printed and shown so far is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_cleared: Option<ClearedSignal<'a>>,
    /// What the eval came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_result: Option<EvalResultSignal<'a>>,
    /// What an agent says next.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_output: Option<TurnOutputSignal<'a>>,
    /// What was said, once it is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_message: Option<TurnMessageSignal<'a>>,
    /// What the agent's work came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_result: Option<TurnResultSignal<'a>>,
}

told!(EvalSignals<'a> {
    eval, eval_output, eval_display, eval_cleared, eval_result, turn_output, turn_message, turn_result
});

/// What `/events` tells: one event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct EventSignals<'a> {
    /// The event, as it is stored.
    pub(super) event: &'a Event,
}

told!(EventSignals<'a> { event });

/// The signals that `/diagnostics` sends.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct DiagnosticsSignals {
    /// The diagnostics of each file, those of code in none under an empty name; null where what was found is out of date.
    pub(super) diagnostics: BTreeMap<String, Option<Vec<Diagnostic>>>,
}

told!(DiagnosticsSignals { diagnostics });

/// The signals that `/completions` sends.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CompletionsSignals {
    /// What could stand at the cursor; null before anyone has asked.
    pub(super) completions: Option<CompletionsSignal>,
}

told!(CompletionsSignals { completions });

/// What could stand at a cursor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompletionsSignal {
    /// What the client calls its question.
    pub(super) command_id: CommandId,
    /// The choices, and where the text begins that one replaces.
    #[serde(flatten)]
    pub(super) completions: Completions,
}

told!(CompletionsSignal { command_id | completions });

/// What any stream tells.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum AnySignals<'a> {
    Status(StatusSignals),
    Eval(EvalSignals<'a>),
    Event(EventSignals<'a>),
    Diagnostics(DiagnosticsSignals),
    Completions(CompletionsSignals),
}

impl Shape for AnySignals<'_> {
    fn shape(schema: &mut Schema) -> String {
        schema.define_union(
            "Signals",
            "What a stream tells: each stream one of these.",
            &[
                StatusSignals::shape,
                EvalSignals::shape,
                EventSignals::shape,
                DiagnosticsSignals::shape,
                CompletionsSignals::shape,
            ],
        )
    }
}

impl Encode for AnySignals<'_> {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Status(signals) => member(0, signals, to),
            Self::Eval(signals) => member(1, signals, to),
            Self::Event(signals) => member(2, signals, to),
            Self::Diagnostics(signals) => member(3, signals, to),
            Self::Completions(signals) => member(4, signals, to),
        }
    }
}

/// One message of a stream over WebSocket.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Frame<'a> {
    /// Where it stands in what the stream tells: who comes again with it as `after` is told what follows. None where a stream has no past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    /// The signals that have changed.
    pub(super) signals: &'a AnySignals<'a>,
}

told!(Frame<'a> { id, signals });

/// How a session is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusSignal {
    /// The id of the session.
    session: SessionId,
    /// The end of it, enough to name the session.
    short_id: String,
    /// What people call it.
    name: String,
    /// What does its work.
    kind: String,
    /// The state of the session.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "String")]
    state: SessionState,
    /// Why it is Faulted.
    fault: Option<String>,
    /// The sequence number of the session's newest event.
    seq: u64,
    /// How many commands have changed it.
    version: u64,
    /// How many evals were accepted.
    eval_count: u64,
    /// How many of them did not run to their end.
    failures: u64,
    /// How long the last one took, in milliseconds; none where none has ended lately.
    last_eval_ms: Option<u64>,
    /// How long the session has been there, as `hh:mm:ss`.
    uptime: String,
    /// How many commands wait for their turn.
    waiting: u64,
    /// How many asks wait for an answer.
    asks: u64,
    /// The folder its code runs in.
    working_directory: String,
    /// The project it is for.
    project: Option<String>,
    /// What its worker has loaded beside the language itself.
    loaded_assemblies: Vec<String>,
    /// Its worker; none at rest.
    worker: Option<WorkerSignal>,
}

told!(StatusSignal {
    session,
    short_id,
    name,
    kind,
    state,
    fault,
    seq,
    version,
    eval_count,
    failures,
    last_eval_ms,
    uptime,
    waiting,
    asks,
    working_directory,
    project,
    loaded_assemblies,
    worker
});

fn by_name<S: Serializer>(state: &SessionState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.name())
}

/// The worker process of a session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkerSignal {
    /// The language tool and its version.
    kernel: String,
    /// The runtime under it.
    runtime: String,
    /// The process id of the worker; 0 where it is no process of this machine.
    pid: u32,
    /// Bytes of memory that it has; none where that is not known.
    resident_bytes: Option<u64>,
}

told!(WorkerSignal { kernel, runtime, pid, resident_bytes });

/// The events that change how a session is: all but those of which there are many.
pub(super) fn status_kinds() -> impl Iterator<Item = EventKind> {
    let is_one = |kind: &&EventKind| !matches!(kind.as_str(), "outputProduced" | "messageStreamed");
    EventKind::ALL.iter().filter(is_one).copied()
}

/// How a session is now, and what may be done with it.
pub(super) fn status(
    session: &Session,
    resident_bytes: Option<u64>,
    last_eval_ms: Option<u64>,
    now: Timestamp,
) -> StatusSignals {
    let loaded = session.surroundings.as_ref().map(|around| around.loaded.keys().cloned().collect());
    let status = StatusSignal {
        session: session.id,
        short_id: session.id.short(),
        name: session.name.clone(),
        kind: session.kind.to_string(),
        state: session.state(),
        fault: session.fault().map(str::to_owned),
        seq: session.last_seq.0,
        version: session.version.0,
        eval_count: session.evals,
        failures: session.failures,
        last_eval_ms,
        uptime: uptime(now.as_millisecond().saturating_sub(session.created_at.as_millisecond())),
        waiting: session.lane.len() as u64,
        asks: session.asks.len() as u64,
        working_directory: session.working_directory.clone(),
        project: session.project.clone(),
        loaded_assemblies: loaded.unwrap_or_default(),
        worker: session.worker.as_ref().map(|worker| WorkerSignal {
            kernel: worker.kernel.clone(),
            runtime: worker.runtime.clone(),
            pid: worker.pid.unwrap_or_default(),
            resident_bytes,
        }),
    };
    StatusSignals { status, actions: session.offered() }
}

fn uptime(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// How long the job took that this event ends.
pub(super) const fn duration_of(event: &Event) -> Option<u64> {
    if let EventBody::EvalCompleted { duration_ms, .. }
    | EventBody::EvalFailed { duration_ms, .. }
    | EventBody::JobEnded { duration_ms, .. } = &event.body
    {
        return Some(*duration_ms);
    }
    None
}

/// Whether what was found out about code is out of date with this event.
pub(super) const fn clears_diagnostics(event: &Event) -> bool {
    matches!(event.body, EventBody::SessionReset | EventBody::SessionHardReset)
}

/// Whether a job begins with this event.
pub(super) const fn begins_job(event: &Event) -> bool {
    matches!(event.body, EventBody::EvalRequested { .. } | EventBody::JobRequested { .. })
}

/// A job, as far as it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EvalSignal<'a> {
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
enum JobState {
    Idle,
    Running,
    Cancelling,
    Ended,
}

choice!(JobState { Idle, Running, Cancelling, Ended });

/// A piece of output: it stands behind the pieces before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OutputSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    stream: OutputStream,
    text: &'a str,
}

told!(OutputSignal<'a> { command_id, seq, stream, text });

/// Something that code showed: it stands behind what was printed before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DisplaySignal<'a> {
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
struct ClearedSignal<'a> {
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
struct EvalResultSignal<'a> {
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

/// A piece of what an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TurnOutputSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    /// It, and where it stands in its message.
    #[serde(flatten)]
    delta: &'a Delta,
}

told!(TurnOutputSignal<'a> { command_id, seq | delta });

/// A message that is whole.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TurnMessageSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    message: &'a Message,
}

told!(TurnMessageSignal<'a> { command_id, seq, message });

/// What an agent's work came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TurnResultSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    success: bool,
    /// How it ended: `done`, `failed`, `cancelled`, `interrupted`.
    ending: &'static str,
    /// Why it was not done.
    error: Option<String>,
    /// How long it took, in milliseconds.
    duration_ms: u64,
}

told!(TurnResultSignal<'a> { command_id, seq, success, ending, error, duration_ms });

/// What an event tells of the session's jobs; none where that is nothing.
pub(super) fn eval(event: &Event) -> Option<EvalSignals<'_>> {
    let Some((_, part)) = event.body.job_part() else { return agents(event) };
    Some(match part {
        JobPart::Requested { code, file, .. } => requested(event, code, file),
        JobPart::Printed { stream, text } => printed(event, stream, text),
        JobPart::Displayed(display) => displayed(event, display),
        JobPart::Cleared => cleared(event),
        JobPart::OutputCut => {
            printed(event, OutputStream::Stderr, "… (of what follows only the end is kept)\n")
        }
        JobPart::CancelRequested | JobPart::TimedOut => step(event, JobState::Cancelling),
        JobPart::Completed { result } => ended_eval(event, Ending::Completed, Some(result), None),
        JobPart::Failed { failure, result } => {
            let (ending, error) = match failure {
                Failure::Rejected => (Ending::Rejected, None),
                Failure::Raised { error } => {
                    (Ending::Raised, Some(format!("{}: {}", error.kind, error.message)))
                }
                Failure::WorkerExited { exit } => (Ending::WorkerExited, Some(exit.of_code())),
            };
            ended_eval(event, ending, Some(result), error)
        }
        JobPart::Cancelled(_) => {
            ended_eval(event, Ending::Cancelled, None, Some("it was cancelled".to_owned()))
        }
        JobPart::Interrupted => {
            ended_eval(event, Ending::Interrupted, None, Some("its worker or the daemon was lost".to_owned()))
        }
    })
}

/// Before the first job, with this event as the newest.
pub(super) fn idle(newest: Seq, at: Timestamp) -> EvalSignals<'static> {
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
fn step(event: &Event, state: JobState) -> EvalSignals<'_> {
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

fn requested<'a>(event: &'a Event, code: &'a str, file: Option<&'a str>) -> EvalSignals<'a> {
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

/// What an event tells of an agent's work.
fn agents(event: &Event) -> Option<EvalSignals<'_>> {
    let (command_id, seq) = (event.metadata.correlation.as_ref(), event.seq);
    if let EventBody::JobRequested { work, .. } = &event.body {
        return Some(match work {
            JobSpec::Turn { prompt } => requested(event, &prompt.text, None),
            JobSpec::Shell { line, .. } => requested(event, line, None),
            JobSpec::Compaction { .. }
            | JobSpec::Setting(_)
            | JobSpec::Build
            | JobSpec::Rebuild
            | JobSpec::Comm(_) => step(event, JobState::Running),
        });
    }
    if let EventBody::JobEnded { ending, duration_ms, .. } = &event.body {
        let error = match ending {
            WorkEnding::Done { .. } => None,
            WorkEnding::Failed { message, .. } => Some(message.clone()),
            WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Some(ending.to_string()),
        };
        let (success, ending, duration_ms) = (error.is_none(), ending.name(), *duration_ms);
        let result = TurnResultSignal { command_id, seq, success, ending, error, duration_ms };
        return Some(EvalSignals { turn_result: Some(result), ..step(event, JobState::Ended) });
    }
    if let EventBody::MessageStreamed(delta) = &event.body {
        let output = TurnOutputSignal { command_id, seq, delta };
        return Some(EvalSignals { turn_output: Some(output), ..EvalSignals::default() });
    }
    if let EventBody::MessageAdded(message) = &event.body {
        let message = TurnMessageSignal { command_id, seq, message };
        return Some(EvalSignals { turn_message: Some(message), ..EvalSignals::default() });
    }
    None
}

/// Who caused an event, for people.
fn by(event: &Event) -> Option<String> {
    match &event.metadata.source {
        Source::Client { principal, name } if *principal == Principal::local() => Some(name.clone()),
        Source::Client { principal, name } => Some(format!("{name} ({principal})")),
        Source::Worker | Source::System => None,
    }
}

//! What streams tell, as Datastar's signals: objects that clients merge into what they have. Pure: events in, signals out. Source: seed 000,
//! "Datastar SSE for IDE Plugins".

use mainstay_model::agent::Work;
use mainstay_model::{
    Binding, Diagnostic, Event, EventBody, EventKind, JobPart, OutputStream, Principal, Session, Source,
    Timestamp, WorkEnding,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::view::fault;

/// How a session is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusSignal {
    /// Its id.
    session: String,
    /// The end of it, enough to name the session.
    short_id: String,
    /// What people call it.
    name: String,
    /// What does its work.
    kind: String,
    /// Its state.
    state: String,
    /// Why it is Faulted.
    fault: Option<String>,
    /// Its newest event.
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

/// A session's worker.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkerSignal {
    /// The language tool and its version.
    kernel: String,
    /// The runtime under it.
    runtime: String,
    /// Its process id.
    pid: u32,
    /// Bytes of memory that it has; none where that is not known.
    resident_bytes: Option<u64>,
}

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
) -> Value {
    let loaded = session.surroundings.as_ref().map(|around| around.loaded.keys().cloned().collect());
    let signal = StatusSignal {
        session: session.id.to_string(),
        short_id: session.id.short(),
        name: session.name.clone(),
        kind: session.kind.to_string(),
        state: session.state().name().to_owned(),
        fault: fault(session).map(str::to_owned),
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
            pid: worker.pid,
            resident_bytes,
        }),
    };
    let actions: Vec<&str> = session.offered().into_iter().map(mainstay_model::Action::name).collect();
    json!({ "status": signal, "actions": actions })
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
    /// `running`, `cancelling` or `ended`.
    state: &'static str,
    /// The command that asked for it.
    command_id: Option<&'a str>,
    /// The event that says so.
    seq: u64,
    /// When.
    at: String,
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

/// What an eval came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EvalResultSignal<'a> {
    /// The command that asked for it.
    command_id: Option<&'a str>,
    /// The event that ended it.
    seq: u64,
    /// Whether it ran to its end.
    success: bool,
    /// How it ended.
    ending: &'static str,
    /// The last expression's value.
    result: Option<&'a str>,
    /// Its type.
    type_signature: Option<&'a str>,
    /// What the code defined.
    #[schemars(with = "Vec<Value>")]
    bindings: &'a [Binding],
    /// Warnings and errors.
    #[schemars(with = "Vec<Value>")]
    diagnostics: &'a [Diagnostic],
    /// Why it did not run to its end, where the diagnostics do not say it.
    error: Option<String>,
    /// How long it ran, in milliseconds; none where that is not known.
    duration_ms: Option<u64>,
}

/// What an event tells of the session's jobs; none where that is nothing.
pub(super) fn eval(event: &Event) -> Option<Value> {
    let command = event.metadata.correlation.as_ref().map(|id| id.as_str());
    let step = |state, code, file, by| {
        let (command_id, seq, at) = (command, event.seq.0, event.at.to_string());
        json!({ "eval": EvalSignal { state, command_id, seq, at, code, file, by } })
    };
    let ended = |ending: &'static str, result: Option<&mainstay_model::EvalResult>, error: Option<String>| {
        let mut told = step("ended", None, None, None);
        told["evalResult"] = json!(EvalResultSignal {
            command_id: command,
            seq: event.seq.0,
            success: ending == "completed",
            ending,
            result: result.and_then(|result| result.value.as_deref()),
            type_signature: result.and_then(|result| result.value_type.as_deref()),
            bindings: result.map(|result| result.bindings.as_slice()).unwrap_or_default(),
            diagnostics: result.map(|result| result.diagnostics.as_slice()).unwrap_or_default(),
            error,
            duration_ms: duration_of(event),
        });
        told
    };
    if let Some((_, part)) = event.body.job_part() {
        return Some(match part {
            JobPart::Requested { code, file, .. } => step("running", Some(code), file, by(event)),
            JobPart::Printed { stream, text } => {
                let stream = match stream {
                    OutputStream::Stdout => "stdout",
                    OutputStream::Stderr => "stderr",
                };
                output(command, event, stream, text)
            }
            JobPart::OutputCut => {
                output(command, event, "stderr", "… (what it printed further is not kept)\n")
            }
            JobPart::CancelRequested => step("cancelling", None, None, by(event)),
            JobPart::TimedOut => step("cancelling", None, None, None),
            JobPart::Completed { result } => ended("completed", Some(result), None),
            JobPart::Failed { failure, result } => {
                let (ending, error) = match failure {
                    mainstay_model::Failure::Rejected => ("rejected", None),
                    mainstay_model::Failure::Raised { error } => {
                        ("raised", Some(format!("{}: {}", error.kind, error.message)))
                    }
                    mainstay_model::Failure::WorkerExited { exit } => {
                        ("workerExited", Some(format!("the code ended its worker with {exit}")))
                    }
                };
                ended(ending, Some(result), error)
            }
            JobPart::Cancelled(_) => ended("cancelled", None, Some("it was cancelled".to_owned())),
            JobPart::Interrupted => {
                ended("interrupted", None, Some("its worker or the daemon was lost".to_owned()))
            }
        });
    }
    agents(event, command, step)
}

/// What an event tells of an agent's work.
fn agents<'a>(
    event: &'a Event,
    command: Option<&'a str>,
    step: impl Fn(&'static str, Option<&'a str>, Option<&'a str>, Option<String>) -> Value,
) -> Option<Value> {
    if let EventBody::JobRequested { work, .. } = &event.body {
        let said = match work {
            Work::Turn { prompt } => Some(prompt.text.as_str()),
            Work::Shell { line, .. } => Some(line.as_str()),
            Work::Compaction { .. } | Work::Setting(_) => None,
        };
        return Some(step("running", said, None, by(event)));
    }
    if let EventBody::JobEnded { ending, duration_ms, .. } = &event.body {
        let mut told = step("ended", None, None, None);
        let error = match ending {
            WorkEnding::Done { .. } => None,
            WorkEnding::Failed { message } => Some(message.clone()),
            WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Some(ending.to_string()),
        };
        told["turnResult"] = json!({
            "commandId": command, "seq": event.seq, "success": error.is_none(), "ending": ending.name(),
            "error": error, "durationMs": duration_ms,
        });
        return Some(told);
    }
    if let EventBody::MessageStreamed(delta) = &event.body {
        return Some(json!({ "turnOutput": {
            "commandId": command, "seq": event.seq, "message": delta.message, "part": delta.part,
            "role": delta.role, "offset": delta.offset, "text": delta.text, "tool": delta.tool,
        } }));
    }
    if let EventBody::MessageAdded(message) = &event.body {
        return Some(
            json!({ "turnMessage": { "commandId": command, "seq": event.seq, "message": message } }),
        );
    }
    None
}

fn output(command: Option<&str>, event: &Event, stream: &str, text: &str) -> Value {
    json!({ "evalOutput": { "commandId": command, "seq": event.seq, "stream": stream, "text": text } })
}

/// Who caused an event, for people.
fn by(event: &Event) -> Option<String> {
    match &event.metadata.source {
        Source::Client { principal, name } if *principal == Principal::local() => Some(name.clone()),
        Source::Client { principal, name } => Some(format!("{name} ({principal})")),
        Source::Worker | Source::System => None,
    }
}

/// The diagnostics of a file.
pub(super) fn diagnostics(file: &str, diagnostics: &[Diagnostic]) -> Value {
    json!({ "diagnostics": { file: diagnostics } })
}

//! The signals of `/status`: how a session is, and what may be done with it.

use mainstay_model::{Action, EventKind, Session, SessionId, SessionState, Timestamp};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::super::bare::told;

/// The signals that `/status` sends.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in super::super) struct StatusSignals {
    /// How the session is.
    status: StatusSignal,
    /// What may be done now.
    actions: Vec<Action>,
}

told!(StatusSignals { status, actions });

/// How a session is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct StatusSignal {
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
    /// The worker process; none while the session is idle.
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
pub(in super::super) struct WorkerSignal {
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
pub(in super::super) fn status_kinds() -> impl Iterator<Item = EventKind> {
    let is_one = |kind: &&EventKind| !matches!(kind.as_str(), "outputProduced" | "messageStreamed");
    EventKind::ALL.iter().filter(is_one).copied()
}

/// How a session is now, and what may be done with it.
pub(in super::super) fn status(
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

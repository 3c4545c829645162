//! What an event tells of an agent's work, among the signals of `/eval`.

use mainstay_model::agent::JobSpec;
use mainstay_model::{CommandId, Delta, Event, EventBody, Message, Seq, WorkEnding};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::bare::told;
use super::eval::{EvalSignals, JobState, requested, step};

/// A piece of what an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnOutputSignal<'a> {
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
pub(super) struct TurnMessageSignal<'a> {
    command_id: Option<&'a CommandId>,
    seq: Seq,
    message: &'a Message,
}

told!(TurnMessageSignal<'a> { command_id, seq, message });

/// What an agent's work came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnResultSignal<'a> {
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

/// What an event tells of an agent's work.
pub(super) fn agents(event: &Event) -> Option<EvalSignals<'_>> {
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
